"""Values combined at positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import Context, Tensor
from lazulite.autograd.scatter import scattered
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort

NUMPY = {ops.ADD: np.add, ops.MUL: np.multiply, ops.MAX: np.maximum, ops.MIN: np.minimum}


def drawn(seed: int, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


@given(
    st.sampled_from([None, *NUMPY]), st.lists(st.integers(1, 3), max_size=2),
    st.lists(st.integers(1, 4), min_size=1, max_size=2), st.lists(st.integers(1, 3), max_size=1), st.integers(0, 99),
)  # fmt: skip
def test_each_place_combines_what_goes_there(
    op: ops.Op | None, own: list[int], sizes: list[int], rest: list[int], seed: int
) -> None:
    values = drawn(seed, (*own, *rest), -5, 5)
    positions = [drawn(seed + 1 + axis, tuple(own), -1, size + 1) for axis, size in enumerate(sizes)]
    into = drawn(seed + 7, (*sizes, *rest), -5, 5)
    expected = into.copy()
    for place in np.ndindex(*own):
        target = tuple([int(p[place]) for p in positions])
        if all(0 <= t < size for t, size in zip(target, sizes, strict=True)):
            expected[target] = values[place] if op is None else NUMPY[op](expected[target], values[place])
    found = scattered(op, Tensor(into).uop, [Tensor(p).uop for p in positions], Tensor(values).uop)

    assert expected.tolist() == Tensor(found).tolist()


def counted(shape: tuple[int, ...], axis: int) -> UOp:
    count = UOp(ops.IOTA, dtypes.int32, (), shape[axis])
    column = UOp(ops.RESHAPE, dtypes.int32, (count,), (shape[axis],) + (1,) * (len(shape) - axis - 1))
    return UOp(ops.EXPAND, dtypes.int32, (column,), shape)


@pytest.mark.parametrize("size", [3, 5])
def test_what_lies_under_an_axis_that_is_counted_along_is_scattered_by_itself(size: int) -> None:
    values, places, into = drawn(0, (3, 4), -5, 5), drawn(1, (3, 4), 0, 6), drawn(2, (size, 6), -5, 5)
    expected = into.copy()
    for row, column in np.ndindex(3, 4):
        expected[row, places[row, column]] += values[row, column]
    found = scattered(ops.ADD, Tensor(into).uop, [counted((3, 4), 0), Tensor(places).uop], Tensor(values).uop)
    (launch,) = [node for node in toposort(found) if node.op is ops.LAUNCH]

    assert expected.tolist() == Tensor(found).tolist()
    assert "loop r0 in 0..3\nloop r1 in 0..4" in launch.arg.kernel


def test_a_long_scatter_takes_a_step_for_each_value_whatever_the_number_of_threads() -> None:
    places = np.random.default_rng(0).integers(0, 1000, 200_000)
    expected = np.bincount(places, minlength=1000)
    zeros, ones = Tensor(np.zeros(1000, np.int32)), Tensor(np.ones(200_000, np.int32))
    for threads in (1, 4):
        with Context(THREADS=threads):
            assert expected.tolist() == zeros.scatter(0, Tensor(places), ones, reduce="add").tolist()


def test_a_scatter_in_the_middle_of_an_expression_runs_in_memory_of_its_own() -> None:
    x, places = np.arange(6, dtype=np.float32), np.array([1, 1, 4], np.int32)
    once = Tensor(x).scatter(0, Tensor(places), Tensor([10.0, 20.0, 30.0]))
    twice = once.scatter(0, Tensor(places[:1]), Tensor([7.0]))
    expected, later = x.copy(), x.copy()
    expected[places], later[places] = [10, 20, 30], [10, 7, 30]

    assert (later + expected * 2 + x).tolist() == (twice + once * 2 + Tensor(x)).tolist()


def test_item_assignment_by_positions_writes_in_place() -> None:
    x = Tensor(np.zeros(1000, np.float32)).realize()
    x[Tensor([3, 5])] = Tensor([1.0, 2.0])

    assert all(kernel.bytes < 100 for kernel in x.explain().kernels), "what is not written is not touched"
    assert [3, 5] == np.flatnonzero(x.numpy()).tolist()


def test_the_interpreter_scatters_as_the_processor_does() -> None:
    places, values = np.array([1, 3, 1, 1, -7, 9], np.int32), np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], np.float32)
    for reduce in (None, "add", "multiply"):
        found = [
            Tensor(np.full(4, 3, np.float32), device=device)
            .scatter(0, Tensor(places, device=device), Tensor(values, device=device), reduce=reduce)
            .tolist()
            for device in ("CPU", "PYTHON")
        ]
        assert found[0] == found[1]


def test_what_is_scattered_into_may_be_what_is_scattered() -> None:
    x, places = np.arange(5, dtype=np.int32), np.array([3, 3, 0, 1, 4], np.int32)
    expected = x.copy()
    expected[places] = x
    lazy = Tensor(x) * 1
    assert expected.tolist() == lazy.scatter(0, Tensor(places), lazy).tolist()
    held = Tensor(x).realize()
    held[Tensor(places)] = held
    assert expected.tolist() == held.tolist()
    assert [[0.0], [0.0]] == Tensor.zeros(2, 1).sort()[0].tolist()


def test_positions_and_values_are_computed_where_they_are_scattered() -> None:
    """One kernel fills the places and one scatters, whatever the positions and values are made of."""
    places, values = drawn(0, (3, 500), 0, 99), drawn(1, (3, 500), -9, 9)
    expected = np.zeros((3, 100), np.int32)
    np.add.at(expected, (np.arange(3)[:, None], 99 - places), values * 2 + 1)
    made = Tensor(places), Tensor(values)
    result = Tensor.zeros(3, 100, dtype="int32").scatter_add(1, 99 - made[0], made[1] * 2 + 1)

    names = [kernel.name for kernel in result.explain().kernels]
    assert len(names) == 2, names
    assert names[-1] == "scatter"
    assert expected.tolist() == result.tolist()


def test_dear_values_and_sums_are_stored_before_they_are_scattered() -> None:
    values = np.random.default_rng(0).uniform(0.5, 2, (400, 7)).astype(np.float32)
    places = Tensor(drawn(0, (400,), 0, 9))
    for made, plain in (
        (Tensor(values).sum(1), values.sum(1)),
        (Tensor(values[:, 0]).sin().exp().log(), np.sin(values[:, 0])),
    ):
        expected = np.zeros(10)
        np.add.at(expected, places.numpy(), plain)
        np.testing.assert_allclose(Tensor.zeros(10).scatter_add(0, places, made).numpy(), expected, rtol=1e-4)


@given(st.integers(1, 4), st.integers(1, 60))
def test_positions_that_no_memory_says_are_taken_in_order(step: int, count: int) -> None:
    """Counted positions that meet: an expression would not show that turns follow one another."""
    values, numbers = drawn(count, (count,), -9, 9), (np.arange(count), Tensor.arange(count))
    for plain, places in zip(*[(i // step, i % step, (i * 3 + 1) % 7) for i in numbers], strict=True):
        expected = np.zeros(count + 8, np.int32)
        np.add.at(expected, plain, values)
        lazy = Tensor.zeros(count + 8, dtype="int32").scatter_add(0, places, Tensor(values) * 1)
        assert expected.tolist() == lazy.tolist()


@pytest.mark.parametrize("held", [False, True])
def test_positions_made_from_what_is_overwritten_are_those_of_before(held: bool) -> None:
    """A scatter in place reads positions and values out of the memory that it writes as they were."""
    count = 5000
    x, values = np.random.default_rng(0).permutation(count).astype(np.int32), drawn(1, (count,), 0, 9)
    expected = x.copy()
    np.add.at(expected, count - 1 - x, values * 2 + x)
    tensor = Tensor(x.copy())
    if held:
        tensor.realize()
    tensor.assign(tensor.scatter_add(0, count - 1 - tensor, Tensor(values) * 2 + tensor))
    assert expected.tolist() == tensor.tolist()


def test_every_kernel_of_a_scatter_names_the_line_that_asks_for_it() -> None:
    x = Tensor(np.arange(5, dtype=np.int32)).realize()
    kernels = (x.scatter(0, Tensor([3]), Tensor([7])) * x).explain().kernels
    assert {"test_scatter.py"} == {kernel.line.partition(":")[0].rpartition("/")[2] for kernel in kernels}


@pytest.mark.parametrize(("places", "count"), [(7, 70_001), (1000, 100_000), (100_000, 70_001), (40_000, 80_000)])
def test_long_sums_by_positions_do_not_depend_on_the_number_of_threads(places: int, count: int) -> None:
    """Sums in a fixed number of blocks, some of which are not full, dropped positions among them; bit for bit."""
    numbers = np.random.default_rng(0)
    where = numbers.integers(-1, places + 1, count)
    values, start = numbers.normal(size=count).astype(np.float32), numbers.normal(size=places).astype(np.float32)
    inside = (where >= 0) & (where < places)
    expected = start + np.bincount(where[inside], values[inside].astype(np.float64), places)
    found = []
    for threads in (1, 2, 4):
        with Context(THREADS=threads):
            held, position = Tensor(start).uop, Tensor(where.astype(np.int32)).uop
            found.append(Tensor(start)._derived(scattered(ops.ADD, held, [position], Tensor(values).uop)).numpy())

    np.testing.assert_allclose(found[0], expected, atol=1e-4 * max(1, count / places / 100))
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_the_gradient_of_a_long_sum_is_what_stands_at_the_positions() -> None:
    where = np.random.default_rng(0).integers(0, 50, 70_000).astype(np.int32)
    start, values = (
        Tensor(np.zeros(50, np.float32), requires_grad=True),
        Tensor(np.ones(70_000, np.float32), requires_grad=True),
    )
    weight = np.random.default_rng(1).normal(size=50).astype(np.float32)
    (start.scatter_add(0, Tensor(where), values) * Tensor(weight)).sum().backward()

    assert start.grad is not None
    assert values.grad is not None
    assert weight.tolist() == start.grad.tolist()
    assert weight[where].tolist() == values.grad.tolist()
