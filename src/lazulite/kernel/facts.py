"""What the choice of steps wants to know about a kernel: its ranges, and how memory is walked along each.

Takes a `KERNEL`; everything is computed once.  A stride is in elements; None stands for an index that
is not linear in the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lazulite.analysis.kinds import own_cost
from lazulite.analysis.repeats import repeats
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import NARROW, dtypes
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, nodes_of, toposort
from lazulite.kernel.nest import by_order, count, extent
from lazulite.kernel.panels import panels
from lazulite.kernel.windows import windows

_GATHER = 1.3
"""What an element costs that has a place of its own, beside a vector load or store that costs 1."""
_SCATTER = 4.0
"""The same for a store, which writes a part of a cache line each."""
_WORTH_A_COPY = 16
_FEW_USES = 2
_REUSE = 8
"""How often a register tile uses a value that it has loaded, where it can at all."""


@dataclass(frozen=True, eq=False)
class KernelFacts:
    """A kernel and what follows from it."""

    sink: UOp
    target: Target
    still: Mapping[UOp, int] = field(default_factory=dict)
    """Loads of which one copy serves several turns of the loop around a statement, and how many."""

    @cached_property
    def nodes(self) -> list[UOp]:
        return nodes_of(self.sink)

    @cached_property
    def reductions(self) -> list[UOp]:
        return [node for node in self.nodes if node.op is ops.REDUCE]

    @cached_property
    def reduced(self) -> frozenset[UOp]:
        """The ranges that reductions close."""
        return frozenset(r for node in self.reductions for r in node.src[1:])

    @cached_property
    def outer(self) -> list[UOp]:
        """The ranges of the stores, outermost first."""
        return by_order(node for node in self.nodes if node.op is ops.RANGE and node not in self.reduced)

    @cached_property
    def serial(self) -> frozenset[UOp]:
        """The ranges whose turns may store to the same element: they have to stay loops, in order."""
        return frozenset(
            r
            for store in self.sink.src
            if store.op is ops.STORE
            for r in repeats(store.src[1], [r for r in store.ranges if extent(r) != 1])
        )

    @cached_property
    def accesses(self) -> list[UOp]:
        """The loads and stores."""
        return [node for node in self.nodes if node.op in (ops.LOAD, ops.STORE)]

    @cached_property
    def _strides(self) -> dict[UOp, dict[UOp, int | None]]:
        return {node: _strides_of(node.src[1]) for node in self.accesses}

    def stride(self, access: UOp, r: UOp) -> int | None:
        """How far the index moves from one turn of the range to the next."""
        return self._strides[access].get(r, 0)

    @cached_property
    def panels(self) -> dict[UOp, tuple[UOp, int]]:
        """The loads from panels, each with the range of their vectors and their width."""
        return panels(self.reductions)

    def is_in_panels(self, load: UOp, r: UOp, width: int) -> bool:
        """Whether neighbouring turns of a range are neighbours in memory, in blocks of so many turns one by one."""
        return self.panels.get(load) == (r, width) or (self.stride(load, r) == 1 and extent(r) <= width)

    @cached_property
    def lanes(self) -> int:
        """How many elements a vector has: as many as of the widest type that the kernel computes with fit."""
        types = {n.dtype for n in self.nodes if n.op in ops.ELEMENTWISE or n.op in (ops.LOAD, ops.CONST)}
        sizes = [max(t.itemsize, 4 if t in NARROW else 1)
                 for t in types if t not in (dtypes.index, dtypes.bool, dtypes.void)]  # fmt: skip
        return max(2, self.target.vector_bytes // max(sizes, default=4))

    @cached_property
    def hot(self) -> dict[UOp, UOp]:
        """For each load in a reduction's value, the reduction (the innermost, if they nest)."""
        return {n: node for node, inside in self.inside.items() for n in inside if n.op is ops.LOAD}

    @cached_property
    def inside(self) -> dict[UOp, list[UOp]]:
        """What each reduction computes at every turn, reductions below it apart."""
        return {node: _inside(node) for node in self.reductions}

    @cached_property
    def turn_costs(self) -> dict[UOp, int]:
        """The cost of that."""
        return {node: sum([own_cost(n) for n in inside if _is_computed(n)]) for node, inside in self.inside.items()}

    @cached_property
    def windows(self) -> dict[UOp, list[list[UOp]]]:
        """For each of these loads its ranges by the axis of memory that they move along, where some share one."""
        return {load: windows(load) for load in self.hot}

    def panel_bytes(self, load: UOp, reduction: UOp) -> int:
        """The scratch memory for two vectors of a load at every turn of its reduction."""
        return count(r for r in reduction.src[1:] if r in load.ranges) * 2 * self.lanes * load.dtype.itemsize

    @property
    def panel_limit(self) -> int:
        """The largest panel that leaves room in the second cache for what is read beside it."""
        return self.target.l2 * 3 // 4

    def _can_stage(self, load: UOp, reduction: UOp) -> bool:
        """Whether a panel of the operand fits the cache and is read often enough to be worth its copy."""
        again = max((extent(r) for r in reduction.ranges - load.ranges), default=1)
        return again >= _WORTH_A_COPY and self.panel_bytes(load, reduction) <= self.panel_limit

    def work(self, lanes: Iterable[UOp]) -> float:
        """An estimate of the instructions that run when these ranges become lanes of vectors."""
        chosen = frozenset(lanes)
        if chosen not in self._worked_out:
            sums, computed = [self._cost(node, chosen) for node in self._working], self._computed.items()
            self._worked_out[chosen] = sum(sums) + sum([self._turns(r, chosen) * cost for r, cost in computed])
        return self._worked_out[chosen]

    @cached_property
    def _worked_out(self) -> dict[frozenset[UOp], float]:
        """The answers of `work` so far."""
        return {}

    @cached_property
    def _working(self) -> list[UOp]:
        """The nodes that are instructions whose number depends on which ranges are lanes."""
        return [*self.reductions, *self.accesses]

    @cached_property
    def _computed(self) -> dict[frozenset[UOp], float]:
        """What it takes to compute an element of each value, those that vary with the same ranges together."""
        costs: dict[frozenset[UOp], float] = {}
        for node in self.nodes:
            if _is_computed(node):
                costs[node.ranges] = costs.get(node.ranges, 0.0) + max(own_cost(node), 0.5)
        return costs

    @cached_property
    def variations(self) -> frozenset[frozenset[UOp]]:
        """The ranges with which values vary."""
        return frozenset([node.ranges for node in self.nodes])

    def _turns(self, ranges: Iterable[UOp], chosen: frozenset[UOp]) -> float:
        turns = 1.0
        for r in ranges:
            turns *= -(-extent(r) // self.lanes) if r in chosen else extent(r)
        return turns

    def _cost(self, node: UOp, chosen: frozenset[UOp]) -> float:
        if node.op is ops.REDUCE:
            across = 12.0 if chosen.intersection(node.src[1:]) else 0.0
            return self._turns(node.src[0].ranges, chosen) + across * count(node.ranges)
        return self._access_cost(node, chosen, self._turns(node.ranges, chosen))

    def _access_cost(self, access: UOp, chosen: frozenset[UOp], turns: float) -> float:
        lane = next(iter(chosen & access.ranges), None)
        step = 0 if lane is None else self.stride(access, lane)
        gated = len(access.src) > (2 if access.op is ops.LOAD else 3)
        each = 4.0 if lane is None and gated else 1.0
        if step not in (0, 1, -1):
            each = self.lanes * (_GATHER if access.op is ops.LOAD else _SCATTER)
        reduction = self.hot.get(access)
        if reduction is None:
            return turns * each
        # A register tile reuses what it has loaded; a panel is copied once and then read in order.
        reuse = _FEW_USES if lane is None and gated else _REUSE
        uses = max(turns, self._turns(reduction.src[0].ranges, chosen) / reuse)
        if each > 1.0 and lane is not None and lane not in reduction.src and self._can_stage(access, reduction):
            return turns * each + uses
        return uses * each


def _inside(reduction: UOp) -> list[UOp]:
    inside = toposort(reduction.src[0], enter=lambda n: n.op is not ops.REDUCE)
    return [n for n in inside if n.op is not ops.REDUCE and not n.ranges.isdisjoint(reduction.src[1:])]


def _is_computed(node: UOp) -> bool:
    """Whether a node is an instruction that computes a value."""
    return node.op in ops.ELEMENTWISE and node.dtype is not dtypes.index


def _strides_of(index: UOp) -> dict[UOp, int | None]:
    strides: dict[UOp, int | None] = {}
    for term, factor in linear(index).terms.items():
        if term.op is ops.RANGE:
            strides[term] = None if term in strides else factor
        else:
            strides.update(dict.fromkeys(term.ranges))
    return strides
