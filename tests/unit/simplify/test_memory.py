"""LOADs and STOREs with gates."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.simplify.normal import normalise
from support.brute_force import MEMORY
from support.index_grid import loop

M, N = loop(4, 0), loop(8, 1)
VALUE = UOp.const(dtypes.float32, 2)


def load(*src: UOp) -> UOp:
    return UOp(ops.LOAD, dtypes.float32, (MEMORY, *src))


def store(*src: UOp) -> UOp:
    return UOp(ops.STORE, dtypes.void, (MEMORY, *src))


def test_a_gate_that_bounds_decide_goes_away():
    assert normalise(load(M, M < 4), store(M, VALUE, M < 9)) == [load(M), store(M, VALUE)]
    assert normalise(load(M, M < 0)) == [UOp.const(dtypes.float32, 0)]


def test_an_index_is_simplified_under_its_gate():
    gate = N < 5
    place = (M * 5 + N) // 5

    assert normalise(load(place, gate), store(place, VALUE, gate)) == [load(M, gate), store(M, VALUE, gate)]
