"""Graphs made ready to run: nodes in an order that works, each with the operator that computes it.

`Preparation` turns a graph of a file into a `Program` and collects everything that cannot run: operators,
versions and attributes, of all graphs, before anything is computed.  A node that no operator computes
runs as its function, the model's own or that which the specification gives (`expansion`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lazulite.formats.onnx import expansion
from lazulite.formats.onnx.external import ExternalFiles
from lazulite.formats.onnx.proto import NAMES, Attribute, Function, Graph, Node, TensorData, TypeData
from lazulite.formats.onnx.registry import Operator, find
from lazulite.formats.onnx.values import Value, lifted, read_sparse, read_tensor
from lazulite.formats.source import Source
from lazulite.tensor.tensor import Tensor

DEEPEST_CALL = 64
"""Functions that call functions; a file where they call themselves is refused."""
MOST_STEPS = 1 << 16
"""Nodes of functions, as often as these are called: a few that call one another could make any number."""
_KINDS = ("f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs", "sparse_tensor", "tp")
_KIND_NUMBERS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors",
                 10: "graphs", 11: "sparse_tensor", 13: "tp"}  # fmt: skip

FunctionKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One node: by an operator, by a function's program, or by a function that the input types select."""

    node: Node
    attributes: dict[str, Any]
    opset: int
    opsets: Mapping[str, int]
    operator: Operator | None
    body: Program | None

    def __str__(self) -> str:
        name = f" {self.node.name!r}" if self.node.name else ""
        return f"{self.node.op_type}{name} -> {', '.join(self.node.output)}"


@dataclass(frozen=True, slots=True)
class Program:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Value]
    steps: tuple[Step, ...]
    opsets: Mapping[str, int]


class Preparation:
    """Prepares the graphs of one model; `missing` is what cannot run."""

    def __init__(self, source: Source, files: ExternalFiles, functions: Iterable[Function], device: str) -> None:
        self.source, self.files, self.device = source, files, device
        self.functions: dict[FunctionKey, Function] = {(f.domain, f.name, f.overload): f for f in functions}
        self.missing: dict[str, None] = {}
        self._constants: dict[int, tuple[Value, Tensor | None]] = {}
        """By identity: the model's own values on the host, and their tensors once there was need."""
        self._depth = self._count = 0

    def graph(self, graph: Graph, opsets: Mapping[str, int], known: Set[str], field: str) -> Program:
        """The program of a graph that sees the values `known` around it."""
        constants = {data.name: self._tensor(data, f"{field}.initializer {data.name!r}") for data in graph.initializer}
        for sparse in graph.sparse_initializer:
            name = sparse.values.name if sparse.values is not None else ""
            constants[name] = read_sparse(sparse, self.source, self.files, self.device, f"{field} {name!r}")
        inputs = tuple([info.name for info in graph.input])
        outputs = tuple([info.name for info in graph.output])
        seen = {*known, *inputs, *constants}
        steps = self._steps(graph.node, opsets, seen, field)
        made = seen.union(*[step.node.output for step in steps])
        absent = [name for name in outputs if name and name not in made]
        if absent:
            self.source.fail(f"nothing makes the output {absent[0]!r}", field)
        return Program(inputs, outputs, constants, steps, opsets)

    def function(
        self, function: Function, given: Mapping[str, Attribute], opsets: Mapping[str, int], field: str
    ) -> Program:
        """The program of a function called with these attributes."""
        if self._depth > DEEPEST_CALL:
            self.source.fail(f"functions call one another more than {DEEPEST_CALL} deep", field)
        opsets = {**opsets, **{each.domain: each.version for each in function.opset_import}}
        values = {attribute.name: attribute for attribute in function.attribute_proto} | dict(given)
        nodes = [_substituted(node, values) for node in function.node]
        self._depth += 1
        steps = self._steps(nodes, opsets, frozenset(function.input), field)
        self._depth -= 1
        return Program(tuple(function.input), tuple(function.output), {}, steps, opsets)

    def expanded(self, node: Node, opsets: Mapping[str, int], values: Sequence[Value]) -> Program:
        """The program of an operator that the specification gives a function for, with inputs of these types."""
        domain, opset = _version(node, opsets)
        function = expansion.body(domain, node, opset, values)
        given = expansion.defaults(domain, node.op_type, opset) | {each.name: each for each in node.attribute}
        return self.function(function, given, opsets, node.op_type)

    def later(self, step: Step, values: Sequence[Value]) -> Program:
        """The program of a step whose function the types of these values select."""
        self._count = 0  # the limit is one for what is prepared together
        program = self.expanded(step.node, step.opsets, values)
        self.require_complete()
        return program

    def require_complete(self) -> None:
        """Raise unless everything prepared so far can run."""
        if self.missing:
            self.source.fail(
                "the model needs what is not supported: " + "; ".join(self.missing), "graph",
                hint="" if expansion.available() else expansion.REMEDY,
            )  # fmt: skip

    def _steps(self, nodes: Sequence[Node], opsets: Mapping[str, int], known: Set[str], field: str) -> tuple[Step, ...]:
        ordered = _ordered(nodes, known)
        if ordered is None:
            self.source.fail("some nodes need one another's results, or results that nothing makes", field)
        steps, seen = [], set(known)
        for node in ordered:
            steps.append(self._step(node, opsets, seen, f"{field} {node.op_type} {node.name!r}"))
            seen.update(node.output)
        return tuple(steps)

    def _step(self, node: Node, opsets: Mapping[str, int], known: Set[str], field: str) -> Step:
        self._count += self._depth > 0
        if self._count > MOST_STEPS:
            self.source.fail(f"functions expand to more than {MOST_STEPS} nodes", field)
        domain, opset = _version(node, opsets)
        attributes = {a.name: self._attribute(a, opsets, known, f"{field}.{a.name}") for a in node.attribute}
        own = self.functions.get((node.domain, node.op_type, node.overload))
        if own is not None:
            given = {attribute.name: attribute for attribute in node.attribute}
            return Step(node, attributes, opset, opsets, None, self.function(own, given, opsets, field))
        operator = find(domain, node.op_type, opset)
        if operator is None:
            found = expansion.exists(domain, node.op_type, opset)
            if not found:
                self.missing[f"{domain or 'ai.onnx'} {node.op_type}, version {opset}"] = None
            ready = found and not expansion.depends_on_types(domain, node.op_type, opset)
            return Step(node, attributes, opset, opsets, None, self.expanded(node, opsets, ()) if ready else None)
        for name in operator.unknown_attributes(list(attributes)):
            self.missing[f"{domain or 'ai.onnx'} {node.op_type}, version {opset}: attribute {name}"] = None
        return Step(node, attributes, opset, opsets, operator, None)

    def _attribute(self, attribute: Attribute, opsets: Mapping[str, int], known: Set[str], field: str) -> Any:
        kind = _KIND_NUMBERS.get(attribute.type) or next((k for k in _KINDS if getattr(attribute, k)), "i")
        value = getattr(attribute, kind)
        match kind:
            case "s":
                return "" if value is None else value.read(field).decode(errors="replace")
            case "strings":
                return [part.read(field).decode(errors="replace") for part in value]
            case "t":
                return None if value is None else self._tensor(value, field)
            case "tensors":
                return [self._tensor(each, field) for each in value]
            case "g":
                return None if value is None else self.graph(value, opsets, known, field)
            case "graphs":
                return [self.graph(each, opsets, known, field) for each in value]
            case "sparse_tensor":
                return read_sparse(value, self.source, self.files, self.device, field)
            case "tp":
                return type_text(value)
        return value

    def _tensor(self, data: TensorData, field: str) -> Value:
        value = read_tensor(data, self.source, self.files, self.device, field)
        self._constants[id(value)] = value, None
        return value

    def lift(self, value: Value) -> Tensor:
        """A value as a tensor; a constant of the model always as the same, so that it is copied once."""
        if isinstance(value, Tensor):
            return value
        own, tensor = self._constants.get(id(value), (None, None))
        if own is None:
            return lifted(value, self.device)
        if tensor is None:
            tensor = lifted(value, self.device)
            self._constants[id(value)] = own, tensor
        return tensor


def _version(node: Node, opsets: Mapping[str, int]) -> tuple[str, int]:
    """The domain of a node and the version of it that the model uses."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    return domain, opsets.get(domain, opsets.get("ai.onnx", 1) if domain == "" else 1)


def type_text(data: TypeData | None) -> str:
    """A type in words: float32, sequence of float32, optional of ..; empty where it is not said."""
    if data is None:
        return ""
    if data.tensor_type is not None:
        number = data.tensor_type.elem_type
        return NAMES[number] if 0 <= number < len(NAMES) else ""
    for word, inner in (("sequence", data.sequence_type), ("optional", data.optional_type)):
        if inner is not None:
            return f"{word} of {type_text(inner.elem_type)}"
    return ""


def _needs(node: Node) -> Iterator[str]:
    """The values that a node reads, those of its subgraphs included."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.g is not None else [])):
            own = {info.name for info in graph.input} | {data.name for data in graph.initializer}
            own |= {sparse.values.name for sparse in graph.sparse_initializer if sparse.values is not None}
            own.update(name for inner in graph.node for name in inner.output)
            reads = [*[n for inner in graph.node for n in _needs(inner)], *[info.name for info in graph.output]]
            yield from (name for name in reads if name and name not in own)


def _ordered(nodes: Sequence[Node], known: Set[str]) -> list[Node] | None:
    """The nodes so that each stands after those whose results it needs; None where there is no such order."""
    maker = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    waiting = [{maker[name] for name in _needs(node) if name in maker} for node in nodes]
    if any(name not in maker and name not in known for node in nodes for name in _needs(node)):
        return None
    if all(all(place < own for place in places) for own, places in enumerate(waiting)):
        return list(nodes)
    users: dict[int, list[int]] = {}
    for own, places in enumerate(waiting):
        for place in places:
            users.setdefault(place, []).append(own)
    ready, order = [own for own, places in enumerate(waiting) if not places], []
    while ready:
        place = ready.pop()
        order.append(nodes[place])
        for user in users.get(place, ()):
            waiting[user].discard(place)
            if not waiting[user]:
                ready.append(user)
    return order if len(order) == len(nodes) else None


def _substituted(node: Node, values: Mapping[str, Attribute]) -> Node:
    """A node of a function with the attributes of the call in the place of references to them."""
    attributes = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in values:
                continue
            attribute = dataclasses.replace(values[attribute.ref_attr_name], name=attribute.name, ref_attr_name="")
        elif attribute.g is not None:
            inner = [_substituted(each, values) for each in attribute.g.node]
            attribute = dataclasses.replace(attribute, g=dataclasses.replace(attribute.g, node=inner))
        attributes.append(attribute)
    return dataclasses.replace(node, attribute=attributes)
