"""Random kernels whose reductions lie in one another, over ranges that they share, some of them in nests."""

from __future__ import annotations

from random import Random

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, index
from lazulite.kernel.nest import by_order
from support.kernels import load, loop, param, reduce, sink, store

_EXTENTS = (3, 3, 2, 4)
_SLOTS, _SIZE = (3, 4), 128
_COMBINE = (ops.ADD, ops.MAX, ops.MIN)


class _Draw:
    """Values over a few ranges; what was made before is used again."""

    def __init__(self, rng: Random, nests: bool, dtype: DType) -> None:
        self.rng, self.nests, self.dtype, self.scratches = rng, nests, dtype, 0
        self.ranges = [loop(order, extent) for order, extent in enumerate(_EXTENTS)]
        self.values = [self._leaf() for _ in range(3)]

    def value(self, depth: int) -> UOp:
        """A value with so many levels of reductions at most."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            found = rng.choice(self.values) if rng.random() < 0.5 else self._leaf()
        elif rng.random() < 0.6:
            found = self._reduction(depth)
        else:
            left, right = self.value(depth - 1), self.value(depth - 1)
            found = UOp.apply(rng.choice((ops.ADD, ops.MUL, ops.MAX)), left, right)
        self.values.append(found)
        return found

    def _leaf(self) -> UOp:
        place = index(self.rng.randrange(8))
        for r in self.rng.sample(self.ranges, self.rng.randint(1, 3)):
            place = place + r * self.rng.choice((1, 3, 9))
        return load(param(self.rng.choice(_SLOTS), _SIZE, self.dtype), place)

    def _reduction(self, depth: int) -> UOp:
        rng, op = self.rng, self.rng.choice(_COMBINE)
        inner = UOp.apply(ops.ADD, self.value(depth - 1), self._leaf())
        if rng.random() < 0.4:
            assert op.identity is not None
            inner = (rng.choice(self.ranges) < rng.choice(self.ranges) + 1).where(inner, op.identity(inner.dtype))
        total = reduce(op, inner, *self._innermost(inner, rng.randint(1, 2)))
        return self._through_memory(total) if self.nests and rng.random() < 0.4 else total

    def _through_memory(self, value: UOp) -> UOp:
        """The value stored for every turn of a range, and read again at some turn."""
        (r,) = self._innermost(value, 1)
        turns = r.src[0].arg
        self.scratches += 1
        scratch = UOp(ops.SCRATCH, value.dtype, (), (self.scratches - 1, turns, 64))
        nest = UOp(ops.FOR, dtypes.void, (r, store(scratch, r, value)), 0)
        reader = self.rng.choice([each for each in self.ranges if each.src[0].arg <= turns])
        return load(UOp(ops.AFTER, value.dtype, (scratch, nest)), reader)

    def _innermost(self, value: UOp, count: int) -> list[UOp]:
        """Ranges inside of all others that the value varies with."""
        return by_order(value.ranges)[-count:] or [self.rng.choice(self.ranges)]


def nested_reductions(rng: Random, nests: bool = False, dtype: DType = dtypes.int32) -> UOp:
    """A kernel with two results, which may share reductions; with `nests` some go through scratch memory."""
    draw, stores = _Draw(rng, nests, dtype), []
    for slot in (0, 1):
        value, place, size = draw.value(3), index(0), 1
        for r in sorted(value.ranges, key=lambda r: r.arg[0]):
            place, size = place * r.src[0].arg + r, size * r.src[0].arg
        stores.append(store(param(slot, size, dtype), place, value))
    return sink(*stores)
