"""Nodes of the `TENSOR` language as nodes of ONNX: one rule for each op, in tables.

Takes graphs over the stand-ins of a function's arguments, gives the names of their values in the file.  A node becomes
one or a few standard operators; what does not depend on an argument becomes an initializer, computed before where
that takes no more memory.  Invariant: nothing is left out in silence; what ONNX cannot say raises with its line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from lazulite.base.errors import FormatError
from lazulite.base.origin import Origin
from lazulite.engine.storage import fill_of, filled, storage_of
from lazulite.formats.onnx import export_elements, export_products, export_scatter, export_shapes, export_windows
from lazulite.formats.onnx.export_graph import GraphWriter, Value, number_of
from lazulite.formats.onnx.proto import ValueInfo
from lazulite.ir import ops
from lazulite.ir.bounds import Linear
from lazulite.ir.calls import device_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import Size, least, variables_in
from lazulite.ir.uop import UOp, toposort
from lazulite.tensor.tensor import Tensor

_SAME = frozenset({ops.COPY, ops.DETACH, ops.FUNCTION})
"""Nodes whose value is that of their first source."""
INEXPRESSIBLE = frozenset({ops.THREEFRY, ops.DOT2, ops.CALL, ops.LAUNCH, ops.AFTER, ops.STORE})
"""Ops that ONNX has nothing for, but for some LAUNCHes; constants that are made by them are computed."""
_LITTLE = 64
"""Bytes of a constant that is computed rather than written as operators."""


class Export:
    """Writes the nodes of one model."""

    def __init__(self, opset: int, names: Mapping[str, Tensor]) -> None:
        self.graph, self.opset = GraphWriter(), opset
        self.values: dict[UOp, Value] = {}
        self.names = {tensor.uop: name for name, tensor in names.items()}
        self.held: dict[UOp, float] = {}
        """How many bytes of memory a value is made of that depends on no argument; infinite if it must be computed."""
        self.data: dict[UOp, memoryview] = {}

    def input(self, name: str, node: UOp) -> ValueInfo:
        """Declare an input."""
        self.values[node] = self.graph.named(name)
        return self.graph.input(self.values[node], node.dtype, node.shape)

    def emit(self, roots: Sequence[UOp]) -> None:
        """Write what the roots are made of."""
        self._measure(roots)
        order = toposort(*roots, enter=lambda node: node not in self.values and not self._is_computed(node))
        self._compute([node for node in order if self._is_computed(node) and node not in self.values])
        for node in order:
            if node not in self.values:
                self.values[node] = self._written(node)

    def of(self, node: UOp) -> Value:
        """The value of a node, which is written if it is new."""
        if node not in self.values:
            self.emit([node])
        return self.values[node]

    # --- constants ------------------------------------------------------------------------------------

    def _measure(self, roots: Sequence[UOp]) -> None:
        for node in toposort(*roots, enter=lambda node: node not in self.held and node not in self.values):
            if node in self.values or node in self.held or _varies(node):
                continue
            if any(source not in self.held for source in node.src):
                continue
            if node.op is ops.BUFFER:
                self.held[node] = 0 if fill_of(node) is not None else _nbytes(node)
            else:
                below = math.inf if node.op in INEXPRESSIBLE or _is_unspoken(node, self.opset) else 0
                self.held[node] = below + sum([self.held[source] for source in set(node.src)])

    def _is_computed(self, node: UOp) -> bool:
        """Whether a value is computed now: it depends on no argument, and takes no more memory than what it is of."""
        held = self.held.get(node)
        if held is None or node.op in (ops.CONST, ops.IOTA) or node.op in ops.MOVEMENT or node.dtype is dtypes.index:
            return False
        return (node.op is ops.BUFFER and held > 0) or (
            node.op is not ops.BUFFER and _nbytes(node) <= max(held, _LITTLE)
        )

    def _compute(self, nodes: Sequence[UOp]) -> None:
        tensors = [Tensor(node, device=device_of(node) or None) for node in nodes]
        if tensors:
            tensors[0].realize(*tensors[1:])
        for node, tensor in zip(nodes, tensors, strict=True):
            self.data[node] = tensor.data()
            name = self.names.get(node, "")
            self.values[node] = self.graph.constant(node.dtype, node.shape, self.data[node], name)

    # --- other values ---------------------------------------------------------------------------------

    def _written(self, node: UOp) -> Value:
        rule = RULES.get(node.op)
        value = rule(self, node) if rule is not None else None
        if node.op in ops.MOVEMENT:
            value = export_shapes.moved(self.graph, node, self.of(node.src[0]))
        elif value is None and node.op in ops.ELEMENTWISE and rule is None:
            value = export_elements.elementwise(self.graph, node.op, self.operands(node), node.src[-1].dtype)
        if value is None:
            error = FormatError(
                "to_onnx", f"ONNX has no operators for {_described(node)}", about={"value": node},
                hint=_HINTS.get(node.op, ""),
            )  # fmt: skip
            error.add_origin(node.origin if isinstance(node.origin, Origin) else None)
            raise error
        return value

    def operands(self, node: UOp) -> list[Value]:
        """The operands of an elementwise node, without what repeats them where ONNX repeats them itself."""
        plain = [_unspread(source) for source in node.src]
        covered = all(
            any(len(p.shape) >= place and p.shape[-place] == node.shape[-place] for p in plain)
            for place in range(1, len(node.shape) + 1)
        )
        if not covered:
            first = next(place for place, source in enumerate(node.src) if source.shape)
            plain[first] = node.src[first]
        return [self.of(each) for each in plain]

    def lies_in(self, positions: UOp, size: int) -> bool:
        """Whether int32 positions are known to lie below a size."""
        data = self.data.get(positions)
        low, high = (
            positions.bounds if data is None else (min(data.cast("i"), default=0), max(data.cast("i"), default=0))
        )
        return 0 <= low and high < least(size)


def _unspread(node: UOp) -> UOp:
    while node.op is ops.EXPAND:
        node = node.src[0]
    return node


def _varies(node: UOp) -> bool:
    """Whether a value is another one in another call, whatever it is made of."""
    if node.op is ops.FUNCTION:
        return bool(node.arg.mark)
    return node.op is ops.SCALAR or next(variables_in(node.arg), None) is not None


def _nbytes(node: UOp) -> int:
    return math.prod(node.shape) * node.dtype.itemsize


def _is_unspoken(node: UOp, opset: int) -> bool:
    """Whether a node of an op that ONNX has is one that it lacks."""
    if node.op is ops.REDUCE:
        return node.dtype is not dtypes.bool and node.arg[0] in (ops.AND, ops.OR)
    if node.op is not ops.BITCAST:
        return False
    kinds = node.dtype, node.src[0].dtype
    return kinds[0].itemsize != kinds[1].itemsize or (any(kind.is_float for kind in kinds) and opset < 26)


def _described(node: UOp) -> str:
    if node.op is ops.LAUNCH:
        return "a hand-written kernel"
    if node.op is ops.THREEFRY:
        return "random draws"
    if node.op is ops.BITCAST:
        return f"a bit cast from {node.src[0].dtype.name} to {node.dtype.name} in this version"
    return f"a reduction by {node.arg[0].name}" if node.op is ops.REDUCE else node.op.name


_HINTS = {
    ops.THREEFRY: "draw outside and give the numbers as an argument; in eval mode dropout draws none",
    ops.LAUNCH: "long rows are sorted by such kernels, matrices solved: do that outside of the exported function",
    ops.BITCAST: "opset=26 has casts of bits between types of one width",
}


# --- one rule for each op that is neither movement nor elementwise -----------------------------------


def _constant(export: Export, node: UOp) -> Value:
    return export.graph.scalar(node.dtype, node.value)


def _memory(export: Export, node: UOp) -> Value:
    """Memory that holds one value everywhere; any other has been read."""
    return export.of(filled(storage_of(node)))


def _size(export: Export, node: UOp) -> Value:
    return export.graph.size(Size(Linear(0, {node: 1})))


def _source(export: Export, node: UOp) -> Value:
    return export.of(node.src[0])


def _cast(export: Export, node: UOp) -> Value:
    return export_elements.cast(export.graph, export.of(node.src[0]), node.src[0].dtype, node.dtype)


def _bitcast(export: Export, node: UOp) -> Value | None:
    (source,) = node.src
    if _is_unspoken(node, export.opset):
        return None
    if source.dtype.is_float or node.dtype.is_float:
        return export.graph.node("BitCast", export.of(source), to=number_of(node.dtype))
    return export.graph.cast(export.of(source), source.dtype, node.dtype)


def _reduce(export: Export, node: UOp) -> Value | None:
    found = export_products.product_of(node)
    if found is not None:
        return export_products.product(export.graph, found, export.of)
    pool = export_windows.pooling_of(node)
    if pool is not None:
        return export_windows.pooled(export.graph, pool, export.of(pool.data))
    return export_shapes.reduced(export.graph, node, export.of(node.src[0]))


def _gather(export: Export, node: UOp) -> Value:
    x, *positions = node.src
    inside = [export.lies_in(position, x.shape[axis]) for axis, position in enumerate(positions)]
    return export_shapes.gathered(export.graph, node, export.of(x), [export.of(p) for p in positions], inside)


def _launch(export: Export, node: UOp) -> Value | None:
    found = export_scatter.scatter_of(node)
    if found is None:
        return None
    memory, places, values = [export.of(each) for each in found[:3]]
    return export_shapes.scattered(export.graph, node, memory, places, values, found.reduction)


def _write(export: Export, node: UOp) -> Value:
    return export.of(export_shapes.written(node))


RULES: dict[ops.Op, Callable[[Export, UOp], Value | None]] = {
    ops.CONST: _constant,
    ops.BUFFER: _memory,
    ops.SCALAR: _size,
    ops.IOTA: lambda export, node: export_shapes.counted(export.graph, node),
    ops.CAST: _cast,
    ops.BITCAST: _bitcast,
    ops.REDUCE: _reduce,
    ops.GATHER: _gather,
    ops.WRITE: _write,
    ops.LAUNCH: _launch,
    **dict.fromkeys(_SAME, _source),
}
