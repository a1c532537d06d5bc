"""Loops have no turns where what they would combine does not count."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify
from lazulite.kernel.apply import apply
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Split, Tile, Vectorize
from lazulite.lower.idle_turns import depth_of, without_idle_turns
from lazulite.lower.loops import build
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    input_gradient,
    interpreted,
    listed,
    load,
    loop,
    param,
    random_memory,
    reduce,
    sink,
    store,
)

OUTSIDE, FIRST, SECOND = loop(0, 4), loop(1, 3), loop(2, 5)
LOOPS = [FIRST, SECOND]
ROW = loop(3, 2).replace(arg=((3,), "row"))
X = load(param(1, 60), (OUTSIDE * 3 + FIRST) * 5 + SECOND)


def turns(*gates: UOp, op: ops.Op = ops.ADD) -> list[UOp]:
    """The numbers of turns for values that each have a gate."""
    values = [gate.where(X, UOp.const(X.dtype, op.identity(X.dtype))) for gate in gates]
    return [r.src[0] for r in without_idle_turns(LOOPS, [op] * len(gates), values)[0]]


@pytest.mark.parametrize("op", [ops.ADD, ops.MAX], ids=repr)
def test_a_condition_on_loops_around_says_whether_there_are_turns(op: ops.Op):
    gate = FIRST < OUTSIDE

    assert [FIRST.src[0], gate.where(SECOND.src[0], 0)] == turns(gate, op=op)
    assert [(OUTSIDE < 2).where(FIRST.src[0], 0), SECOND.src[0]] == turns(OUTSIDE < 2, op=op)


def test_the_value_keeps_the_conditions_that_are_left():
    (_, inner), (value,) = without_idle_turns(LOOPS, [ops.ADD], [((FIRST < OUTSIDE) & (ROW < FIRST)).where(X, 0.0)])

    assert (ROW < FIRST) is value.src[0]
    assert inner in value.src[1].ranges
    assert SECOND not in value.ranges


@pytest.mark.parametrize(
    "gate",
    [ROW < FIRST, SECOND < OUTSIDE, load(param(2, 4), OUTSIDE) < 1.0, (FIRST < OUTSIDE) | (ROW < FIRST)],
    ids=["a row", "the innermost loop", "data", "either of two"],
)
def test_what_is_not_known_of_all_further_turns_stays_a_gate(gate: UOp):
    values = [gate.where(X, 0.0)]

    assert (LOOPS, values) == without_idle_turns(LOOPS, [ops.ADD], values)


def test_reductions_that_share_loops_have_no_turns_where_none_counts():
    both, one = OUTSIDE < 2, FIRST < OUTSIDE

    assert [both.where(FIRST.src[0], 0), SECOND.src[0]] == turns(both & one, both)
    assert [FIRST.src[0], SECOND.src[0]] == turns(both, one)


def test_a_gate_is_asked_as_deep_as_its_innermost_range():
    assert [0, 1, 2] == [depth_of(gate, LOOPS) for gate in (OUTSIDE < 2, FIRST < OUTSIDE, SECOND < FIRST)]


def test_a_state_that_is_stored_on_the_way_keeps_its_turns():
    scratch = UOp(ops.SCRATCH, dtypes.float32, (), (0, 15, 64))
    noted = UOp(ops.AFTER, dtypes.float32, (X, store(scratch, FIRST * 5 + SECOND, X)))
    total = reduce(ops.ADD, (FIRST < OUTSIDE).where(noted, 0.0), FIRST, SECOND)
    loops = listed(build(sink(store(param(0, 4), OUTSIDE, total)), target("CPU:LLVM", ())), ops.FOR)

    assert {3, 4, 5} == {r.src[0].src[0].value for r in loops}


def infinite_weights(kernel: UOp, rng: Random) -> dict[int, np.ndarray]:
    """Contents with weights of which some are not finite."""
    memory = random_memory(kernel, rng)
    for value in (np.inf, np.nan):
        memory[2][rng.randrange(memory[2].size)] = value
    return memory


@pytest.mark.parametrize("schedule", [choose, lambda *_: ()], ids=["chosen", "plain"])
@given(st.randoms(use_true_random=False))
def test_weights_that_are_not_finite_reach_no_pixel_through_the_border(schedule: Callable[..., tuple], rng: Random):
    sizes = rng.randint(1, 2), rng.randint(1, 33), rng.randint(1, 3), rng.randint(1, 5), rng.randint(1, 9)
    kernel, machine = input_gradient(*sizes), TARGETS["widest"]
    memory = infinite_weights(kernel, rng)
    with np.errstate(invalid="ignore"):
        assert_close(interpreted(kernel, memory), compiled(kernel, machine, schedule(kernel, machine), memory))


def test_rows_of_an_image_beyond_its_border_have_no_turns():
    kernel = apply(input_gradient(1, 16, 4, 4, 4), (Split((3,), 2), Tile((3, 1)), Vectorize((1,))))
    loops = build(kernel, TARGETS["widest"])
    sizes = [r.src[0].src[0] for r in listed(loops, ops.FOR)]

    verify(loops, "LOOP")
    assert 1 == sum(size.op is ops.WHERE for size in sizes)
    assert all(r.arg[1] == "loop" for size in sizes for r in size.ranges)
