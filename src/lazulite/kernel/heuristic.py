"""Choose schedule steps for a kernel from facts about the target: no measuring, one answer.

First the lanes (`kernel/lanes.py`), then the register tile (`kernel/tiles.py`), then the loops: their
order keeps every reduction outside of the loops it does not vary with, an operand of a blocked
reduction is staged in panels when it is large or awkward to read, and the outermost loop is parallel
when there is enough work.  The result never depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from lazulite.ir import ops
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, substitute
from lazulite.kernel.block_choice import choose_blocks
from lazulite.kernel.borders import regroup
from lazulite.kernel.contraction import choose_product
from lazulite.kernel.epilogue_choice import choose_epilogue
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.gates import split_gate
from lazulite.kernel.hints import choose_hints
from lazulite.kernel.lanes import choose_lanes
from lazulite.kernel.matrix_units import choose_matrix_unit
from lazulite.kernel.meetings import apart
from lazulite.kernel.nest import by_order, count, extent, grain, is_fixed
from lazulite.kernel.plan import Part, Plan
from lazulite.kernel.statements import has_statements
from lazulite.kernel.steps import Group, Keep, Name, Parallel, Partition, Reorder, Split, Stage, Step
from lazulite.kernel.tiles import Tiles, choose_tiles
from lazulite.kernel.transposition import Transposition, cut_across, find_transposition

_FORK = 20.0
"""Microseconds of one thread below which others are not worth it.  To call one takes 1 where it spins and 5 where
it sleeps, as it does between kernels that are launched one by one, and then it comes after some 30."""
_STREAMED, _BLOCKED = 2_300.0, 13_500.0
"""Units of estimated work in a microsecond: of a kernel that streams through the caches, and of one whose
register tile reuses what it has loaded (measured at 16 lanes and 2.8 GHz)."""
_DEAR = 8
"""The cost of a value from which on reading it back is cheaper than computing it again."""
_LONG_SUM = 1 << 15
_GROUP = 256
_LONG_CHAIN, _CHAIN = 4096, 1024
"""How many numbers may be added one after another, and how many are where there are more."""


def choose(kernel: UOp, target: Target) -> tuple[Step, ...]:
    """The steps for a kernel."""
    return (
        choose_blocks(kernel, target, _choose)
        if has_statements(kernel)
        else _choose(KernelFacts(regroup(kernel), target))
    )


def _choose(facts: KernelFacts) -> tuple[Step, ...]:
    """The steps for a kernel, or for one statement."""
    if any(extent(node) == 0 for node in facts.nodes if node.op is ops.RANGE):
        return ()  # nothing to compute, or a sum of nothing
    if facts.serial:
        return _in_turn(facts)
    on_unit = choose_matrix_unit(facts)
    if on_unit is not None:
        return on_unit
    product = choose_product(facts)
    if product is not None:
        return product
    lanes = choose_lanes(facts, frozenset(facts.outer) | facts.reduced)
    transposition = find_transposition(facts, lanes)
    if transposition is not None:
        return _transpose(facts, lanes, transposition)
    tiles = choose_tiles(facts, lanes)
    plan = Plan()
    parts = {r: _cut(facts, plan, r, lanes, tiles) for r in [*facts.outer, *_reduced(facts)]}
    staged = _stage(facts, tiles, parts)
    order = _order(facts, lanes, tiles, staged is not None and staged.slot == tiles.vectors[0].src[0].arg[0])
    _arrange(plan, [part.loop for r in order for part in parts[r] if part.turns > 1])
    if staged is not None:
        plan.steps.append(staged)
    plan.steps += _keep(facts, lanes, tiles)
    if tiles.reduction is not None:
        (lane,) = lanes & tiles.reduction.ranges
        own = {r: parts[r] for r in dict.fromkeys([*tiles.rows, lane]) if r in tiles.reduction.ranges}
        plan.steps += choose_epilogue(facts, tiles.reduction, lane, own)
    if tiles.streamed is None:  # a blocked product computes longer than it waits
        plan.steps += choose_hints(facts, lanes)
    if order and _is_worth_threads(facts, lanes, _BLOCKED if tiles.streamed is not None else _STREAMED):
        _parallel(plan, parts, order)
    return tuple(plan.steps)


def _transpose(facts: KernelFacts, lanes: frozenset[UOp], found: Transposition) -> tuple[Step, ...]:
    """The steps for a kernel that reads some operands in blocks."""
    plan, (lane,) = Plan(), lanes
    parts, inner = dict[UOp, list[Part]](), list[Name]()
    for r in facts.outer:
        if r is found.across:
            parts[r], inner = cut_across(plan, r.arg[0], extent(r))
        elif r is lane:
            parts[r] = plan.vectors(r.arg[0], extent(r), facts.lanes, 1)
        else:
            parts[r] = [Part(r.arg[0], extent(r), None, 1, None, 1)]
    _arrange(plan, [*[part.loop for r in facts.outer for part in parts[r] if part.turns > 1], *inner])
    vectors = tuple([part.lane for part in parts[lane] if part.lane is not None])
    plan.steps += [Stage(slot, (*vectors, *inner)) for slot in found.slots]
    if _is_worth_threads(facts, lanes, _STREAMED):
        _parallel(plan, parts, facts.outer)
    return tuple(plan.steps)


def _in_turn(facts: KernelFacts) -> tuple[Step, ...]:
    """The steps for a kernel that may store to one element again: its loops nest as they are written.

    A range that is written as parallel says that its turns never meet, even where no bound shows it.
    """
    plan, lanes = Plan(), choose_lanes(facts, apart(facts))
    parts = {r: [Part(r.arg[0], extent(r), None, 1, None, 1)] for r in facts.outer}
    for r in by_order(lanes):  # with a gate at the end: parts of a range would be nests of their own
        cut = plan.vectors(r.arg[0], extent(r), facts.lanes, 1, masked=True) if is_fixed(r) else None
        parts[r] = cut or plan.open_vectors(r.arg[0], r.src[0], facts.lanes, 1)
    if _is_worth_threads(facts, lanes, _STREAMED):
        free = takewhile(lambda r: r.arg[1] == "parallel" or r not in facts.serial, facts.outer)
        _parallel(plan, parts, list(free))
    return tuple(plan.steps)


def _arrange(plan: Plan, loops: list[Name]) -> None:
    """Nest the loops in this order."""
    if len(loops) > 1 and loops != sorted(loops):
        plan.steps.append(Reorder(tuple(loops)))


def _reduced(facts: KernelFacts) -> list[UOp]:
    return by_order(facts.reduced)


def _cut(facts: KernelFacts, plan: Plan, r: UOp, lanes: frozenset[UOp], tiles: Tiles) -> list[Part]:
    """Cut one range as the tile says."""
    name, turns, rows = r.arg[0], extent(r), tiles.rows.get(r, 1)
    if not is_fixed(r):
        return _cut_open(facts, plan, r, lanes, rows)
    if r not in lanes:
        if turns >= _LONG_CHAIN and r in facts.reduced and _is_long_sum(r, facts, tiles):
            return _cut_chain(plan, name, turns)
        if rows == 1:
            return [Part(name, turns, None, 1, None, 1)]
        return plan.rows(name, turns, rows) if r not in facts.reduced else _cut_sum(plan, name, turns, rows)
    if r in facts.reduced and turns >= _LONG_SUM:
        return _cut_long(plan, name, turns, facts.lanes, rows)
    return plan.vectors(name, turns, facts.lanes, rows)


def _cut_open(facts: KernelFacts, plan: Plan, r: UOp, lanes: frozenset[UOp], rows: int) -> list[Part]:
    """Cut a range whose number of turns is an expression: it is never in two parts."""
    name, size = r.arg[0], r.src[0]
    if r in lanes:
        return plan.open_vectors(name, size, facts.lanes, rows)
    if rows > 1 and (r not in facts.reduced or grain(size) % rows == 0):
        return plan.open_rows(name, size, rows)
    return [Part(name, extent(r), None, 1, None, 1)]


def _cut_sum(plan: Plan, name: Name, turns: int, rows: int) -> list[Part]:
    """Several accumulators of a reduction without lanes of its own; the remainder has one."""
    whole = turns - turns % rows
    if whole in (0, turns):
        return plan.rows(name, turns, rows)
    plan.steps.append(Partition(name, whole))
    return [*plan.rows((*name, 0), whole, rows), Part((*name, 1), turns - whole, None, 1, None, 1)]


def _is_long_sum(r: UOp, facts: KernelFacts, tiles: Tiles) -> bool:
    """Whether floats are added over the range; a blocked product stays one loop, for its speed."""
    closers = [node for node in facts.reductions if r in node.src[1:]]
    return any(n.arg[0] is ops.ADD and n.dtype.is_float and n is not tiles.reduction for n in closers)


def _cut_chain(plan: Plan, name: Name, turns: int) -> list[Part]:
    """A long chain of additions in groups; what is left over is a chain of its own."""
    whole, parts = turns - turns % _CHAIN, []
    if whole < turns:
        plan.steps.append(Partition(name, whole))
        parts = [Part((*name, 1), turns - whole, None, 1, None, 1)]
        name = (*name, 0)
    plan.steps += [Split(name, _CHAIN), Group((*name, 0))]
    return [Part((*name, 1), _CHAIN, None, 1, None, 1), *parts]


def _cut_long(plan: Plan, name: Name, turns: int, lanes: int, rows: int) -> list[Part]:
    """A long sum in groups, so that its error grows with the length of a group and the number of groups."""
    block = lanes * rows * _GROUP
    whole = turns - turns % block
    parts = []
    if whole < turns:
        plan.steps.append(Partition(name, whole))
        parts = plan.vectors((*name, 1), turns - whole, lanes, rows)
        name = (*name, 0)
    plan.steps.append(Split(name, block))
    plan.steps.append(Group((*name, 0)))
    return [*plan.vectors((*name, 1), block, lanes, rows), *parts]


# --- loops --------------------------------------------------------------------------------------


def _order(facts: KernelFacts, lanes: frozenset[UOp], tiles: Tiles, staged: bool) -> list[UOp]:
    """The output ranges, outermost first."""
    order = list(facts.outer)
    if tiles.streamed in order:  # and not a range of a sum over products
        lane = [r for r in order if r in lanes]
        rest = [r for r in order if r not in lane and r is not tiles.streamed]
        order = [*rest, *lane, tiles.streamed] if staged else [*rest, tiles.streamed, *lane]
    for node in sorted(facts.reductions, key=lambda node: count(node.src[0].ranges)):
        needed = [r for r in order if r in node.ranges]
        order = needed + [r for r in order if r not in needed]
    return order


def _is_worth_threads(facts: KernelFacts, lanes: frozenset[UOp], speed: float) -> bool:
    return facts.work(lanes) / speed >= _FORK


def _parallel(plan: Plan, parts: dict[UOp, list[Part]], order: Sequence[UOp]) -> None:
    """Share the outermost loop among threads, if it is one loop with nearly all of the work."""
    for r in order:
        loops = [part for part in parts[r] if part.turns > 1]
        if not loops:
            if len(parts[r]) > 1:
                return
            continue
        first = loops[0]
        covered = first.turns * first.rows * first.lanes
        if 4 * covered >= 3 * extent(r):
            plan.steps.append(Parallel(first.loop))
        return


def _stage(facts: KernelFacts, tiles: Tiles, parts: dict[UOp, list[Part]]) -> Stage | None:
    """Copy an operand of a blocked reduction: the scalars if they need a conversion each, or the vectors."""
    node, streamed = tiles.reduction, tiles.streamed
    if node is None or streamed is None or len(tiles.vectors) != 1:
        return None
    for load in (load for load, reduction in facts.hot.items() if reduction is node and load not in tiles.vectors):
        if load.src[0].op is ops.PARAM and load not in split_gate(node.arg[0], node.src[0])[1].src:
            return _panel(load, node, parts)
    load = tiles.vectors[0]
    if load.src[0].op is not ops.PARAM or extent(streamed) < 2 * tiles.rows[streamed]:
        return None
    size = count(r for r in node.src[1:] if r in load.ranges) * load.dtype.itemsize
    for r in load.ranges.difference(node.src[1:]):
        size *= max(p.rows * p.lanes for p in parts[r])
    steps = {facts.stride(load, r) for r in load.ranges if any(p.lane is not None for p in parts[r])}
    large = count(load.ranges) * load.dtype.itemsize > facts.target.l2 // 4
    if size > facts.panel_limit or not steps or (steps == {1} and len(load.src) == 2 and not large):
        return None
    return _panel(load, node, parts)


def _panel(load: UOp, node: UOp, parts: dict[UOp, list[Part]]) -> Stage:
    """The copy of an operand with the loops of the reduction as outer axes and the tile as inner ones."""
    loops = [p.loop for r in node.src[1:] for p in parts[r] if p.turns > 1]
    tile = [p for r in by_order(load.ranges) for p in parts[r]]
    rows, lanes = (
        [name for name in names if name is not None] for names in zip(*[(p.row, p.lane) for p in tile], strict=True)
    )
    return Stage(load.src[0].arg[0], (*loops, *rows, *lanes))


def _keep(facts: KernelFacts, lanes: frozenset[UOp], tiles: Tiles) -> list[Step]:
    """Keep a row of dear values, such as exponentials, that are summed and then needed again."""
    known = set(facts.nodes)
    steps: list[Step] = []
    for node in facts.reductions:
        value, r = node.src[0], node.src[1]
        size = extent(r) * value.dtype.itemsize * _registers(facts, node.ranges, lanes, tiles)
        if len(node.src) > 2 or facts.turn_costs[node] < _DEAR or size > facts.target.l2 // 4:
            continue
        for again in facts.outer:
            alike = extent(again) == extent(r) and tiles.rows.get(again, 1) == tiles.rows.get(r, 1)
            if alike and again not in value.ranges and substitute([value], {r: again})[0] in known:
                steps.append(Keep(r.arg[0], again.arg[0]))
                break
    return steps


def _registers(facts: KernelFacts, ranges: Iterable[UOp], lanes: frozenset[UOp], tiles: Tiles) -> int:
    """How many elements of a value that varies with these ranges are in registers together, at most."""
    elements = 1
    for r in ranges:
        elements *= tiles.rows.get(r, 1) * (facts.lanes if r in lanes else 1)
    return elements
