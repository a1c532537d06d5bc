"""What a search tries next is near, never repeated, and computes the same wherever it is legal."""

from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lazulite.base.errors import StageError
from lazulite.ir.target import host
from lazulite.kernel.apply import apply, loops_after
from lazulite.kernel.heuristic import choose
from lazulite.kernel.moves import neighbours, simple_schedules
from lazulite.kernel.search import is_reasonable
from lazulite.kernel.steps import Keep, Parallel, Reorder, Split, Stage, Tile, Vectorize, parse, text
from support.kernels import assert_close, compiled, interpreted, legal, matmul, random_kernel, random_memory, softmax

BLOCKED = (Split((0,), 4), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)), Reorder(((1, 0), (0, 0))),
           Stage(2, ((2,), (1, 1))), Parallel((1, 0)))  # fmt: skip


def found(steps, kernel=None):
    return list(neighbours(matmul(64, 64, 64) if kernel is None else kernel, steps, host()))


@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_any_legal_schedule_that_a_search_reaches_computes_the_same(rng: Random, moves: int):
    """From the heuristic's choice or a simple schedule, over several moves."""
    kernel = random_kernel(rng)
    steps = rng.choice([choose(kernel, host()), *simple_schedules(kernel, host())])
    for _ in range(moves):
        near = [each for each in neighbours(kernel, steps, host()) if legal(kernel, each)]
        steps = rng.choice(near) if near else steps
    assume(legal(kernel, steps) and is_reasonable(apply(kernel, steps), host()))
    memory = random_memory(kernel, rng)
    try:
        results = compiled(kernel, host(), steps, memory)
    except StageError:  # refused by a later stage, which is as good
        return
    assert_close(interpreted(kernel, memory), results)


@given(st.randoms(use_true_random=False))
def test_neighbours_are_different_and_print_and_parse(rng: Random):
    kernel = random_kernel(rng)
    steps = choose(kernel, host())
    near = list(neighbours(kernel, steps, host()))
    assert len(near) == len(set(near)) and steps not in near
    assert all(parse(text(each)) == each for each in near)


@pytest.mark.parametrize("factor", [2, 3, 5, 8])
def test_factors_change(factor):
    assert any(Split((0,), factor) in each for each in found(BLOCKED))


@pytest.mark.parametrize("kind", [Tile, Vectorize, Stage, Parallel])
def test_each_kind_of_step_is_tried_without(kind):
    assert any(not any(isinstance(step, kind) for step in each) for each in found(BLOCKED))


def test_loops_change_places_and_the_outermost_stays_parallel():
    moved = [each for each in found(BLOCKED) if Parallel((0, 0)) in each]
    assert any(Reorder(((0, 0), (1, 0), (2,))) in each or Reorder(((0, 0), (1, 0))) in each for each in moved)


def test_a_range_that_is_cut_is_renamed_in_what_follows():
    cut = next(each for each in found(BLOCKED) if Split((2,), 4) in each and Tile((2, 1)) in each)
    assert Stage(2, ((2, 0), (1, 1))) in cut


def test_the_lanes_move_to_another_range():
    assert any(Vectorize((0, 0, 1)) in each and Vectorize((1, 1)) not in each for each in found(BLOCKED))


def test_an_operand_is_copied_in_panels():
    bare = BLOCKED[:4]
    assert any(Stage(2, ((2,), (1, 1))) in each for each in found(bare))


def test_a_schedule_becomes_parallel_and_stops_being_so():
    assert (*BLOCKED[:4], Parallel((0, 0))) in found(BLOCKED[:4])
    assert BLOCKED[:-1] in found(BLOCKED)


def test_a_value_that_is_kept_is_tried_without():
    assert () in found((Keep((3,), (1,)),), softmax(40, 80))


def test_simple_schedules_give_every_range_the_lanes():
    marked = {step.range[0] for steps in simple_schedules(matmul(8, 8, 8), host()) for step in steps
              if isinstance(step, Vectorize)}  # fmt: skip
    assert {0, 1, 2} == marked


def test_loops_after_steps_are_told_without_rewriting():
    loops = loops_after(matmul(64, 64, 64), BLOCKED)
    assert [(1, 0), (0, 0), (2,)] == [each.name for each in loops if each.kind in ("loop", "parallel")]
    assert {"parallel", "loop", "row", "lane"} == {each.kind for each in loops}
    assert [False] * 4 + [True] == [each.reduces for each in loops]
