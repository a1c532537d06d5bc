"""Skip what a mask makes vanish: `KERNEL` with intermediates in, the same with shorter loops out.

Where the elements of an intermediate from some place on are one constant, as the scores that a causal mask
sets to -inf, and where every reader combines that constant as if it were not there, nobody computes them:
the maximum of -inf and x is x, exp(-inf - m) is 0, and what is multiplied by 0 adds nothing.  The extent
of such a loop becomes an expression over the shared ranges, the same for all statements.

One value can differ: a product of a masked weight, which is 0, with an infinity or NaN would be NaN, and is
left out where whole blocks are.  What a mask hides has no influence there, whatever it holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.kernel.nest import extent
from lazulite.kernel.statements import Statements
from lazulite.simplify.boolean import conjuncts
from lazulite.simplify.division import quotient
from lazulite.simplify.facts import NOTHING
from lazulite.simplify.terms import sum_of

_GRAIN = 32
"""Limits are multiples of this where they can be, so that vectors and tiles fill up."""


@dataclass(frozen=True, slots=True)
class _Tail:
    """From the place `bound` on, along the axis with this stride, an intermediate is one constant."""

    stride: int
    extent: int
    bound: UOp
    value: UOp


@dataclass(slots=True)
class _Limits:
    """What is known so far; a barred intermediate is needed as a whole by somebody."""

    parts: Statements
    barred: set[UOp]
    tails: dict[UOp, _Tail] = field(default_factory=dict)
    sizes: list[dict[UOp, UOp]] = field(default_factory=list)
    """For each statement the new extents of its ranges."""

    def bar(self, loads: Iterable[UOp]) -> None:
        self.barred.update(load.src[0] for load in loads)


def limited(parts: Statements) -> Statements:
    """The statements without the work that a mask makes vanish."""
    barred: set[UOp] = set()
    while True:
        known = len(barred)
        limits = _Limits(parts, barred)
        for number, kernel in enumerate(parts.kernels):
            limits.sizes.append(_sizes(limits, number, kernel))
        if len(barred) == known:
            break
    kernels = [_with_sizes(kernel, sizes) for kernel, sizes in zip(parts.kernels, limits.sizes, strict=True)]
    return parts.with_kernels(kernels)


def _with_sizes(kernel: UOp, sizes: Mapping[UOp, UOp]) -> UOp:
    return substitute([kernel], {r: r.replace(src=(size,)) for r, size in sizes.items()})[0]


def _sizes(limits: _Limits, number: int, kernel: UOp) -> dict[UOp, UOp]:
    """The ranges of a statement that can be shorter; notes what becomes of its own result."""
    nodes = toposort(kernel)
    own = limits.parts.memory[number] if number < len(limits.parts.memory) else None
    sizes: dict[UOp, UOp] = {}
    for r, loads in _readers(limits, nodes).items():
        tails = {load: limits.tails[load.src[0]] for load in loads}
        bound = next(iter(tails.values())).bound
        beyond = {load: tail.value for load, tail in tails.items()}
        fits = all(tail.bound is bound and tail.extent == extent(r) for tail in tails.values())
        if not fits or not _vanishes(nodes, r, beyond, bound):
            last = _beyond(kernel.src[0].src[2], beyond, bound) if fits and own is not None else None
            if last is None or own is None or own in limits.barred or not _is_stored(nodes, r):
                limits.bar(loads)
                continue
            limits.tails[own] = _tail_of(kernel.src[0], r, bound, last)
        sizes[r] = _size(bound, extent(r))
    if own is not None and own not in limits.barred and own not in limits.tails:
        sizes |= _masked(limits, own, kernel.src[0])
    return sizes


def _readers(limits: _Limits, nodes: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """The loads of intermediates with a constant tail, by the range that runs along it."""
    found: dict[UOp, list[UOp]] = {}
    for load in nodes:
        if load.op is ops.LOAD and load.src[0] in limits.tails:
            stride = limits.tails[load.src[0]].stride
            along = [r for r, factor in linear(load.src[1]).terms.items() if r.op is ops.RANGE and factor == stride]
            if len(along) == 1 and len(load.src) == 2:
                found.setdefault(along[0], []).append(load)
            else:
                limits.bar([load])
    return found


def _is_stored(nodes: Sequence[UOp], r: UOp) -> bool:
    return not any(node.op is ops.REDUCE and r in node.src[1:] for node in nodes)


def _vanishes(nodes: Sequence[UOp], r: UOp, beyond: Mapping[UOp, UOp], bound: UOp) -> bool:
    """Whether the range is reduced, and every reduction over it combines nothing beyond the bound."""
    reductions = [node for node in nodes if node.op is ops.REDUCE and r in node.src[1:]]
    for node in reductions:
        last, op = _beyond(node.src[0], beyond, bound), node.arg[0]
        if last is None or op.identity is None or not last.is_const(op.identity(node.dtype)):
            return False
    return bool(reductions)


def _tail_of(store: UOp, r: UOp, bound: UOp, value: UOp) -> _Tail:
    return _Tail(linear(store.src[1]).terms[r], extent(r), bound, value)


# --- where a mask begins -----------------------------------------------------------------------


def _masked(limits: _Limits, own: UOp, store: UOp) -> dict[UOp, UOp]:
    """The range along which the stored value ends in a constant that a choice puts there."""
    value = store.src[2]
    if value.op is not ops.WHERE or value.src[2].op is not ops.CONST or len(store.src) > 3:
        return {}
    axes = [r for r in linear(store.src[1]).terms if r.op is ops.RANGE]
    for condition in conjuncts(value.src[0]):
        for r in axes:
            bound = _bound(condition, r)
            if bound is not None and bound.vmin < extent(r) and not any(t.op is ops.RANGE for t in toposort(bound)):
                limits.tails[own] = _tail_of(store, r, bound, value.src[2])
                return {r: _size(bound, extent(r))}
    return {}


def _bound(condition: UOp, r: UOp) -> UOp | None:
    """A place from which on a comparison is false in every row, if there is one for the range."""
    if condition.op not in (ops.LT, ops.LE) or condition.src[0].dtype is not dtypes.index:
        return None
    difference = linear(condition.src[0]) + linear(condition.src[1]).scaled(-1)
    if difference.terms.get(r) != 1:
        return None
    last = Linear(-difference.constant, {t: -f for t, f in difference.terms.items() if t is not r})
    bound = last if condition.op is ops.LT else last + Linear(1)
    highest = Linear(bound.constant)
    for term, factor in bound.terms.items():
        most = int(term.vmax if factor > 0 else term.vmin)
        highest = highest + (Linear(0, {term: factor}) if term.op is not ops.RANGE else Linear(factor * most))
    return sum_of(highest)


def _size(bound: UOp, turns: int) -> UOp:
    """The extent up to the bound, rounded up to a multiple that divides all turns."""
    grain = math.gcd(turns, _GRAIN)
    blocks, whole = sum_of(quotient(linear(bound) + Linear(grain - 1), grain, NOTHING)), turns // grain
    blocks = blocks if blocks.vmax <= whole else blocks.minimum(whole)
    return sum_of(linear(blocks).scaled(grain))


# --- what becomes of the constant --------------------------------------------------------------


def _beyond(value: UOp, beyond: Mapping[UOp, UOp], bound: UOp) -> UOp | None:
    """The constant that a value is beyond the bound, None where that is not known."""
    known: dict[UOp, UOp | None] = {}
    for node in toposort(value, enter=lambda n: n not in beyond and n.op is not ops.REDUCE):
        last = beyond.get(node)
        known[node] = _constant(node, [known.get(s) for s in node.src], beyond, bound) if last is None else last
    return known[value]


def _constant(node: UOp, src: Sequence[UOp | None], beyond: Mapping[UOp, UOp], bound: UOp) -> UOp | None:
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
    if op is ops.SUB and first.value == -math.inf and _is_above(node.src[1], beyond, bound):
        return first
    if op is ops.EXP and first.value == -math.inf:
        return UOp.const(node.dtype, 0)
    if op is ops.DIV and first.is_const(0) and _is_total(node.src[1], bound):
        return first
    return UOp.const(node.dtype, first.value) if op is ops.CAST else None


def _is_above(x: UOp, beyond: Mapping[UOp, UOp], bound: UOp) -> bool:
    """Whether x is above -inf: by a choice, or as the maximum of what is left, where nothing else can come out of a
    row than NaN if that is -inf or NaN."""
    if x.op is ops.WHERE and x.src[0].op is ops.LT:
        low, high = x.src[0].src
        chosen = low.op is ops.CONST and low.value == -math.inf and high is x.src[1]
        return chosen and x.src[2].op is ops.CONST and math.isfinite(x.src[2].value)
    memory = {load.src[0] for load in beyond}
    return x.op is ops.REDUCE and x.arg[0] is ops.MAX and x.src[0].op is ops.LOAD and (
        x.src[0].src[0] in memory and bound.vmin >= 1)  # fmt: skip


def _is_total(x: UOp, bound: UOp) -> bool:
    """Whether x is a sum of exponentials that are left: 0 divided by it is 0, or the row is NaN anyway."""
    return x.op is ops.REDUCE and x.arg[0] is ops.ADD and x.src[0].op is ops.EXP and bound.vmin >= 1
