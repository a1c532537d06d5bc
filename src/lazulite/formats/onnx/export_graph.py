"""The nodes and constants of an ONNX graph while it is written, and the sizes that vary in it.

Takes operator names with the names of their inputs, gives the names of their results; what is computed twice is
one node, and what nobody uses is left out at the end.  Invariant: nodes stand after what they read.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from functools import reduce
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.formats.onnx.proto import (
    NUMBERS,
    Attribute,
    Dimension,
    Node,
    ShapeData,
    TensorData,
    TensorType,
    TypeData,
    ValueInfo,
)
from lazulite.formats.onnx.wire import Part
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp

Shape = tuple[int, ...]
Value = str
"""The name of a value."""
_INT, _TEXT, _INTS = 2, 3, 7
"""Kinds of attributes by their number in a file."""
_SPELT = {
    "index": "int64", "fp8e4m3": "float8_e4m3fn", "fp8e4m3fnuz": "float8_e4m3fnuz", "fp8e5m2": "float8_e5m2",
    "fp8e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip


def number_of(dtype: DType) -> int:
    """The element type as a file says it; positions and sizes are int64 there."""
    return NUMBERS[_SPELT.get(dtype.name, dtype.name)]


class GraphWriter:
    """Collects the parts of one graph."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[Value, TensorData] = {}
        self._names: dict[str, int] = {}
        self._known: dict[Hashable, Value] = {}
        self._reshaped: dict[Value, tuple[Value, Shape]] = {}
        """For the result of each Reshape what it was made of, and the shape of that."""
        self._turned: dict[Value, tuple[Value, list[int]]] = {}
        """The same of each Transpose, with the order of its axes."""
        self.leaves: dict[UOp, tuple[Value, int, int, int]] = {}
        """For each variable where its value is found: an input, an axis, and its factor and what is added there."""

    def named(self, wanted: str) -> Value:
        """A name that nothing else has: the wanted one if it is free."""
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return self.named(f"{wanted}_{count}") if count else wanted

    def node(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """The result of an operator; an empty name is an input left out."""
        key = operator, inputs, tuple([(name, _frozen(value)) for name, value in attributes.items()])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.named(operator)
            described = [_attribute(name, value) for name, value in attributes.items()]
            self.nodes.append(Node(list(inputs), [known], known, operator, described))
        return known

    def constant(self, dtype: DType, shape: Shape, data: bytes | memoryview, name: str = "") -> Value:
        """Elements as an initializer; small ones that have no name are told apart by their bits."""
        key = None if name or len(data) > 64 else (dtype, shape, bytes(data))
        if key is not None and key in self._known:
            return self._known[key]
        made = self.named(name or "constant")
        raw = Part.of(data, made)
        self.constants[made] = TensorData([*shape], number_of(dtype), name=made, raw_data=raw)
        if key is not None:
            self._known[key] = made
        return made

    def scalar(self, dtype: DType, value: Scalar) -> Value:
        """A constant of rank 0."""
        size = 8 if dtype is dtypes.index else dtype.itemsize
        bits = int(value) & ((1 << 64) - 1) if dtype is dtypes.index else dtype.to_bits(dtype.round(value))
        return self.constant(dtype, (), bits.to_bytes(size, "little"))

    def integers(self, values: Sequence[int]) -> Value:
        """Sizes or positions as a vector; those that vary are computed."""
        if not any(isinstance(value, Size) for value in values):
            return self.constant(dtypes.int64, (len(values),), struct.pack(f"<{len(values)}q", *values))
        parts = [self._one_size(value) for value in values]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)

    def reshape(self, value: Value, source: Shape, shape: Shape) -> Value:
        """A value of the shape `source` in another one."""
        value, source = self._reshaped.get(value, (value, source))
        if source == shape:
            return value
        varying = [axis for axis, size in enumerate(shape) if isinstance(size, Size)]
        if len(varying) == 1 and 0 not in shape:
            target = self.integers([-1 if axis in varying else size for axis, size in enumerate(shape)])
        else:
            target = self.integers(shape)
        result = self.node("Reshape", value, target, **({"allowzero": 1} if 0 in shape else {}))
        self._reshaped[result] = value, source
        return result

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The axes of a value in another order."""
        value, known = self._turned.get(value, (value, [*range(len(order))]))
        order = [known[axis] for axis in order]
        if order == [*range(len(order))]:
            return value
        result = self.node("Transpose", value, perm=order)
        self._turned[result] = value, order
        return result

    def cast(self, value: Value, source: DType, dtype: DType) -> Value:
        """The value in another type, by the rules of ONNX."""
        if number_of(source) == number_of(dtype):
            return value
        more = {"saturate": 0} if dtype.is_float and dtype.bits == 8 else {}
        return self.node("Cast", value, to=number_of(dtype), **more)

    # --- sizes --------------------------------------------------------------------------------------

    def size(self, size: int) -> Value:
        """A size as an int64 of rank 0."""
        return self.node("Squeeze", self._one_size(size)) if isinstance(size, Size) else self.scalar(dtypes.index, size)

    def _one_size(self, size: int) -> Value:
        """A size as a vector of one element."""
        if not isinstance(size, Size):
            return self.integers([size])
        parts = [
            self._term(term) if factor == 1 else self.node("Mul", self._term(term), self.integers([factor]))
            for term, factor in size.form.terms.items()
        ]
        if size.form.constant:
            parts.append(self.integers([size.form.constant]))
        return reduce(lambda total, part: self.node("Add", total, part), parts)

    def _term(self, term: UOp) -> Value:
        if term.op is ops.CONST:
            return self.integers([int(term.arg)])
        if term.op is not ops.SCALAR:
            left, right = [self._term(source) for source in term.src]
            if term.op is ops.FLOORDIV:  # ONNX divides towards zero
                left = self.node("Sub", left, self.node("Mod", left, right))
            return self.node({ops.ADD: "Add", ops.MUL: "Mul", ops.FLOORDIV: "Div"}[term.op], left, right)
        if term not in self.leaves:
            raise ArgumentError(
                "to_onnx", f"the variable {variable_name(term)} is the size of no axis of an input",
                rule="An exported model reads the value of a variable from the shape of an input.",
            )  # fmt: skip
        source, axis, factor, added = self.leaves[term]
        size = self.node("Shape", source, start=axis, end=axis + 1)
        size = self.node("Sub", size, self.integers([added])) if added else size
        return size if factor == 1 else self.node("Div", size, self.integers([factor]))

    def input(self, name: str, dtype: DType, shape: Shape) -> ValueInfo:
        """Declare an input; a variable that is the only one of an axis is read from there."""
        for axis, size in enumerate(shape):
            if isinstance(size, Size) and len(size.form.terms) == 1:
                ((term, factor),) = size.form.terms.items()
                if term.op is ops.SCALAR:
                    self.leaves.setdefault(term, (name, axis, factor, size.form.constant))
        return value_info(name, dtype, shape)

    # --- the end ------------------------------------------------------------------------------------

    def finished(self, outputs: Sequence[tuple[Value, Value]]) -> tuple[list[Node], list[TensorData]]:
        """The nodes and constants that outputs are made of, which are pairs of a name and the value it is given."""
        names: dict[Value, Value] = {}
        made = {node.output[0] for node in self.nodes}
        for name, value in outputs:
            if value in made:
                names.setdefault(value, name)
        for node in self.nodes:
            for values in (node.input, node.output):
                values[:] = [names.get(value, value) for value in values]
        for name, value in outputs:
            if names.get(value) != name:  # an input, a constant, or what is an output already
                self.nodes.append(Node([names.get(value, value)], [name], name, "Identity"))
        used, nodes = {name for name, _ in outputs}, list[Node]()
        for node in reversed(self.nodes):
            if node.output[0] in used:
                used.update(node.input)
                nodes.append(node)
        return nodes[::-1], [data for name, data in self.constants.items() if name in used]


def value_info(name: Value, dtype: DType, shape: Shape) -> ValueInfo:
    """An input or output as it is declared."""
    sizes = [Dimension(dim_param=size_name(size)) if isinstance(size, Size) else Dimension(size) for size in shape]
    return ValueInfo(name, TypeData(TensorType(number_of(dtype), ShapeData(sizes))))


def size_name(size: Size) -> str:
    """What the file calls a size that varies: the variable, or the expression."""
    ((term, factor), *more) = size.form.terms.items()
    if term.op is ops.SCALAR and not more and not size.form.constant:
        name = variable_name(term)
        if factor == 1 or str(term.arg[0]) == f"({name} / {factor})":
            return name
    return repr(size).partition(" = ")[0]


def variable_name(leaf: UOp) -> str:
    """The variable of a leaf, which counts in units of `multiple_of`."""
    return str(leaf.arg[0]).removeprefix("(").partition(" / ")[0]


def _frozen(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


def _attribute(name: str, value: Any) -> Attribute:
    if isinstance(value, str):
        return Attribute(name=name, s=Part.of(value.encode(), name), type=_TEXT)
    if isinstance(value, list):
        return Attribute(name=name, ints=value, type=_INTS)
    return Attribute(name=name, i=value, type=_INT)
