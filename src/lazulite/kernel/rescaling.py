"""The law of running sums under a running maximum, and which values it applies to.

Let m be the maximum of s(j), and S the sum of exp(s(j) - m) * y(j) * c, where c does not vary with j.  Taken strip by
strip, with m' and S' what they were before a strip, and c left out,

    m = max(m', max s(j))        S = S' * exp(m' - m) + sum exp(s(j) - m) * y(j)

over the j of the strip; in the end S * c is the sum.  No power overflows, since m is never less than s(j).

>>> from math import exp, inf
>>> s, y = [1.0, 3.0, 2.0, 5.0], [1.0, 2.0, 3.0, 4.0]
>>> top, total = -inf, 0.0
>>> for strip in ((0, 1), (2, 3)):
...     before, top = top, max(top, *[s[j] for j in strip])
...     total = total * exp(before - top) + sum(exp(s[j] - top) * y[j] for j in strip)
>>> abs(total - sum(exp(a - 5.0) * b for a, b in zip(s, y))) < 1e-12
True

While all of s is -inf, so is m, and exp(s(j) - m) would be NaN for what later turns out to be 0: m then counts as 0,
which makes the powers 0.  Where the expression itself does not say so, a sum that ends with m = -inf is NaN after all.
NaN or inf in s makes a power NaN, as it does in the whole, and a sum that is NaN stays so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp, substitute, toposort

_INVERSE = {ops.MUL: ops.DIV, ops.DIV: ops.MUL}


@dataclass(frozen=True, slots=True)
class Factors:
    """A value taken apart: `core` times or over what all turns of the axis share."""

    core: UOp | None
    """None stands for 1."""
    shared: tuple[tuple[ops.Op, UOp], ...] = ()
    """What they share, each with MUL or DIV."""
    ratio: UOp | None = None
    """exp(m' - m) where the core depends on a running maximum."""
    lost: UOp | None = None
    """When a sum of such values is NaN: its maximum stayed -inf."""

    @property
    def is_plain(self) -> bool:
        """Whether the value depends on no running result."""
        return self.core is not None and not self.shared and self.ratio is None

    def finished(self, total: UOp) -> UOp:
        """The sum of the values, from that of the cores."""
        for op, factor in self.shared:
            total = UOp.apply(op, total, factor.cast(total.dtype))
        return total if self.lost is None else self.lost.where(UOp.const(total.dtype, math.nan), total)

    def read_as(self, core: UOp, table: Mapping[UOp, UOp]) -> Factors:
        """The same where the core is read from memory, in other ranges."""
        shared = tuple([(op, substitute([factor], table)[0]) for op, factor in self.shared])
        ratio, lost = (None if node is None else substitute([node], table)[0] for node in (self.ratio, self.lost))
        return Factors(core, shared, ratio, lost)


def above_nothing(top: UOp) -> UOp:
    """A maximum, 0 where it is -inf."""
    return (UOp.const(top.dtype, -math.inf) < top).where(top, UOp.const(top.dtype, 0))


def shrinkage(before: UOp, now: UOp) -> UOp:
    """exp(m' - m): by what sums shrink as a maximum grows."""
    return UOp.apply(ops.EXP, before - above_nothing(now))


@dataclass(slots=True)
class Scales:
    """What is known about running results, and how values depend on them."""

    along: frozenset[UOp] = frozenset()
    """The ranges of the statement at hand that run along the axis."""
    ratios: dict[UOp, tuple[UOp, UOp]] = field(default_factory=dict)
    """For the memory of each running maximum the load of it, and that of the ratio by which it grew."""
    running: set[UOp] = field(default_factory=set)
    """Memory that holds running results, or what is made from these alone."""
    stored: dict[UOp, tuple[UOp, Factors]] = field(default_factory=dict)
    """Intermediates of which memory holds the core: where the statement that makes it puts it, and the factors."""
    depends: dict[UOp, bool] = field(default_factory=dict)
    """Whether each value that was asked about, or lies below one, depends on running results."""

    def is_running(self, value: UOp) -> bool:
        """Whether a value depends on running results: all that it reads is known by the time that it is asked about."""
        known = self.depends
        if value not in known:
            for node in toposort(value, enter=lambda n: n not in known):
                if node not in known:
                    read = node.op is ops.LOAD and self._is_running_memory(node.src[0])
                    known[node] = read or any(known[source] for source in node.src)
        return known[value]

    def _is_running_memory(self, memory: UOp) -> bool:
        return memory in self.running or (memory in self.stored and not self.stored[memory][1].is_plain)

    def factors(self, value: UOp) -> Factors | None:
        """A value taken apart; None where it depends on running results in another way than by a factor."""
        if not self.is_running(value):
            return Factors(value)
        known: dict[UOp, Factors | None] = {}
        for node in toposort(value, enter=lambda n: n.op not in (ops.LOAD, ops.REDUCE) and self.is_running(n)):
            known[node] = self._factors(node, [known.get(source) for source in node.src])
        return known[value]

    def _factors(self, node: UOp, src: Sequence[Factors | None]) -> Factors | None:
        if not self.is_running(node):
            return Factors(node)
        if node.op is ops.LOAD and node.src[0] in self.stored:
            return self._loaded(node)
        if node.op is ops.EXP:
            return self._power(node.src[0])
        if node.ranges.isdisjoint(self.along):
            return Factors(None, ((ops.MUL, node),))
        if any(part is None for part in src):
            return None
        if node.op is ops.CAST and node.dtype.is_float and src[0] is not None and src[0].core is not None:
            return replace(src[0], core=src[0].core.cast(node.dtype))
        if node.op in _INVERSE and src[0] is not None and src[1] is not None:
            return _product(src[0], src[1]) if node.op is ops.MUL else _quotient(src[0], src[1])
        return None

    def _power(self, exponent: UOp) -> Factors | None:
        """exp(x - m) for a running maximum m, with or without a choice of 0 where it is -inf."""
        if exponent.op is not ops.SUB or self.is_running(exponent.src[0]):
            return None
        x, top = exponent.src
        guarded = top.op is ops.WHERE and above_nothing(top.src[1]) is top
        if guarded:
            top = top.src[1]
        ratio = self._ratio(top)
        if ratio is None:
            return None
        lost = None if guarded else top.eq(UOp.const(top.dtype, -math.inf))
        return Factors(UOp.apply(ops.EXP, x - above_nothing(top)), (), ratio, lost)

    def _ratio(self, top: UOp) -> UOp | None:
        """The ratio by which a running maximum grew, None where the value is none."""
        if top.op is not ops.LOAD or top.src[0] not in self.ratios:
            return None
        return read_alike(top, *self.ratios[top.src[0]])

    def _loaded(self, load: UOp) -> Factors | None:
        """The factors of an intermediate, in the ranges in which it is read."""
        place, factors = self.stored[load.src[0]]
        table = _reader_of(place, load)
        parts = [
            node
            for node in (*[factor for _, factor in factors.shared], factors.ratio, factors.lost)
            if node is not None
        ]
        known = all(r in table for part in parts for r in part.ranges)
        return factors.read_as(load, table) if known else None


def _reader_of(place: UOp, load: UOp) -> dict[UOp, UOp]:
    """For the ranges of the place where an intermediate is written those of a load that walk it alike."""
    reader = {stride: term for term, stride in linear(load.src[1]).terms.items()}
    return {term: reader[stride] for term, stride in linear(place).terms.items() if stride in reader}


def read_alike(load: UOp, written: UOp, value: UOp) -> UOp | None:
    """What a value is in the ranges of a load, given a load of the same memory in the ranges of the value; None where
    the two do not walk the memory alike."""
    found, again = substitute([value, written], _reader_of(written.src[1], load))
    return found if again is load else None


def _product(x: Factors, y: Factors) -> Factors | None:
    if x.ratio is not None and y.ratio is not None:
        return None
    cores = [part.core for part in (x, y) if part.core is not None]
    core = UOp.apply(ops.MUL, *cores) if len(cores) == 2 else next(iter(cores), None)
    scaled = y if x.ratio is None else x
    return Factors(core, x.shared + y.shared, scaled.ratio, scaled.lost)


def _quotient(x: Factors, y: Factors) -> Factors | None:
    if y.ratio is not None:
        return None
    shared = (*x.shared, *[(_INVERSE[op], factor) for op, factor in y.shared])
    core = x.core
    if y.core is not None:
        core = UOp.apply(ops.DIV, UOp.const(y.core.dtype, 1) if core is None else core, y.core)
    return replace(x, core=core, shared=shared)
