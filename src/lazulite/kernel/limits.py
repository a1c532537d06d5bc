"""Skip what a mask makes vanish: `KERNEL` with intermediates in, the same with shorter loops out.

Where the elements of an intermediate outside of a window are one constant, as the scores that a causal mask
sets to -inf, and where every reader combines that constant as if it were not there, nobody computes them:
the maximum of -inf and x is x, exp(-inf - m) is 0, and what is multiplied by 0 adds nothing.  The extent
of such a loop becomes an expression over the shared ranges, the same for all statements, and the intermediate
begins with the first element of the window.  Where this reaches to the end of the axis, the axis is walked from there
to the front: then what is read at each turn does not vary with where the window begins.

One value can differ: a product of a masked weight, which is 0, with an infinity or NaN would be NaN, and is
left out where whole blocks are.  What a mask hides has no influence there, whatever it holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, replace_ranges, substitute, toposort
from lazulite.kernel.nest import extent, grain, is_fixed
from lazulite.kernel.statements import Statements
from lazulite.kernel.totals import added, begun
from lazulite.simplify.boolean import alternatives, conjuncts
from lazulite.simplify.division import quotient
from lazulite.simplify.facts import NOTHING
from lazulite.simplify.terms import sum_of

_GRAIN = 32
"""Limits are multiples of this where they can be, so that vectors and tiles fill up."""

_OTHERWISE = {ops.LT: ops.LE, ops.LE: ops.LT}
"""Of two comparisons one holds, the second with its operands in the other order."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Outside of the places from `low` to `high`, along the axis with this stride, an intermediate is one constant."""

    stride: int
    size: UOp
    """How long the axis is."""
    low: UOp
    high: UOp
    begin: UOp
    """Where a loop over the window begins, and how many turns it has: both are multiples of what divides the axis."""
    turns: UOp
    reaches_end: bool
    """Whether that loop always ends with the axis."""
    value: UOp

    def is_over(self, other: _Window) -> bool:
        """Whether both leave the same places."""
        return (self.size, self.low, self.high) == (other.size, other.low, other.high)

    @property
    def is_never_empty(self) -> bool:
        least = sum_of(linear(self.high) + linear(self.low).scaled(-1))
        return bool(least.vmin >= 1 and self.high.vmin >= 1 and self.low.vmax < self.size.vmin)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A loop over a window in place of one over the whole axis."""

    range: UOp
    place: UOp
    """Where on the axis a turn is."""


@dataclass(slots=True)
class _Limits:
    """What is known so far; along a barred axis, here a stride, somebody needs all of an intermediate."""

    parts: Statements
    barred: set[tuple[UOp, int]]
    windows: dict[UOp, _Window] = field(default_factory=dict)
    walks: list[dict[UOp, _Walk]] = field(default_factory=list)
    """For each statement what becomes of its ranges."""
    begun: dict[int, UOp] = field(default_factory=dict)
    """The statements that add to what another has to begin, in this turn, as they do not reach everything."""

    def bar(self, loads: Iterable[UOp]) -> None:
        self.barred.update((load.src[0], self.windows[load.src[0]].stride) for load in loads)

    def is_barred(self, memory: UOp, store: UOp, r: UOp) -> bool:
        """Whether somebody needs all that a statement stores along one of its ranges."""
        return (memory, _stride(store, r)) in self.barred


def limited(parts: Statements) -> Statements:
    """The statements without the work that a mask makes vanish."""
    fillers = parts.kernels[: len(parts.scratch)]
    if not parts.fills_once or not any(_choices(kernel.src[0]) for kernel in fillers):
        return parts
    barred: set[tuple[UOp, int]] = set()
    while True:
        known = len(barred)
        limits = _Limits(parts, barred)
        for number in range(len(parts.kernels)):
            limits.walks.append(_walks(limits, number))
        if len(barred) == known:
            break
    kernels: list[UOp] = []
    for number, (kernel, walks) in enumerate(zip(parts.kernels, limits.walks, strict=True)):
        before = begun(kernel, limits.begun[number]) if number in limits.begun else [kernel]
        kernels += [*before[:-1], _walked(before[-1], walks, limits.windows) if walks else before[-1]]
    return parts.with_kernels(kernels)


def _walked(kernel: UOp, walks: Mapping[UOp, _Walk], windows: Mapping[UOp, _Window]) -> UOp:
    """The statement over windows; memory that holds only a window is indexed from its begin."""
    own = {r: walk.range for r, walk in walks.items()}
    done = {r: walk.place for r, walk in walks.items()}
    for node in nodes_of(kernel):
        if done.keys().isdisjoint(node.src) or node in done:
            continue
        src = tuple([done.get(s, s) for s in node.src])
        if node.op in (ops.LOAD, ops.STORE) and node.src[0] in windows:
            terms, stride = linear(node.src[1]).terms, windows[node.src[0]].stride
            table = {r: own[r] if terms.get(r) == stride else walk.place for r, walk in walks.items()}
            src = (src[0], *replace_ranges([node.src[1]], table), *src[2:])
        elif node.op is ops.REDUCE:
            src = (src[0], *[own.get(r, r) for r in node.src[1:]])
        done[node] = UOp(node.op, node.dtype, src, node.arg)
    return done.get(kernel, kernel)


def _walks(limits: _Limits, number: int) -> dict[UOp, _Walk]:
    """The ranges of a statement that can be shorter; notes what becomes of its own result."""
    kernel = limits.parts.kernels[number]
    nodes = nodes_of(kernel)
    own = limits.parts.memory[number] if number < len(limits.parts.memory) else None
    walks: dict[UOp, _Walk] = {}
    for r, loads in _readers(limits, nodes).items():
        beyond = {load: limits.windows[load.src[0]].value for load in loads}
        window = limits.windows[loads[0].src[0]]
        fits = window.size is r.src[0] and all(window.is_over(limits.windows[load.src[0]]) for load in loads)
        if fits and _adds_nothing(limits.parts, kernel, r, beyond, window):
            turn = limits.parts.totals[kernel.src[0].src[0]]
            if not _is_whole_at_first(window, turn):
                limits.begun[number] = turn
        elif not fits or not _vanishes(nodes, r, beyond, window):
            last = _beyond(kernel.src[0].src[2], beyond, window) if fits and own is not None else None
            if last is None or own is None or not _is_stored(nodes, r) or limits.is_barred(own, kernel.src[0], r):
                limits.bar(loads)
                continue
            limits.windows[own] = replace(window, stride=_stride(kernel.src[0], r), value=last)
        walks[r] = _walk(window, r)
    if own is not None and own not in limits.windows:
        walks |= _masked(limits, own, kernel.src[0])
    return walks


def _readers(limits: _Limits, nodes: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """The loads of intermediates that are constant outside of a window, by the range that runs along it."""
    found: dict[UOp, list[UOp]] = {}
    for load in nodes:
        if load.op is ops.LOAD and load.src[0] in limits.windows:
            stride = limits.windows[load.src[0]].stride
            along = [r for r, factor in linear(load.src[1]).terms.items() if r.op is ops.RANGE and factor == stride]
            if len(along) == 1 and len(load.src) == 2:
                found.setdefault(along[0], []).append(load)
            else:
                limits.bar([load])
    return found


def _is_stored(nodes: Sequence[UOp], r: UOp) -> bool:
    return not any(node.op is ops.REDUCE and r in node.src[1:] for node in nodes)


def _vanishes(nodes: Sequence[UOp], r: UOp, beyond: Mapping[UOp, UOp], window: _Window) -> bool:
    """Whether the range is reduced, and every reduction over it combines nothing outside of the window."""
    reductions = [node for node in nodes if node.op is ops.REDUCE and r in node.src[1:]]
    for node in reductions:
        last, op = _beyond(node.src[0], beyond, window), node.arg[0]
        if last is None or op.identity is None or not last.is_const(op.identity(node.dtype)):
            return False
    return bool(reductions)


def _adds_nothing(parts: Statements, kernel: UOp, r: UOp, beyond: Mapping[UOp, UOp], window: _Window) -> bool:
    """Whether all that a statement does is to add zeros, outside of the window, to what the turn before left."""
    (store, *others) = kernel.src
    if others or store.src[0] not in parts.totals or r not in store.src[1].ranges:
        return False
    more = added(store)
    last = _beyond(more.src[0] if more.op is ops.REDUCE else more, beyond, window)
    return last is not None and last.is_const(0)


def _is_whole_at_first(window: _Window, turn: UOp) -> bool:
    """Whether the first turn of a shared range leaves out nothing."""
    return sum_of(linear(substitute([window.turns], {turn: index(0)})[0])) is window.size


def _stride(store: UOp, r: UOp) -> int:
    return linear(store.src[1]).terms[r]


# --- what a mask leaves ------------------------------------------------------------------------


def _masked(limits: _Limits, own: UOp, store: UOp) -> dict[UOp, _Walk]:
    """The range along which the stored value is a constant, by a choice that is made in it, outside of a window."""
    for choice, conditions, constant in _choices(store):
        for r in [term for term in linear(store.src[1]).terms if term.op is ops.RANGE]:
            low, high = _edge(conditions, r, -1), _edge(conditions, r, 1)
            if (low.vmax <= 0 and high.vmin >= extent(r)) or limits.is_barred(own, store, r):
                continue
            window = _window(store, r, low, high, constant)
            last = _beyond(store.src[2], {choice: constant}, window)
            if last is not None:
                limits.windows[own] = replace(window, value=last)
                return {r: _walk(window, r)}
    return {}


def _choices(store: UOp) -> list[tuple[UOp, list[UOp], UOp]]:
    """The choices in what is stored, with conditions without any of which each is a constant, and that."""
    if len(store.src) > 3:
        return []
    found = []
    for node in toposort(store.src[2], enter=lambda n: n.op is not ops.REDUCE):
        if node.op is ops.WHERE:
            gate, yes, no = node.src
            if no.op is ops.CONST:
                found.append((node, conjuncts(gate), no))
            elif yes.op is ops.CONST:
                found.append((node, list(map(_opposite, alternatives(gate))), yes))
    return found


def _opposite(condition: UOp) -> UOp:
    """What holds where a condition does not."""
    if condition.op in _OTHERWISE and condition.src[0].dtype is dtypes.index:
        return UOp.apply(_OTHERWISE[condition.op], *condition.src[::-1])
    return condition.src[0] if condition.op is ops.NOT else ~condition


def _edge(conditions: Iterable[UOp], r: UOp, side: int) -> UOp:
    """The place from which on (up to which, for the side -1) one of the conditions is false in every row."""
    edge = index(extent(r) if side > 0 else 0)
    for condition in conditions:
        bound = _bound(condition, r, side)
        if bound is not None and not bound.ranges:
            edge = bound if edge.op is ops.CONST else edge.minimum(bound) if side > 0 else edge.maximum(bound)
    return edge


def _bound(condition: UOp, r: UOp, side: int) -> UOp | None:
    """The same of one comparison, None where it has no such place for the range."""
    if condition.op not in (ops.LT, ops.LE) or condition.src[0].dtype is not dtypes.index:
        return None
    difference = linear(condition.src[0]) + linear(condition.src[1]).scaled(-1)
    if difference.terms.get(r) != side:
        return None
    rest = Linear(difference.constant, {t: f for t, f in difference.terms.items() if t is not r})
    last = rest.scaled(-side) + Linear(side * (condition.op is ops.LE))
    bound = last if side > 0 else last + Linear(1)
    farthest = Linear(bound.constant)
    for term, factor in bound.terms.items():
        most = int(term.vmax if factor * side > 0 else term.vmin)
        farthest = farthest + (Linear(0, {term: factor}) if term.op is not ops.RANGE else Linear(factor * most))
    return sum_of(farthest)


def _window(store: UOp, r: UOp, low: UOp, high: UOp, constant: UOp) -> _Window:
    """The window of what is stored along a range."""
    size, turns = r.src[0], extent(r)
    step = math.gcd(grain(size), _GRAIN)
    begin, end = (_rounded(place, step, turns) for place in (linear(low), linear(high) + Linear(step - 1)))
    if not is_fixed(r):
        end = size if end.is_const(turns) else end.minimum(size)
    left = sum_of(linear(end) + linear(begin).scaled(-1))
    left = left if left.vmin >= 0 or begin.is_const(0) else left.maximum(0)
    return _Window(_stride(store, r), size, low, high, begin, left, end is size, constant)


def _walk(window: _Window, r: UOp) -> _Walk:
    """The loop over a window in place of a range: from its end to its front, where it reaches to that of the axis."""
    own = r.replace(src=(window.turns,))
    if window.begin.is_const(0):
        return _Walk(own, own)
    if not window.reaches_end:
        return _Walk(own, window.begin + own)
    return _Walk(own, own * -1 + sum_of(linear(window.size) + Linear(-1)))


def _rounded(place: Linear, grain: int, turns: int) -> UOp:
    """The multiple of a number on an axis that is not above a place."""
    blocks, whole = sum_of(quotient(place, grain, NOTHING)), turns // grain
    blocks = blocks if blocks.vmin >= 0 else blocks.maximum(0)
    blocks = blocks if blocks.vmax <= whole else blocks.minimum(whole)
    return sum_of(linear(blocks).scaled(grain))


# --- what becomes of the constant --------------------------------------------------------------


def _beyond(value: UOp, beyond: Mapping[UOp, UOp], window: _Window) -> UOp | None:
    """The constant that a value is outside of the window, None where that is not known."""
    known: dict[UOp, UOp | None] = {}
    for node in toposort(value, enter=lambda n: n not in beyond and n.op is not ops.REDUCE):
        last = beyond.get(node)
        known[node] = _constant(node, [known.get(s) for s in node.src], beyond, window) if last is None else last
    return known[value]


def _constant(node: UOp, src: Sequence[UOp | None], beyond: Mapping[UOp, UOp], window: _Window) -> UOp | None:
    op = node.op
    if op is ops.CONST:
        return node
    if op not in ops.ELEMENTWISE or not node.dtype.is_float:
        return None
    if op is ops.MUL and any(s is not None and s.is_const(0) for s in src):
        return UOp.const(node.dtype, 0)
    if op is ops.WHERE:
        return src[1] if src[1] is src[2] else None
    first = src[0]
    if first is None or not first.dtype.is_float:
        return None
    if op is ops.SUB and first.value == -math.inf and _is_above(node.src[1], beyond, window):
        return first
    if op is ops.EXP and first.value == -math.inf:
        return UOp.const(node.dtype, 0)
    if op is ops.DIV and first.is_const(0) and _is_total(node.src[1], window):
        return first
    return UOp.const(node.dtype, first.value) if op is ops.CAST else None


def _is_above(x: UOp, beyond: Mapping[UOp, UOp], window: _Window) -> bool:
    """Whether x is above -inf: by a choice, or as the maximum of what is left, where nothing else can come out of a
    row than NaN if that is -inf or NaN."""
    if x.op is ops.WHERE and x.src[0].op is ops.LT:
        low, high = x.src[0].src
        chosen = low.op is ops.CONST and low.value == -math.inf and high is x.src[1]
        return chosen and x.src[2].op is ops.CONST and math.isfinite(x.src[2].value)
    memory = {load.src[0] for load in beyond}
    return x.op is ops.REDUCE and x.arg[0] is ops.MAX and x.src[0].op is ops.LOAD and (
        x.src[0].src[0] in memory and window.is_never_empty)  # fmt: skip


def _is_total(x: UOp, window: _Window) -> bool:
    """Whether x is a sum of exponentials that are left: 0 divided by it is 0, or the row is NaN anyway."""
    return x.op is ops.REDUCE and x.arg[0] is ops.ADD and x.src[0].op is ops.EXP and window.is_never_empty
