"""Apply schedule steps to a kernel: `KERNEL` in, `KERNEL` with split, reordered and marked ranges out.

Steps only rename ranges until the end; then every range of the canonical kernel is replaced once by
an expression over the final ones.  Where a split leaves a remainder, loads and stores that vary with
the range get a gate and a reduction's value becomes its identity beyond the end.  What a kernel
computes never changes, except that a reduction combines its values in another order.  `Stage`, `Keep` and
`MatrixUnit` are left to `lower/stage_memory.py`: they need loops in the middle of a kernel; `Prefetch` and
`Stream` to `lower/hints.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.blocks import is_looping
from lazulite.ir.bounds import Linear, difference, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, substitute
from lazulite.kernel.gates import split_gate
from lazulite.kernel.nest import by_order, grain
from lazulite.kernel.partial_sums import check_partial_sums
from lazulite.kernel.parts import parted
from lazulite.kernel.steps import (
    Block,
    Epilogue,
    Group,
    MatrixUnit,
    Name,
    Parallel,
    Partition,
    Reorder,
    Split,
    Stage,
    Step,
    Strip,
    Tile,
    Vectorize,
    Within,
    names,
)
from lazulite.kernel.steps import name_text as text_of
from lazulite.simplify.comparison import below_zero
from lazulite.simplify.division import quotient, remainder
from lazulite.simplify.facts import NOTHING, is_division
from lazulite.simplify.index import recombined
from lazulite.simplify.normal import normalise
from lazulite.simplify.terms import multiple, sum_of

_KINDS = {Parallel: "parallel", Vectorize: "lane", Tile: "row"}
_MARKS = (Parallel, Vectorize, Tile)


@dataclass(slots=True)
class _Leaf:
    """A range that is not split: what is known about it so far."""

    size: UOp
    """The number of turns, an INDEX expression over what does not vary in the kernel."""
    reduces: bool
    kind: str = "loop"
    grouped: bool = False
    whole: bool = False
    """Whether all turns are taken, in registers or a matrix unit, also beyond an end."""

    @property
    def extent(self) -> int:
        """The most turns."""
        return max(int(self.size.vmax), 0)


@dataclass(slots=True)
class _Nest:
    """The kernel between steps: its nodes still speak of its own ranges."""

    sink: UOp
    leaves: dict[Name, _Leaf]
    order: list[Name]
    """The leaves, outermost first."""
    cuts: dict[Name, int] = field(default_factory=dict)
    """For each range that is parted how many turns the first part has."""
    splits: dict[Name, tuple[UOp, int]] = field(default_factory=dict)
    """For each split range its size and factor."""

    def leaf(self, name: Name) -> _Leaf:
        if name not in self.leaves:
            raise StageError("kernel.steps", f"there is no range {text_of(name)}; "
                             f"the ranges are {', '.join(map(text_of, self.order))}")  # fmt: skip
        return self.leaves[name]

    def divide(self, name: Name, first: UOp, second: UOp) -> None:
        """The leaf gives way to two parts of these sizes."""
        old = self.leaves.pop(self.unmarked(name))
        at = self.order.index(name)
        self.order[at : at + 1] = [(*name, 0), (*name, 1)]
        self.leaves[(*name, 0)] = _Leaf(first, old.reduces)
        self.leaves[(*name, 1)] = _Leaf(second, old.reduces)

    def mark(self, name: Name, kind: str) -> None:
        """The leaf's turns become lanes, rows, or work of threads."""
        leaf = self.leaf(self.unmarked(name))
        if kind == "parallel" and leaf.reduces:
            raise StageError("kernel.steps", f"range {text_of(name)} of a reduction cannot be parallel")
        leaf.kind = kind

    def unmarked(self, name: Name) -> Name:
        leaf = self.leaf(name)
        if leaf.kind != "loop" or leaf.grouped:
            kind = "group" if leaf.grouped else leaf.kind
            raise StageError("kernel.steps", f"range {text_of(name)} is marked already: {kind}")
        return name


def apply(kernel: UOp, steps: Iterable[Step]) -> UOp:
    """The kernel after the steps.

    The order of a range is then its place in the nest, outermost first, followed by its name.
    """
    nest = _read(_without_empty(kernel))
    for step in steps:
        _take(nest, step)
    sink = _rewrite(nest, _final_ranges(nest))
    nodes = nodes_of(sink)
    _check(nodes)
    check_partial_sums(sink, nodes)
    return sink


class Loop(NamedTuple):
    """A range as steps leave it; its kind is that of `RANGE`."""

    name: Name
    extent: int
    reduces: bool
    kind: str

    def is_of(self, name: Name) -> bool:
        """Whether it is this range, or what is left of it."""
        return self.name[: len(name)] == name


def loops_after(kernel: UOp, steps: Iterable[Step]) -> list[Loop]:
    """The ranges that stay, outermost first, those of reductions last; the kernel is not rewritten."""
    nest = _read(_without_empty(kernel))
    for step in steps:
        _take(nest, step)
    kept = [Loop(name, leaf.extent, leaf.reduces, leaf.kind) for name in nest.order if (leaf := nest.leaves[name])]
    return sorted(kept, key=lambda loop: loop.reduces)


def _without_empty(kernel: UOp) -> UOp:
    """No statements over ranges without turns; a reduction over such a range is its identity."""
    nodes = nodes_of(kernel)
    if not any(node.op is ops.RANGE and _is_empty(node) for node in nodes):
        return kernel
    table = {}
    for node in nodes:
        if node.op is ops.REDUCE and any(map(_is_empty, node.src[1:])):
            table[node] = UOp.const(node.dtype, node.arg[0].identity(node.dtype))
    (sink,) = substitute([kernel], table)
    return sink.replace(src=tuple([s for s in sink.src if not any(map(_is_empty, s.ranges))]))


def _is_empty(r: UOp) -> bool:
    return r.src[0].is_const(0)


def _read(kernel: UOp) -> _Nest:
    nodes = nodes_of(kernel)
    reduces = {source for node in nodes if node.op is ops.REDUCE for source in node.src[1:]}
    ranges = by_order([node for node in nodes if node.op is ops.RANGE])
    ranges.sort(key=lambda node: node in reduces)  # outer ones first, however they are numbered
    leaves = {node.arg[0]: _Leaf(node.src[0], node in reduces) for node in ranges}
    return _Nest(kernel, leaves, list(leaves))


def _blocks(size: UOp, factor: int) -> UOp:
    """How many blocks of so many turns there are, the last one perhaps in part."""
    if size.op is ops.CONST:
        return index(-(-size.arg // factor))
    return sum_of(quotient(linear(size) + Linear(factor - 1), factor, NOTHING))


def _take(nest: _Nest, step: Step) -> None:
    if isinstance(step, _MARKS):
        nest.mark(step.range, _KINDS[type(step)])
    elif isinstance(step, Split):
        size = nest.leaf(step.range).size
        if step.factor < 1:
            raise StageError("kernel.steps", f"range {text_of(step.range)} cannot be split by {step.factor}")
        nest.splits[step.range] = size, step.factor
        nest.divide(step.range, _blocks(size, step.factor), index(step.factor))
    elif isinstance(step, Partition):
        _partition(nest, step.range, step.at)
    elif isinstance(step, Reorder):
        places = sorted(nest.order.index(name) for name in step.ranges if nest.leaf(name))
        if len(set(places)) < len(places):
            raise StageError("kernel.steps", "a range is named twice in one reorder")
        for place, name in zip(places, step.ranges, strict=True):
            nest.order[place] = name
    elif isinstance(step, Group):
        if not nest.leaf(nest.unmarked(step.range)).reduces:
            raise StageError(
                "kernel.steps", f"range {text_of(step.range)} belongs to no reduction: it cannot be a group"
            )
        nest.leaf(step.range).grouped = True
    elif isinstance(step, Stage):
        for axis in step.axes:
            for name in names(axis):
                nest.leaf(name)
    elif isinstance(step, MatrixUnit):
        for name in (*step.rows, *step.columns, *step.depth):
            nest.leaf(name).whole = True
    elif isinstance(step, Block | Strip | Within):
        raise StageError("kernel.steps", "a kernel without intermediates has no statements to run in blocks")
    elif isinstance(step, Epilogue):
        for name in (step.range, *step.rows):
            nest.leaf(name)


def _partition(nest: _Nest, name: Name, at: int) -> None:
    turns = nest.leaf(name).extent
    if nest.leaf(name).size.op is not ops.CONST:
        raise StageError("kernel.steps", f"range {text_of(name)} has no fixed number of turns: it cannot be parted")
    if not 0 < at < turns:
        raise StageError("kernel.steps", f"range {text_of(name)} of extent {turns} cannot be parted at {at}")
    if name in nest.splits or name[:-1] in nest.splits:
        raise StageError("kernel.steps", f"range {text_of(name)} is part of a split: part the range before it")
    nest.cuts[name] = at
    nest.divide(name, index(at), index(turns - at))


# --- the end: every range replaced by what became of it -----------------------------------------


def _final_ranges(nest: _Nest) -> dict[Name, UOp]:
    """The ranges that stay, numbered by place; ranges with one turn are gone."""
    kept = [name for name in nest.order if nest.leaves[name].extent != 1]
    ranges: dict[Name, UOp] = {}
    for place, name in enumerate(kept):
        turns = _turns(nest, ranges, name)
        ranges[name] = UOp(ops.RANGE, dtypes.index, (turns,), ((place, *name), nest.leaves[name].kind))
    return ranges


def _turns(nest: _Nest, ranges: dict[Name, UOp], name: Name) -> UOp:
    """How many turns a range has: the inner loop of a split with a remainder ends early in the last block."""
    leaf, split = nest.leaves[name], name[:-1]
    if split not in nest.splits or name[-1] == 0 or leaf.kind != "loop" or leaf.grouped or leaf.whole:
        return leaf.size
    size, factor = nest.splits[split]
    if grain(size) % factor == 0:
        return leaf.size
    outer = [part for part in nest.order if part[: len(name)] == (*split, 0) and nest.leaves[part].extent != 1]
    if any(part not in ranges or not is_looping(ranges[part]) for part in outer):
        return leaf.size
    block = _replacement(nest, ranges, (*split, 0)).value
    return size if block.op is ops.CONST else (block * -factor + size).minimum(leaf.size)


@dataclass(slots=True)
class _Replacement:
    """What a range of the canonical kernel became."""

    value: UOp
    gate: UOp | None
    loops: list[UOp]
    """The ranges in it, those of groups first."""
    groups: list[UOp]
    clamped: bool = False
    """Whether the value is in range where the gate is false, so that loads need no gate."""
    reduces: bool = False
    """Whether a reduction closes the range."""


def _replacement(nest: _Nest, ranges: dict[Name, UOp], name: Name) -> _Replacement:
    """Follow the splits of one range down to the leaves (splits nest a few deep at most)."""
    if name in nest.leaves:
        if name not in ranges:
            return _Replacement(index(0), None, [], [])
        groups = [ranges[name]] if nest.leaves[name].grouped else []
        return _Replacement(ranges[name], None, [ranges[name]], groups)
    size, factor = nest.splits[name]
    outer, inner = (_replacement(nest, ranges, (*name, part)) for part in (0, 1))
    value = _sum(outer.value, factor, inner.value)
    gate, loops = _both(outer.gate, inner.gate), outer.loops + inner.loops
    clamped = False
    if grain(size) % factor and not _ends_early(ranges.get((*name, 1))):
        clamped = gate is None and _repeats_last(nest, ranges, name)
        gate = _both(gate, below_zero(difference(value, size)))
        value = value.minimum(size + -1) if clamped else value
    return _Replacement(value, gate, loops, outer.groups + inner.groups, clamped)


def _repeats_last(nest: _Nest, ranges: dict[Name, UOp], name: Name) -> bool:
    """Whether rows behind the end of a range do the work of the last one again, and store nothing.

    A gate would be asked in every turn of the loops inside of a tile.  With lanes it is part of the instruction.
    There has to be a last row: where there may be none, a loop around the tile has no turns then.
    """
    size, outermost = nest.splits[name][0], name
    while outermost in nest.splits:
        outermost = (*outermost, 0)
    parts = [leaf for leaf in nest.leaves if leaf[: len(name)] == name]
    kinds = {nest.leaves[leaf].kind for leaf in parts if leaf in ranges}
    is_open = size.op is not ops.CONST and not any(nest.leaves[leaf].reduces for leaf in parts)
    return is_open and "row" in kinds and "lane" not in kinds and (size.vmin >= 1 or outermost in ranges)


def _ends_early(inner: UOp | None) -> bool:
    """Whether the inner loop of a split has no turns beyond the end, so that no gate is needed."""
    return inner is not None and inner.src[0].op is not ops.CONST


def _sum(outer: UOp, factor: int, inner: UOp) -> UOp:
    """The turn of a range of which the outer part counts blocks of so many turns."""
    if outer.op is ops.CONST:
        left = index(outer.arg * factor)
        return index(left.arg + inner.arg) if inner.op is ops.CONST else left + inner if left.arg else inner
    left = multiple(outer, factor)
    return left if inner.is_const(0) else UOp(ops.ADD, dtypes.index, (left, inner))


def _both(left: UOp | None, right: UOp | None) -> UOp | None:
    return right if left is None else left if right is None or right is left else left & right


def _rewrite(nest: _Nest, ranges: dict[Name, UOp]) -> UOp:
    """The kernel over the final ranges."""
    sink = parted(nest.sink, nest.cuts)
    nodes = nodes_of(sink)
    table = {node: _replacement(nest, ranges, node.arg[0]) for node in nodes if node.op is ops.RANGE}
    for found in table.values():
        found.reduces = any(nest.leaves[loop.arg[0][1:]].reduces for loop in found.loops)
    done: dict[UOp, UOp] = {old: new.value for old, new in table.items()}
    gated = frozenset([r for r, found in table.items() if found.gate is not None])
    for node in nodes:
        if node.op is ops.LOAD and _is_in_panels(node.src[1]):
            done[node] = _rewrite_panel(node, done, table)
            continue
        if done.keys().isdisjoint(node.src) or node in done:
            continue
        src = tuple([done.get(s, s) for s in node.src])
        if node.op is ops.REDUCE:
            done[node] = _rewrite_reduction(node, src[0], table)
            continue
        if gated and (node.op is ops.LOAD or node.op is ops.STORE):
            src = _gated(node, src, table, gated)
        done[node] = UOp(node.op, node.dtype, src, node.arg)
    return done.get(sink, sink)


def _gate_of(ranges: Iterable[UOp], table: dict[UOp, _Replacement], *, loads: bool = False) -> UOp | None:
    gate: UOp | None = None
    for r in by_order(ranges):
        if not (loads and table[r].clamped):
            gate = _both(gate, table[r].gate)
    return gate


def _gated(
    node: UOp, src: tuple[UOp, ...], table: dict[UOp, _Replacement], gated: frozenset[UOp]
) -> tuple[UOp, ...]:  # fmt: skip
    """The new sources of a load or store with the gates of its ranges."""
    gate = _gate_of(node.ranges & gated, table, loads=node.op is ops.LOAD)
    place = 2 if node.op is ops.LOAD else 3
    joined = _both(src[place] if len(src) > place else None, gate)
    return src if joined is None else (*src[:place], joined)


def _is_in_panels(place: UOp) -> bool:
    """Whether an index has a part that stands for blocks of a range: a split of the range may simplify it."""
    return any(term.op is ops.FLOORDIV for term in linear(place).terms)


def _rewrite_panel(node: UOp, done: dict[UOp, UOp], table: dict[UOp, _Replacement]) -> UOp:
    """A load from memory with room for what a split adds behind the end of a range needs no gate there."""
    place = _normal_place(node.src[1], done)
    room = 0 <= place.vmin and place.vmax < node.src[0].arg[1][0]
    gate = _gate_of([r for r in node.ranges if table[r].reduces or not room], table, loads=True)
    joined = _both(done.get(node.src[2], node.src[2]) if len(node.src) > 2 else None, gate)
    return node.replace(src=(node.src[0], place) if joined is None else (node.src[0], place, joined))


def _normal_place(place: UOp, done: dict[UOp, UOp]) -> UOp:
    """The normal form of an index over the final ranges, made of those of its terms."""
    form = linear(place)
    total = Linear(form.constant)
    for term, factor in form.terms.items():
        total += _normal_term(term, done).scaled(factor)
    return sum_of(recombined(total))


def _normal_term(term: UOp, done: dict[UOp, UOp]) -> Linear:
    """The same for a term (recursion is as deep as divisions stand in one another)."""
    if is_division(term):
        divide = quotient if term.op is ops.FLOORDIV else remainder
        return recombined(divide(linear(_normal_place(term.src[0], done)), term.src[1].arg, NOTHING))
    now = done.get(term, term)
    form = linear(now)
    return form if all(part.op is ops.RANGE for part in form.terms) else linear(*normalise(now))


def _rewrite_reduction(node: UOp, value: UOp, table: dict[UOp, _Replacement]) -> UOp:
    """The reduction over the leaves of its ranges; groups are combined after the rest."""
    gate = _gate_of(node.src[1:], table)
    op = node.arg[0]
    if gate is not None and not _vanishes(op, node.src[0], [r for r in node.src[1:] if table[r].gate is not None]):
        assert op.identity is not None
        value = gate.where(value, UOp.const(value.dtype, op.identity(value.dtype)))
    loops = [r for old in node.src[1:] for r in table[old].loops]
    groups = [r for old in node.src[1:] for r in table[old].groups]
    registers = [r for r in loops if r.arg[1] in ("lane", "row")]
    plain = [r for r in loops if r not in groups and r not in registers]
    for part in (plain, groups, registers) if groups else (loops,):
        if part:
            value = node.replace(src=(value, *part))
    return value


def _vanishes(op: ops.Op, value: UOp, gated: list[UOp]) -> bool:
    """Whether a sum's value is zero wherever the loads that vary with all the gated ranges give zero."""
    if op is not ops.ADD:
        return False
    value = _converted_from(split_gate(op, value)[1])
    if value.op is ops.MUL:  # both factors: zero times infinity would not be zero
        return all(_is_gated_load(_converted_from(factor), gated) for factor in value.src)
    return _is_gated_load(value, gated)


def _is_gated_load(value: UOp, gated: list[UOp]) -> bool:
    return value.op is ops.LOAD and value.ranges.issuperset(gated)


def _converted_from(value: UOp) -> UOp:
    """The number before its conversions, of which none makes anything but zero of zero."""
    while value.op is ops.CAST:
        value = value.src[0]
    return value


def _check(nodes: Sequence[UOp]) -> None:
    """Only the outermost loop is parallel; a value has at most one lane range."""
    ranges = [node for node in nodes if node.op is ops.RANGE]
    first = min([r.arg[0] for r in ranges if is_looping(r)], default=None)
    if any(r.arg[1] == "parallel" and r.arg[0] != first for r in ranges):
        raise StageError("kernel.steps", "only the outermost loop can be parallel")
    lanes = frozenset([r for r in ranges if r.arg[1] == "lane"])
    if len(lanes) > 1 and any(len(lanes & node.ranges) > 1 for node in nodes):
        raise StageError("kernel.steps", "a value varies with two vectorized ranges")
