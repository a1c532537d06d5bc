"""Bounds of integral values, and the linear normal form of INDEX expressions.

Bounds are intervals that are never too small: a stored integer whose interval leaves its type may
have wrapped, so it gets the whole type.  `Linear` writes an INDEX expression as a constant plus
coefficients of terms that are not sums; sizes and positions are compared in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp

Interval = tuple[int, int]


def bounds_of(node: UOp) -> tuple[Scalar, Scalar]:
    """The interval of a node whose sources know theirs."""
    dtype = node.dtype
    if node.op is ops.CONST:
        return node.value, node.value
    if not dtype.is_integral:
        return dtype.min, dtype.max
    rule = _RULES.get(node.op)
    if rule is None or not all(source.dtype.is_integral for source in node.src):
        return _whole(node)
    low, high = rule(node)
    if dtype is dtypes.index:
        return low, high
    if low < dtype.min or high > dtype.max:
        return dtype.min, dtype.max
    return low, high


_UNKNOWN: Interval = (-(1 << 62), 1 << 62)


def _whole(node: UOp) -> Interval:
    return _UNKNOWN if node.dtype is dtypes.index else (int(node.dtype.min), int(node.dtype.max))


def _source_bounds(node: UOp) -> list[Interval]:
    return [(int(s.bounds[0]), int(s.bounds[1])) for s in node.src]


def _corners(function: Callable[[int, int], int]) -> Callable[[UOp], Interval]:
    def rule(node: UOp) -> Interval:
        (a, b), (c, d) = _source_bounds(node)
        values = [function(x, y) for x in (a, b) for y in (c, d)]
        return min(values), max(values)

    return rule


def _floordiv(node: UOp) -> Interval:
    (a, b), (c, d) = _source_bounds(node)
    if c <= 0 <= d:  # a divisor may be zero or change sign: the quotient is no larger than the dividend
        reach = max(abs(a), abs(b))
        return -reach - 1, reach + 1
    values = [x // y for x in (a, b) for y in (c, d)]
    return min(values), max(values)


def _mod(node: UOp) -> Interval:
    (a, b), (c, d) = _source_bounds(node)
    if c == d > 0 and a // c == b // c:
        return a % c, b % c
    if c > 0:
        return (0, min(b, d - 1)) if a >= 0 else (0, d - 1)
    return min(c + 1, 0), max(d - 1, 0)


def _compare(always: Callable[[Interval, Interval], bool], never: Callable[[Interval, Interval], bool]):  # type: ignore[no-untyped-def]
    def rule(node: UOp) -> Interval:
        left, right = _source_bounds(node)
        return int(always(left, right)), int(not never(left, right))

    return rule


def _choice(node: UOp) -> Interval:
    gate, yes, no = _source_bounds(node)
    if gate[0] == gate[1]:
        return yes if gate[0] else no
    return min(yes[0], no[0]), max(yes[1], no[1])


def _and(node: UOp) -> Interval:
    (a, b), (c, d) = _source_bounds(node)
    if node.dtype is dtypes.bool:
        return min(a, c), min(b, d)
    if a >= 0 or c >= 0:
        return 0, min([high for low, high in ((a, b), (c, d)) if low >= 0])
    return _whole(node)


def _or(node: UOp) -> Interval:
    (a, b), (c, d) = _source_bounds(node)
    return (max(a, c), max(b, d)) if node.dtype is dtypes.bool else _whole(node)


def _cast(node: UOp) -> Interval:
    ((a, b),) = _source_bounds(node)
    return (int(a > 0 or b < 0), int(a != 0 or b != 0)) if node.dtype is dtypes.bool else (a, b)


def _scalar(node: UOp) -> Interval:
    low, high = node.arg[1], node.arg[2]
    return _whole(node) if low is None or high is None else (low, high)


def _most(size: int) -> int:
    from lazulite.ir.size import most

    return most(size)


def _reduced(node: UOp) -> Interval:
    if node.arg[0] in (ops.MAX, ops.MIN):
        return _source_bounds(node)[0]
    return _whole(node)


_RULES: dict[Op, Callable[[UOp], Interval]] = {
    ops.RANGE: lambda node: (0, max(int(node.src[0].bounds[1]) - 1, 0)),
    ops.IOTA: lambda node: (0, max(_most(node.arg) - 1, 0)),
    ops.SCALAR: _scalar,
    ops.ADD: _corners(lambda x, y: x + y),
    ops.SUB: _corners(lambda x, y: x - y),
    ops.MUL: _corners(lambda x, y: x * y),
    ops.MAX: _corners(max),
    ops.MIN: _corners(min),
    ops.FLOORDIV: _floordiv,
    ops.MOD: _mod,
    ops.LT: _compare(lambda x, y: x[1] < y[0], lambda x, y: x[0] >= y[1]),
    ops.LE: _compare(lambda x, y: x[1] <= y[0], lambda x, y: x[0] > y[1]),
    ops.EQ: _compare(lambda x, y: x[0] == x[1] == y[0] == y[1], lambda x, y: x[1] < y[0] or y[1] < x[0]),
    ops.NE: _compare(lambda x, y: x[1] < y[0] or y[1] < x[0], lambda x, y: x[0] == x[1] == y[0] == y[1]),
    ops.AND: _and,
    ops.OR: _or,
    ops.WHERE: _choice,
    ops.CAST: _cast,
    ops.NEG: lambda node: (-int(node.src[0].bounds[1]), -int(node.src[0].bounds[0])),
    ops.REDUCE: _reduced,
    **{movement: lambda node: _source_bounds(node)[0] for movement in ops.MOVEMENT - {ops.PAD}},
    ops.GATHER: lambda node: (min(int(node.src[0].bounds[0]), 0), max(int(node.src[0].bounds[1]), 0)),
    ops.PAD: lambda node: (min(int(node.src[0].bounds[0]), 0), max(int(node.src[0].bounds[1]), 0)),
}


@dataclass(slots=True)
class Linear:
    """`constant` + the sum of coefficient x term.  Terms are INDEX nodes that are no sums or multiples.

    A value: nothing changes it once it is made (to have that enforced would cost three times the time to make it).
    """

    constant: int = 0
    terms: Mapping[UOp, int] = field(default_factory=dict)

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for term, factor in other.terms.items():
            total = terms.get(term, 0) + factor
            if total:
                terms[term] = total
            else:
                del terms[term]
        return Linear(self.constant + other.constant, terms)

    def scaled(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear(self.constant * factor, {term: f * factor for term, f in self.terms.items()})

    @property
    def bounds(self) -> Interval:
        """The interval of the sum, each term taken for itself."""
        low = high = self.constant
        for term, factor in self.terms.items():
            ends = int(term.bounds[0]) * factor, int(term.bounds[1]) * factor
            low, high = low + min(ends), high + max(ends)
        return low, high


def linear(node: UOp) -> Linear:
    """The normal form of an INDEX expression; that of a sum or multiple is kept with the node."""
    known: Linear | None = node._linear
    if known is None:
        known = _linear(node)
        if node not in known.terms:  # a cycle would outlive its last user
            node._linear = known
    return known


def _linear(node: UOp) -> Linear:
    constant, terms = 0, dict[UOp, int]()
    pending: list[tuple[UOp, int]] = []
    part, factor = node, 1
    while True:
        op = part.op
        if op is ops.ADD:
            part, other = part.src
            pending.append((other, factor))
            continue
        if op is ops.SUB:
            part, other = part.src
            pending.append((other, -factor))
            continue
        if op is ops.MUL:
            left, right = part.src
            if right.op is ops.CONST:
                part, factor = left, factor * right.arg
                continue
            if left.op is ops.CONST:
                part, factor = right, factor * left.arg
                continue
        if op is ops.CONST:
            constant += factor * part.arg
        else:
            terms[part] = terms.get(part, 0) + factor
        if not pending:
            break
        part, factor = pending.pop()
    if 0 in terms.values():
        terms = {term: factor for term, factor in terms.items() if factor}
    return Linear(constant, terms)


def difference(left: UOp, right: UOp) -> Linear:
    """left - right in normal form; equal expressions give the constant 0 and no terms."""
    return linear(left) + linear(right).scaled(-1)
