"""Which axis of an intermediate lies innermost in memory.

A value is written row by row as its shape says, unless all kernels that touch it are better served otherwise.  A sum of
products takes scalars from one factor, in the order of the sum, and its results are vectors along a range of the other
one: so a convolution likes to read and to write images with their channels innermost, whatever the program says.
Takes kernels in order and gives, for each intermediate that had better lie in another way, the axis that comes last.
Other kernels follow: they want their operands to lie as their results do.  Nothing is computed in another order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.analysis.contraction import Contraction, contraction
from lazulite.analysis.kinds import LONG, crosses
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import DType
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.cuts import extent_of
from lazulite.schedule.kernels import Kernel, Memory

_WIDE = 16
"""The turns of an axis below which its elements make no vector."""
_AS_IT_IS = -1
"""The wish that a value lies row by row, as its shape says."""
_SMALL = 4
"""How many times larger than an operand a result is for which it does not matter how the operand lies."""


@dataclass(frozen=True, slots=True)
class _Load:
    """A load, with the ranges along which it moves, and how far; None where it moves otherwise."""

    slot: int
    dtype: DType
    steps: Mapping[UOp, int] | None
    product: Contraction | None
    """The sum of products whose factor it is."""


@dataclass(frozen=True, slots=True)
class _Walks:
    """How a kernel walks memory."""

    loads: Sequence[_Load]
    stores: Mapping[int, Mapping[int, UOp]]
    """For each slot that is written, the ranges by how far they move."""
    products: Sequence[Contraction]


_User = tuple[Kernel, _Walks]


@dataclass(slots=True)
class _Users:
    """Who writes and who reads each intermediate."""

    writer: dict[UOp, _User] = field(default_factory=dict)
    readers: dict[UOp, list[_User]] = field(default_factory=dict)
    barred: set[UOp] = field(default_factory=set)
    """Values that have to lie as their shapes say: others than kernels of the graph's own see their memory, or it has
    several writers."""

    def enter(self, kernel: Kernel, walks: _Walks) -> None:
        for memory in _values([memory for memory, _ in kernel.writes]):
            if memory in self.writer or len(kernel.sink.src) > 1:
                self.barred.add(memory)
            self.writer[memory] = kernel, walks
        for memory in _values(kernel.reads):
            self.readers.setdefault(memory, []).append((kernel, walks))

    def bar(self, kernel: Kernel) -> None:
        self.barred.update(_values(kernel.memories))


@dataclass(slots=True)
class _Axes:
    """What is known of the values while their axes are chosen."""

    last: dict[UOp, int] = field(default_factory=dict)
    """The axis wanted last, of values that would lie otherwise."""

    def innermost(self, memory: Memory | None, walked: Mapping[int, UOp]) -> UOp | None:
        """The range by which a kernel walks memory element by element; `walked` has its ranges by how far they move in
        memory row by row."""
        if isinstance(memory, UOp) and memory in self.last:
            return walked.get(_strides(memory.shape)[self.last[memory]])
        return walked.get(1)


def last_axes(kernels: Sequence[Kernel], barred: Collection[UOp] = ()) -> dict[UOp, int]:
    """The axis that lies innermost, for each intermediate that does not lie row by row; those `barred` do."""
    known: dict[UOp, _Walks] = {}
    users = _Users(barred=set(barred))
    for kernel in kernels:
        if kernel.group.root.op is ops.LAUNCH or crosses(kernel.group.root):
            users.bar(kernel)
            continue
        if kernel.sink not in known:
            known[kernel.sink] = _walks(kernel.sink)
        users.enter(kernel, known[kernel.sink])
    if not any(walks.products for walks in known.values()):
        return {}
    while True:
        axes = _Axes()
        for value in reversed(users.writer):  # readers before writers: most want what their own readers do
            if value not in users.barred and (axis := _wanted(value, users.readers.get(value, ()), axes)) is not None:
                axes.last[value] = axis
        refused = [value for value in axes.last if not _is_welcome(value, *users.writer[value], axes)]
        if not refused:
            return axes.last
        users.barred.update(refused)


def _values(memories: Iterable[Memory]) -> list[UOp]:
    return [memory for memory in memories if isinstance(memory, UOp)]


def _walks(sink: UOp) -> _Walks:
    nodes = toposort(sink)
    products = [found for node in nodes if (found := _product(node)) is not None]
    factors = {load: product for product in products for load in toposort(product.product) if load.op is ops.LOAD}
    loads = [_Load(n.src[0].arg[0], n.dtype, _steps(n), factors.get(n)) for n in nodes if n.op is ops.LOAD]
    stores = {store.src[0].arg[0]: {step: r for r, step in (_steps(store) or {}).items()} for store in sink.src}
    return _Walks(loads, stores, products)


def _product(node: UOp) -> Contraction | None:
    """A sum of products that is large enough for its operands' places in memory to matter."""
    if node.op is not ops.REDUCE or math.prod(map(extent_of, node.src[0].ranges)) < LONG:
        return None
    return contraction(node)


def _steps(access: UOp) -> Mapping[UOp, int] | None:
    form = linear(access.src[1])
    return form.terms if all(term.op is ops.RANGE for term in form.terms) else None


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


# --- what readers want --------------------------------------------------------------------------


def _wanted(value: UOp, readers: Sequence[_User], axes: _Axes) -> int | None:
    """The axis that all readers of a value want last, if it is not last already."""
    if not all(isinstance(size, int) for size in value.shape) or max(value.shape, default=1) < _WIDE:
        return None
    wishes = [wish for kernel, walks in readers for wish in _wishes(value, kernel, walks, axes)]
    found = {axis for axis in wishes if axis is not None}
    if len(found) != 1:
        return None
    (axis,) = found
    return axis if value.shape[axis] >= _WIDE and _strides(value.shape)[axis] > 1 else None


def _wishes(value: UOp, kernel: Kernel, walks: _Walks, axes: _Axes) -> Iterator[int | None]:
    """The axes that a kernel wants last; None where it does not matter."""
    for load in walks.loads:
        if kernel.arguments[load.slot].memory is value:
            if load.steps is None or load.dtype is not value.dtype:
                yield _AS_IT_IS
            elif load.product is not None:
                yield _for_product(value, load.steps, load.product)
            else:
                yield from (_beside(value, load.steps, axes.innermost(kernel.arguments[slot].memory, walked))
                            for slot, walked in walks.stores.items())  # fmt: skip


def _for_product(value: UOp, steps: Mapping[UOp, int], product: Contraction) -> int | None:
    """The axis that a sum runs along, where the value does not give vectors as it lies: it is read there in order."""
    strides = _strides(value.shape)
    on_axis: dict[int, list[UOp]] = {}
    for r, step in steps.items():
        on_axis.setdefault(next(axis for axis, stride in enumerate(strides) if abs(step) >= stride), []).append(r)
    last = on_axis.get(max(axis for axis, size in enumerate(value.shape) if size > 1), [])
    longest = max(last, key=extent_of, default=None)
    if longest is None or longest in product.reduction:
        return _AS_IT_IS
    if last == [longest] and steps[longest] == 1:
        return None
    summed = [axis for axis, (r, *more) in on_axis.items() if not more and r in product.reduction
              and steps[r] == strides[axis] and extent_of(r) == value.shape[axis]]  # fmt: skip
    return summed[0] if len(summed) == 1 else _AS_IT_IS


def _beside(value: UOp, steps: Mapping[UOp, int], innermost: UOp | None) -> int | None:
    """The axis along which the results of a kernel lie in order."""
    if innermost is None or innermost not in steps:
        return None
    strides, step = _strides(value.shape), steps[innermost]
    whole = step in strides and extent_of(innermost) == value.shape[strides.index(step)]
    return strides.index(step) if whole else _AS_IT_IS


# --- what writers accept ------------------------------------------------------------------------


def _is_welcome(value: UOp, kernel: Kernel, walks: _Walks, axes: _Axes) -> bool:
    """Whether a kernel writes a value as well with that axis innermost as it does now."""
    ((_, walked),) = walks.stores.items()
    innermost, row = axes.innermost(value, walked), walked.get(1)
    if innermost is None or row is None:
        return False
    if walks.products:
        return len(walks.products) == 1 and _may_be_vectors(walks.products[0], innermost, row)
    return all(_follows(load, kernel, innermost, axes, value) for load in walks.loads)


def _may_be_vectors(product: Contraction, innermost: UOp, row: UOp) -> bool:
    """Whether vectors of results may run along either range: each belongs to another factor."""
    one, other = product.left, product.right
    return (innermost in one and row in other) or (innermost in other and row in one)


def _follows(load: _Load, kernel: Kernel, innermost: UOp, axes: _Axes, value: UOp) -> bool:
    """Whether an operand lies as the result is to lie, or is small."""
    if load.steps is None:
        return False
    if _SMALL * math.prod(map(extent_of, load.steps)) <= math.prod(value.shape):
        return True
    return axes.innermost(kernel.arguments[load.slot].memory, {s: r for r, s in load.steps.items()}) is innermost
