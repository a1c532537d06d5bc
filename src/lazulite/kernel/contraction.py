"""Choose the blocks of a sum of products whose factors have output ranges of their own.

Matrix products, convolutions and their gradients are one problem: a tile of results stays in registers
(`kernel/product_tile.py`).  The scalars of a tile stay in the first cache, a block of vectors in the second, and long
sums are cut so that both fit.  An operand that is awkward to read is copied in the order in which it will be read; a
window over an image is copied with its border of zeros.
Takes `KernelFacts`, gives schedule steps, or None for kernels of another kind.  The result does not depend on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from lazulite.ir import ops
from lazulite.ir.dtype import NARROW
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.epilogue_choice import choose_epilogue
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.gates import split_gate
from lazulite.kernel.nest import by_order, count, extent, is_fixed
from lazulite.kernel.plan import Part, Plan
from lazulite.kernel.product_tile import (
    CHUNKS,
    FEW,
    Tile,
    best_tile,
    elements,
    is_copied,
    is_factor,
    is_far,
    stays_in_place,
)  # fmt: skip
from lazulite.kernel.steps import Axis, Epilogue, Name, Parallel, Prefetch, Reorder, Split, Stage, Step

_NEAR, _LONGEST = 0.6, 1280
"""The part of the first cache that the scalars of a block of a sum fill, and the most turns of one, as its error grows
with them.  A sum is cut whose scalars fill all of the cache."""
_TALL = 8
"""How many times longer the side of the scalars must be to be shared instead of that of the vectors."""
_FEWEST = 4
"""Rows side by side from which on it pays to make them lanes once they are computed."""
_FORK = 60_000 * 2.8
"""Cycles of one thread below which others are not worth it."""


@dataclass
class Loops:
    """The loops that the cuts leave, by their role."""

    batch: list[Name] = field(default_factory=list)
    blocks: list[Name] = field(default_factory=list)
    """Loops over blocks of results, which threads share."""
    sums: list[Name] = field(default_factory=list)
    """Loops over blocks of a sum."""
    rows: list[Name] = field(default_factory=list)
    panels: list[Name] = field(default_factory=list)


def choose_product(facts: KernelFacts) -> tuple[Step, ...] | None:
    """The steps for a kernel whose work is one sum of products."""
    tile = best_tile(facts)
    return None if tile is None else _Scheduler(facts, tile).steps()


class _Scheduler:
    """Cuts the ranges of a kernel for a tile, orders the loops, and has operands copied."""

    def __init__(self, facts: KernelFacts, tile: Tile) -> None:
        self.facts, self.tile, self.plan = facts, tile, Plan()
        self.parts: dict[UOp, list[Part]] = {}
        self.loops = Loops()
        self.inner: dict[UOp, list[Name]] = {}
        """What is left of each reduced range inside of a block of the sum."""
        self.inside = 1
        """How many turns that is, or the most that it may be."""
        loads, factors = list(facts.hot), split_gate(ops.ADD, tile.node.src[0])[1].src
        self.factors = {n: factor for factor in factors[::-1] for n in toposort(factor) if n.op is ops.LOAD}
        self.vectors = [load for load in loads if tile.lane in load.ranges]
        self.scalars = [load for load in loads if tile.lane not in load.ranges]
        self.windows = facts.windows
        self.moved = {r for groups in self.windows.values() for group in groups if len(group) > 1 for r in group}
        """Ranges that share an axis of an operand with others: their blocks must be of one size."""

    def steps(self) -> tuple[Step, ...]:
        self._cut_sum()
        self._cut_rows()
        self._cut_panels()
        self._order()
        self.plan.steps += [step for load in self._carriers() if (step := self._stage(load))]
        self.plan.steps += self._prefetches()
        self.plan.steps += [*map(Epilogue, self._rows_of_memory())] or self._long_epilogue()
        if self.tile.cost >= _FORK:
            self._share()
        return tuple(self.plan.steps)

    # --- cuts -----------------------------------------------------------------------------------

    def _cut_sum(self) -> None:
        """Blocks of a long sum: whole outer ranges, and a part of the range at which it becomes too long."""
        inside = 1
        reduced = by_order(self.tile.node.src[1:])
        room = self.facts.target.l1 * count(reduced) // max(1, self._scalar_bytes())
        cut, most = self._can_cut() and count(reduced) >= min(room, _LONGEST), max(1, min(int(_NEAR * room), _LONGEST))
        outward = reduced[::-1]
        for r in sorted(outward, key=lambda r: r not in self.moved):  # a window is not torn apart
            name, turns = r.arg[0], extent(r)
            if not cut or inside * turns <= most:
                self.inner[r] = [name]
                inside *= turns
            elif (size := self._block(r, max(1, most // inside))) == 1:
                self.loops.sums.insert(0, name)
                inside = most
            else:
                self.plan.steps.append(Split(name, size))
                self.loops.sums.insert(0, (*name, 0))
                self.inner[r] = [(*name, 1)]
                inside = most
        self.inner, self.inside = {r: self.inner[r] for r in reduced if r in self.inner}, inside

    def _scalar_bytes(self) -> int:
        """How much memory the scalars of a tile take, over the whole sum; what windows share counts once."""
        return sum(self._places(load) * load.dtype.itemsize for load in self.scalars)

    def _places(self, load: UOp) -> int:
        turns = {r: extent(r) for r in self.tile.node.src[1:]} | self.tile.rows
        places = 1
        for group in self.windows[load] or [[r] for r in load.ranges]:
            steps = {r: abs(self.facts.stride(load, r) or 1) for r in group}
            moves = [step // gcd(*steps.values()) * (turns.get(r, 1) - 1) for r, step in steps.items()]
            places *= min(1 + sum(moves), prod(turns.get(r, 1) for r in group))
        return places

    def _block(self, r: UOp, most: int) -> int:
        """How many turns of a range go into a block: a divisor where there is a good one, else equal blocks."""
        turns = extent(r)
        exact = _divisor(turns, most)
        return exact if r in self.moved or 2 * exact > most else -(-turns // -(-turns // most))

    def _can_cut(self) -> bool:
        """Whether partial sums can wait in the memory of the result."""
        store, *others = self.facts.sink.src
        read = any(load.op is ops.LOAD and load.src[0] is store.src[0] for load in self.facts.accesses)
        narrow = self.tile.node.dtype in NARROW
        return not others and not read and not narrow and self.tile.node.dtype is store.src[0].dtype

    def _cut_rows(self) -> None:
        for r in by_order(self.tile.scalar_side):
            size = self.tile.rows.get(r, 1)
            if size == 1:
                self.parts[r] = [_whole(r)]
            elif is_fixed(r):
                self.parts[r] = self.plan.rows(r.arg[0], extent(r), size)
            else:
                self.parts[r] = self.plan.open_rows(r.arg[0], r.src[0], size)

    def _cut_panels(self) -> None:
        for r in by_order(self.tile.node.ranges - self.tile.scalar_side):
            self.parts[r] = self._vectors(r) if r is self.tile.lane else [_whole(r)]

    def _vectors(self, r: UOp) -> list[Part]:
        lanes, vectors = self.facts.lanes, self.tile.vectors
        if not is_fixed(r):
            return self.plan.open_vectors(r.arg[0], r.src[0], lanes, vectors)
        return self.plan.vectors(r.arg[0], extent(r), lanes, vectors, masked=self.facts.target.vector_bytes == 64)

    # --- order ----------------------------------------------------------------------------------

    def _order(self) -> None:
        """The nest around blocks, then rows, and panels of vectors innermost."""
        tile, loops = self.tile, self.loops
        loops.rows = [p.loop for r in self._tall() for p in self.parts[r] if p.turns > 1]
        loops.panels = [p.loop for p in self.parts[tile.lane] if p.turns > 1]
        loops.batch = [r.arg[0] for r in self._outermost()]
        self._block_results()
        order = [*self._nest(), *loops.rows, *loops.panels]
        self.first = order[0] if order else None
        order += self._registers()
        if len(order) > 1:
            self.plan.steps.append(Reorder(tuple(order)))

    def _nest(self) -> list[Name]:
        """The loops around the blocks: what every batch reads is copied once for all of them."""
        loops = self.loops
        if any(not load.ranges.isdisjoint(self._outermost()) for load in self.vectors):
            outside = [loops.batch, loops.blocks] if self._batches() >= CHUNKS else [loops.blocks, loops.batch]
            return [name for names in (*outside, loops.sums) for name in names]
        return [*loops.blocks, *loops.sums, *loops.batch] if loops.blocks else [*loops.batch, *loops.sums]

    def _registers(self) -> list[Name]:
        """Rows outside of vectors: a scalar is then used up before the next one is read."""
        parts = [p for r in self.tile.rows for p in self.parts[r]] + self.parts[self.tile.lane]
        return [name for p in parts for name in (p.row, p.lane) if name is not None]

    def _batches(self) -> int:
        return max(map(extent, self._outermost()[:1]), default=1)

    def _tall(self) -> list[UOp]:
        """The ranges of the scalars that have rows or share an axis of the operand with one of a sum."""
        return [r for r in by_order(self.tile.scalar_side) if r in self.tile.rows or r in self.moved]

    def _outermost(self) -> list[UOp]:
        """Ranges for each of whose turns the tiles go over the results anew."""
        inside = {self.tile.lane, *self._tall()}
        return [r for r in by_order(self.tile.node.ranges) if r not in inside and extent(r) > 1]

    def _block_results(self) -> None:
        """Blocks that threads share: of panels where there are many, else of rows."""
        panels = self.parts[self.tile.lane][0]
        rows = [p for r in self._tall() for p in self.parts[r] if p.turns > 1]
        scattered = self.facts.stride(self.facts.sink.src[0], self.tile.lane) != 1
        tall = _TALL * (2 if scattered else 1)  # memory that lies across the lanes is better walked lane by lane
        wide = panels.turns >= FEW and tall * extent(self.tile.lane) >= count(self._tall())
        if not rows or (
            not self._rows_are_as_good(rows, panels.turns) if wide else self._panels_do(rows, panels.turns)
        ):
            room = max(1, self.facts.target.l2 // 4 // self._panel_bytes())
            pieces = FEW if any(self.windows[load] for load in self.scalars) else CHUNKS
            self._split_block(panels, min(max(1, panels.turns // pieces), room), self.loops.panels)
        elif self._moves(rows[0]) or (self.loops.sums and self._batches() < CHUNKS):
            self._split_block(rows[0], -(-rows[0].turns // CHUNKS), self.loops.rows)

    def _rows_are_as_good(self, rows: Sequence[Part], panels: int) -> bool:
        """Whether threads had better share rows although there are many panels: fewer elements are copied again."""
        tile, width = self.tile, self.tile.vectors * self.facts.lanes
        if len(rows) < len(self._tall()) or rows[0].turns % 2:
            return False
        if not self._moves(rows[0]):
            return rows[0].turns >= 2 * CHUNKS and stays_in_place(self.facts, tile.node, tile.lane, width)
        far = any(is_far(self.facts, load) for load in self.vectors)
        return not far and self._copies_of_rows() <= self._copies_of_panels(panels)

    def _panels_do(self, rows: Sequence[Part], panels: int) -> bool:
        """Whether threads had better share the panels although there are few: there is one for each of them."""
        enough = panels >= self.facts.target.threads and panels % 2 == 0
        again = self.loops.sums or self._moves(rows[0])
        return enough and bool(again) and self._copies_of_rows() > self._copies_of_panels(panels)

    def _copies_of_rows(self) -> int:
        """How many elements are copied where threads share rows: all panels for each block of these."""
        tile, width = self.tile, self.tile.vectors * self.facts.lanes
        copied = [each for each in self.vectors if is_copied(self.facts, each, tile.node, tile.lane, width)]
        return CHUNKS * sum(map(elements, copied))

    def _copies_of_panels(self, panels: int) -> int:
        """The same where they share panels: all windows for each block of these."""
        return min(panels, CHUNKS) * sum(elements(each) for each in self.scalars if self.windows[each])

    def _split_block(self, part: Part, size: int, loops: list[Name]) -> None:
        """Blocks of about so many turns of a loop."""
        if self._moves(part):
            size = _even_divisor(part.turns, size)
        elif 2 * (exact := _divisor(part.turns, size)) > size:
            size = exact
        if size == 1:
            if part.loop in loops:
                loops.remove(part.loop)
                self.loops.blocks.append(part.loop)
        elif size < part.turns:
            self.plan.steps.append(Split(part.loop, size))
            loops[loops.index(part.loop)] = (*part.loop, 1)
            self.loops.blocks.append((*part.loop, 0))

    def _moves(self, part: Part) -> bool:
        """Whether windows move along the range, so that a block of it is all that a thread copies of the operand."""
        return any(part.loop[: len(r.arg[0])] == r.arg[0] for r in self.moved)

    def _panel_bytes(self) -> int:
        """What a panel of vectors takes; none is loaded where they follow from positions."""
        size = max([load.dtype.itemsize for load in self.vectors], default=0)
        return max(1, self.inside * self.tile.vectors * self.facts.lanes * size)

    def _share(self) -> None:
        """Threads share the outermost loop, unless a sum runs through it: this one, or one over the products."""
        first = self.first
        if first is not None and any(first[: len(r.arg[0])] == r.arg[0] for r in self.facts.outer):
            self.plan.steps.append(Parallel(first))

    # --- copies ---------------------------------------------------------------------------------

    def _carriers(self) -> list[UOp]:
        """The loads that copies are named by: of a factor that is computed from several, the one that varies most."""
        found: dict[UOp, UOp] = {}
        for load in (*self.vectors, *self.scalars):
            home = self._factor(load)
            if home not in found or count(load.ranges) > count(found[home].ranges):
                found[home] = load
        return list(found.values())

    def _factor(self, load: UOp) -> UOp:
        """The factor that a load is part of; the load itself where it is part of a condition."""
        return self.factors.get(load, load)

    def _stage(self, load: UOp) -> Stage | None:
        """The copy of an operand, where it is better read from one."""
        if load.src[0].op is not ops.PARAM:
            return None
        windows = self.windows[load]
        lanes = load in self.vectors
        if windows and (not lanes or (self.facts.stride(load, self.tile.lane) == 1 and self._is_exact())):
            return self._window(load, windows)
        if lanes:
            return self._panel(load) if self._wants_panel(load) else None
        return self._scalar_panel(load)

    def _prefetches(self) -> Iterator[Prefetch]:
        """Panels that no cache holds come from far away: while one is read, the next one is asked for."""
        within = [name for names in self.inner.values() for name in names]
        around = [*self.loops.blocks, *self.loops.sums, *self.loops.panels]
        for load in self.vectors:
            if load in self.facts.panels and is_far(self.facts, load) and within and around:
                yield Prefetch(load.src[0].arg[0], within[-1], around[-1])

    def _rows_of_memory(self) -> list[Name]:
        """The rows of tiles that lie across memory: those whose turns are neighbours in the result."""
        stores = self.facts.sink.src
        if any(self.facts.stride(store, self.tile.lane) == 1 for store in stores):
            return []
        along = [r for r in self.tile.rows if all(self.facts.stride(store, r) == 1 for store in stores)]
        return [p.row for r in along for p in self.parts[r] if p.row is not None and p.rows >= _FEWEST]

    def _long_epilogue(self) -> list[Epilogue]:
        tile = self.tile
        parts = {r: self.parts[r] for r in (*tile.rows, tile.lane)}
        return choose_epilogue(self.facts, tile.node, tile.lane, parts)

    def _is_exact(self) -> bool:
        """Whether no lane is beyond the end of its range."""
        return sum(p.turns * p.rows * p.lanes for p in self.parts[self.tile.lane]) == extent(self.tile.lane)

    def _wants_panel(self, load: UOp) -> bool:
        tile = self.tile
        return is_copied(self.facts, load, tile.node, tile.lane, tile.vectors * self.facts.lanes)

    def _panel(self, load: UOp) -> Stage:
        """Panels of vectors: for each, the turns of the sum one after another."""
        lane = self.parts[self.tile.lane]
        panels = list(self.loops.panels)
        varies = self._factor(load).ranges
        sums = [name for r, names in self.inner.items() if r in varies and extent(r) > 1 for name in names]
        rows = [p.row for p in lane if p.row is not None]
        lanes = [p.lane for p in lane if p.lane is not None]
        return Stage(load.src[0].arg[0], (*panels, *sums, *rows, *lanes))

    def _scalar_panel(self, load: UOp) -> Stage | None:
        """The scalars of a tile side by side, where they are not already, or where their rows collide in the cache."""
        varies = self._factor(load).ranges
        sums = [r for r in self.inner if r in varies and extent(r) > 1]
        in_order = len(load.src) == 2 and is_factor(load, self.tile.node)
        if not sums or (in_order and self.facts.stride(load, sums[-1]) == 1):
            return None
        rows = [p.row for r in self.tile.rows if r in varies for p in self.parts[r] if p.row is not None]
        return Stage(load.src[0].arg[0], (*[name for r in sums for name in self.inner[r]], *rows))

    def _window(self, load: UOp, windows: Sequence[Sequence[UOp]]) -> Stage:
        """The part of an operand that windows move over, with its border."""
        axes: list[Axis] = []
        for group in windows:
            names = tuple([name for r in group for name in self._leaves(r)])
            if names:
                axes.append(names if len(names) > 1 else names[0])
        return Stage(load.src[0].arg[0], tuple(axes))

    def _leaves(self, r: UOp) -> list[Name]:
        """The loops, rows and lanes of a range that a copy covers."""
        if extent(r) == 1:
            return []
        if r in self.tile.node.src[1:]:
            return self.inner.get(r, [])
        if r is not self.tile.lane and r not in self._tall():
            return []
        loops = [*self.loops.rows, *self.loops.panels]
        within = [name for p in self.parts[r] for name in loops if name[: len(p.loop)] == p.loop]
        return within + [name for p in self.parts[r] for name in (p.row, p.lane) if name is not None]


def _divisor(turns: int, most: int) -> int:
    """The largest divisor up to a limit."""
    return next(size for size in range(most, 0, -1) if turns % size == 0)


def _even_divisor(turns: int, aim: int) -> int:
    """The divisor nearest to an aim that leaves an even number of blocks; any one where there is none."""
    even = [size for size in range(1, 2 * aim + 1) if turns % (2 * size) == 0]
    return min(even, key=lambda size: max(size / aim, aim / size)) if even else _divisor(turns, aim)


def _whole(r: UOp) -> Part:
    return Part(r.arg[0], extent(r), None, 1, None, 1)
