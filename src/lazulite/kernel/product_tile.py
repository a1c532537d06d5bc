"""Choose the register tile of a sum of products, by what it costs.

A tile is `rows` of one factor, read as scalars, times `vectors` of the other one along a range of the result.  Takes
`KernelFacts`, gives the cheapest `Tile`, or None for kernels of another kind; what operands cost until they lie as
a tile reads them is part of it, so the questions about copies are answered here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lazulite.analysis.contraction import contraction
from lazulite.analysis.kinds import own_cost
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.gates import split_gate
from lazulite.kernel.nest import by_order, count, extent, is_fixed
from lazulite.kernel.plan import rows_of

_MOST_VECTORS, _MOST_ROWS = 6, 28
_IN_FLIGHT = 8
"""Multiply-adds that two units have under way: a smaller tile waits for itself."""
_VECTOR_LOAD, _SCALAR_LOAD = 0.25, 0.03
"""Cycles that a load of a tile's turn costs beside the multiply-adds: vectors come from the second cache."""
_FAR_LOAD = 14
"""Cycles until a vector has come from memory, which the first rows that want it wait for."""
_COPY, _TRANSPOSE, _GATHER, _SCATTER = 0.15, 0.4, 1.5, 2.0
"""Cycles for an element that is copied in order, across, or from and to a place of its own."""
_COMPUTE = 0.5
"""Cycles of an instruction that computes with vectors."""
CHUNKS, FEW = 8, 4
"""Pieces of work to aim at, for a few threads to share evenly; and where each of them has to copy a whole operand."""


class Tile(NamedTuple):
    """One way to compute a product in registers, and what it costs in cycles."""

    node: UOp
    lane: UOp
    vectors: int
    rows: dict[UOp, int]
    vector_side: frozenset[UOp]
    scalar_side: frozenset[UOp]
    cost: float


def best_tile(facts: KernelFacts) -> Tile | None:
    """The cheapest tile, over the choices of which factor gives the vectors and along which range."""
    if len(facts.reductions) != 1 or any(store.op is not ops.STORE for store in facts.sink.src):
        return None
    (node,) = facts.reductions
    found = contraction(node)
    if found is None or set(facts.outer) != node.ranges or not _worthwhile(found.left, found.right):
        return None
    if not all(map(is_fixed, node.src[1:])) or (not all(map(is_fixed, node.ranges)) and any(facts.windows.values())):
        return None  # blocks of a sum, and windows, want sizes that are known
    work = {store: _epilogue(store, node) for store in facts.sink.src}
    choices = [_Lanes(facts, node, lane, mine, other, work)
               for mine, other in ((found.right, found.left), (found.left, found.right))
               for lane in by_order(mine) if extent(lane) > 1]  # fmt: skip
    return min([tile for lanes in choices for tile in lanes.tiles()], key=lambda tile: tile.cost, default=None)


def _worthwhile(left: Iterable[UOp], right: Iterable[UOp]) -> bool:
    """Whether both factors are read again often enough to be kept in registers."""
    return min(count(left), count(right)) >= 4 and max(count(left), count(right)) >= 8


class _Lanes:
    """The tiles with their vectors along one range, and what of their cost is the same for all of them."""

    def __init__(
        self, facts: KernelFacts, node: UOp, lane: UOp, mine: frozenset[UOp], other: frozenset[UOp],
        work: Mapping[UOp, int],
    ) -> None:  # fmt: skip
        """Takes in the side of the lane, the other one, and how many instructions make a result of a sum."""
        self.facts, self.node, self.lane, self.mine, self.other, self.work = facts, node, lane, mine, other, work
        self.vectors = [load for load in facts.hot if lane in load.ranges]
        self.scalars = sum([_scalar_cost(facts, load, node) for load in facts.hot if lane not in load.ranges])
        self.tall = _by_height(facts, lane, other)
        self.turns = count(node.src[0].ranges)
        self.waits = any(is_far(facts, load) for load in facts.panels)

    def tiles(self) -> Iterator[Tile]:
        """Tiles with one vector and more, whose rows are along fewer and fewer ranges."""
        facts, lane = self.facts, self.lane
        spare = 1 if facts.target.has(ops.FMA, self.node.dtype) else 2
        for vectors in range(1, min(_MOST_VECTORS, -(-extent(lane) // facts.lanes)) + 1):
            width = facts.lanes * vectors
            if facts.panels and {(lane, width)} != set(facts.panels.values()):
                continue
            most = min(_MOST_ROWS, (facts.target.registers - spare - vectors) // vectors)
            rows, copies = _rows(self.tall, most), self._copies(width)
            panels = -(-extent(lane) // width)
            if panels >= FEW and not stays_in_place(facts, self.node, lane, width):
                panels += panels % 2  # two threads share them, and one would wait for the last
            while True:
                cost = self._sums(vectors, panels, rows) + copies + self.scalars + self._stores(rows)
                yield Tile(self.node, lane, vectors, rows, self.mine, self.other, cost)
                if len(rows) < 2:
                    break
                rows = dict(list(rows.items())[:-1])

    def _sums(self, vectors: int, panels: int, rows: Mapping[UOp, int]) -> float:
        """The cycles that the sums take."""
        blocks = tall = 1
        inside = extent(self.lane)
        for r, size in rows.items():
            turns = extent(r)
            parts = -(-turns // size)
            blocks *= parts
            tall *= -(-turns // parts)
            inside *= turns
        turn = max(tall * vectors, tall + vectors, _IN_FLIGHT) / 2 + _VECTOR_LOAD * vectors + _SCALAR_LOAD * tall
        rest = self.turns // inside
        cost = rest * blocks * panels * turn
        if self.waits:
            cost += rest * panels * max(0, _FAR_LOAD * vectors - turn)
        return cost

    def _copies(self, width: int) -> float:
        return sum([_copy_cost(self.facts, load, self.lane, width) for load in self.vectors])

    def _stores(self, rows: Mapping[UOp, int]) -> float:
        """The cycles that it takes to make and store results of the sums."""
        return sum([_result_cost(self.facts, store, work, self.lane, rows) for store, work in self.work.items()])


def stays_in_place(facts: KernelFacts, node: UOp, lane: UOp, width: int) -> bool:
    """Whether the vectors are read where they are by everybody who wants them: nothing is copied, and all of it is
    small enough for each thread's cache."""
    return not any(is_copied(facts, load, node, lane, width) or _is_large(facts, load)
                   for load in facts.hot if lane in load.ranges)  # fmt: skip


def is_copied(facts: KernelFacts, load: UOp, node: UOp, lane: UOp, width: int) -> bool:
    """Whether the vectors of a load are better read from panels."""
    if facts.is_in_panels(load, lane, width) and is_factor(load, node):
        return False
    plain = len(load.src) == 2 and is_factor(load, node) and facts.stride(load, lane) == 1
    return _is_large(facts, load) or not plain


def _is_large(facts: KernelFacts, load: UOp) -> bool:
    return count(load.ranges) * load.dtype.itemsize > facts.target.l2 // 4


def is_far(facts: KernelFacts, load: UOp) -> bool:
    """Whether an operand is no good for a thread to read all of it again and again."""
    return 2 * count(load.ranges) * load.dtype.itemsize > facts.target.l2


def is_factor(load: UOp, node: UOp) -> bool:
    """Whether the load is multiplied as it is; what is converted first is better converted once."""
    return load in split_gate(ops.ADD, node.src[0])[1].src


def _by_height(facts: KernelFacts, lane: UOp, side: Iterable[UOp]) -> list[UOp]:
    """The ranges that may have rows: what is contiguous in the result where the lanes are not, then the longest."""
    store = facts.sink.src[0]
    across = facts.stride(store, lane) != 1
    free = [r for r in side if extent(r) > 1]
    return sorted(free, key=lambda r: (across and facts.stride(store, r) == 1, extent(r), r.arg[0]), reverse=True)


def _rows(tall: Iterable[UOp], most: int) -> dict[UOp, int]:
    """At most so many rows of a tile along these ranges."""
    rows: dict[UOp, int] = {}
    for r in tall:
        if most >= 2:
            rows[r] = min(extent(r), most)
            most //= rows[r]
    return rows


def _copy_cost(facts: KernelFacts, load: UOp, lane: UOp, panel: int) -> float:
    """What it costs to have the vectors of a load contiguous."""
    if facts.is_in_panels(load, lane, panel):
        return 0.0
    if facts.stride(load, lane) == 1:
        return _COPY * elements(load)
    near = any(facts.stride(load, r) == 1 for r in load.ranges)
    return (_TRANSPOSE if near else _GATHER) * count(load.ranges) / facts.still.get(load, 1)


def _scalar_cost(facts: KernelFacts, load: UOp, node: UOp) -> float:
    """What it costs to have the scalars of a tile near each other."""
    sums = [r for r in node.src[1:] if r in load.ranges and extent(r) > 1]
    if not sums or (len(load.src) == 2 and facts.stride(load, by_order(sums)[-1]) == 1):
        return 0.0
    return (_COPY if facts.windows[load] else _TRANSPOSE) * elements(load)


def elements(load: UOp) -> int:
    """How many elements of memory a load reads, each counted once."""
    return int(min(count(load.ranges), load.src[0].arg[1][0]))


def _result_cost(facts: KernelFacts, store: UOp, work: int, lane: UOp, rows: Mapping[UOp, int]) -> float:
    """What it costs to store all results, and to make them with so many instructions each: in vectors along memory,
    which rows of a tile may not fill."""
    turns, each, width = count(store.ranges), _COPY, facts.lanes
    if facts.stride(store, lane) != 1:
        along = [rows_of(r, most) for r, most in rows.items() if facts.stride(store, r) == 1]
        each, width = _TRANSPOSE if along else _SCATTER, max([1, *[min(width, size) for size in along]])
    return each * turns + work * (_COMPUTE * turns / width)


def _epilogue(store: UOp, node: UOp) -> int:
    """How many instructions make an element of a result of that of the sum."""
    above = toposort(store.src[2], enter=lambda n: n is not node)
    return sum(own_cost(n) for n in above if n.op in ops.ELEMENTWISE and n.dtype is not dtypes.index)


def panel_share(facts: KernelFacts, tile: Tile, load: UOp) -> float:
    """The part of the work that it is to copy the vectors of a load into panels."""
    width = tile.vectors * facts.lanes
    if tile.lane not in load.ranges or len(load.src) > 2 or facts.windows[load] or not is_factor(load, tile.node):
        return 0.0
    if not is_copied(facts, load, tile.node, tile.lane, width):
        return 0.0
    times = CHUNKS if extent(tile.lane) < FEW * width else 1
    return times * _copy_cost(facts, load, tile.lane, width) / tile.cost
