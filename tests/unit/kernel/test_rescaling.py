"""What of a value follows a running maximum, and what all terms of a sum share."""

from __future__ import annotations

import math

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.kernel.rescaling import Factors, Scales, above_nothing
from support.kernels import load, loop, param

J = loop(1, 8)
X, Y = load(param(0, 8), J), load(param(1, 8), J)
TOP, TOTAL, RATIO = (load(param(slot, 1), index(0)) for slot in (2, 3, 4))


def scales() -> Scales:
    return Scales(frozenset({J}), {TOP.src[0]: (TOP, RATIO)}, {node.src[0] for node in (TOP, TOTAL, RATIO)})


def exp(x: UOp) -> UOp:
    return UOp.apply(ops.EXP, x)


def test_a_value_without_running_results_is_its_own_core():
    assert Factors(X * Y) == scales().factors(X * Y)
    assert Factors(X * Y).is_plain


def test_a_power_below_the_maximum_shrinks_as_that_grows():
    found = scales().factors(exp(X - above_nothing(TOP)) * Y)

    assert found == Factors(exp(X - above_nothing(TOP)) * Y, (), RATIO)
    assert not found.is_plain


def test_without_a_choice_for_rows_of_nothing_their_sums_are_nan():
    found = scales().factors(exp(X - TOP))

    assert exp(X - above_nothing(TOP)) is found.core
    assert TOP.eq(UOp.const(dtypes.float32, -math.inf)) is found.lost


def test_what_all_terms_share_is_left_for_the_end():
    power = exp(X - above_nothing(TOP))

    for value in (power / TOTAL * Y, power * (1 / TOTAL) * Y, Y * (power / TOTAL)):
        found = scales().factors(value)
        assert found.core in (power * Y, Y * power)
        assert found.finished(TOP) in (TOP / TOTAL, TOP * (1 / TOTAL))


def test_a_quotient_by_what_varies_keeps_what_is_shared():
    found = scales().factors(TOTAL / Y)

    assert UOp.const(dtypes.float32, 1) / Y is found.core
    assert ((ops.MUL, TOTAL),) == found.shared


def test_other_ways_to_depend_on_a_maximum_are_none():
    power = exp(X - TOP)

    for value in (exp(TOP - X), power + 1, power * power, Y / power, UOp.apply(ops.SIN, X - TOP), exp(X - TOTAL)):
        assert scales().factors(value) is None


def test_an_intermediate_is_read_in_the_ranges_of_its_reader():
    i, other, w = loop(0, 4), loop(5, 4), loop(6, 8)
    memory, total = param(7, 32), param(3, 4)
    known = scales()
    known.along = frozenset({J, w})
    known.stored[memory] = i * 8 + J, Factors(X, ((ops.DIV, load(total, i)),))
    found = known.factors(load(memory, other * 8 + w) * load(param(1, 8), w))

    assert ((ops.DIV, load(total, other)),) == found.shared
    assert known.factors(load(memory, w)) is None


def test_a_maximum_may_be_read_in_other_ranges():
    i, other = loop(0, 4), loop(5, 4)
    top, ratio = load(param(2, 8), i), load(param(4, 4), i)
    known = Scales(frozenset({J}), {top.src[0]: (top, ratio)}, {top.src[0], ratio.src[0]})
    found = known.factors(exp(X - above_nothing(load(param(2, 8), other))))

    assert load(param(4, 4), other) is found.ratio
    assert known.factors(exp(X - above_nothing(load(param(2, 8), other + 4)))) is None
