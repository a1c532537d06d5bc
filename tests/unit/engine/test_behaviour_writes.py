"""Writes in place: their values, their gradients, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from lazulite import Context, DTypeError, GlobalCounters, GradientError, ShapeError, Tensor


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    with Context(CACHE=0):
        yield


def launches(*tensors: Tensor) -> int:
    """How many kernels it takes to realize these together."""
    before = GlobalCounters.kernel_count
    Tensor.realize(*tensors)
    return GlobalCounters.kernel_count - before


def address(tensor: Tensor) -> int:
    return tensor._handle.storage.buffer.require_handle("test").address


# --- what it costs -------------------------------------------------------------------------------


def test_an_operator_on_a_part_is_one_kernel() -> None:
    """B008"""
    t = Tensor([1, 2, 3, 4]).realize()
    t[0:3] *= 10

    assert (1, [10, 20, 30, 4]) == (launches(t), t.tolist())


def test_program_order_alone_needs_no_copies() -> None:
    """A1: what was read before runs before, in one run, and is not copied."""
    x, y = Tensor([1]).realize(), Tensor([2]).realize()
    e = x * 3 + 10
    x.assign(x * 2)
    y.assign(y + x)
    z = y + e

    assert 3 >= launches(x, y, z)
    assert ([2], [4], [17]) == (x.tolist(), y.tolist(), z.tolist())


@pytest.mark.parametrize("read", [Tensor.clone, Tensor.contiguous, lambda part: part + 0], ids=["clone", "view", "add"])
def test_a_swap_of_two_halves_takes_one_copy(read: Callable[[Tensor], Tensor]) -> None:
    """B005"""
    t = Tensor([1, 2, 3, 4]).realize()
    left, right = read(t[0:2]), read(t[2:4])
    t[0:2].assign(right)
    t[2:4].assign(left)

    assert (3, [3, 4, 1, 2]) == (launches(t), t.tolist())
    assert ([1, 2], [3, 4]) == (left.tolist(), right.tolist())


@pytest.mark.parametrize("read", [Tensor.clone, lambda whole: whole + 0], ids=["clone", "add"])
def test_a_swap_of_two_tensors_takes_one_copy(read: Callable[[Tensor], Tensor]) -> None:
    a, b = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()
    places, old = (address(a), address(b)), read(a)
    a.assign(b)
    b.assign(old)

    assert (3, [3, 4], [1, 2]) == (launches(a, b), a.tolist(), b.tolist())
    assert places == (address(a), address(b))


def test_rows_made_of_the_rows_above_are_a_kernel_each() -> None:
    t = Tensor([[1], [0], [0], [0], [0]]).realize()
    for row in range(4):
        t[row + 1] = t[row] * 2

    assert (4, [1, 2, 4, 8, 16]) == (launches(t), t.flatten().tolist())


def test_an_old_value_that_is_cheap_is_computed_again() -> None:
    t = Tensor([1, 2]).realize()
    old = t * 2
    t.assign(t + 1)
    t.assign(t + old)
    del old

    assert (1, [4, 7]) == (launches(t), t.tolist())


def test_a_partial_write_to_a_pending_expression_is_part_of_its_kernel() -> None:
    """A5, B004"""
    t = Tensor([[1, 2], [3, 4]]).realize() * 3
    t[0].assign(9)

    assert (1, [[9, 9], [9, 12]]) == (launches(t), t.tolist())


@pytest.mark.parametrize("base", ["sum", "arange"])
def test_a_write_to_a_slice_of_what_is_pending_is_not_dropped(base: str) -> None:
    """B004"""
    a = Tensor([1, 2, 3])
    c = a + a if base == "sum" else Tensor.arange(4).contiguous().realize()
    c[0:2].assign([99, 99])

    assert c.tolist() == ([99, 99, 6] if base == "sum" else [99, 99, 2, 3])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "float32", "bfloat16", "bool"])
@pytest.mark.parametrize("index", [0, slice(0, 1), slice(None), ...], ids=str)
def test_the_only_element_is_written(dtype: str, index: object) -> None:
    """O01"""
    for t in (Tensor([0], dtype=dtype).realize(), Tensor([0], dtype=dtype) + 0, Tensor.zeros(1, dtype=dtype)):
        t[index] = 1
        assert [1] == t.tolist()


# --- what a write means --------------------------------------------------------------------------


def test_a_sum_before_a_write_and_one_after_it() -> None:
    """B002"""
    t = Tensor.zeros(6).realize()
    before = t.sum()
    t[0:3] = 1
    after = t.sum()

    assert (0.0, 3.0) == (before.item(), after.item())


def test_a_view_is_the_newest_place_of_its_base_when_written_and_old_contents_when_read() -> None:
    """A1"""
    t = Tensor([1, 2, 3]).realize()
    part = t[0:2]
    t.assign(t * 10)
    assert [1, 2] == part.tolist()

    part.assign(part + 100)
    assert ([101, 102], [101, 102, 30]) == (part.tolist(), t.tolist())


def test_memory_stays_where_it_is() -> None:
    t = Tensor([1.0, 2.0, 3.0]).realize()
    place = address(t)
    for write in (lambda: t.assign(t.flip(0)), lambda: t[1:].assign(t[:-1]), lambda: t.assign(t + t.sum())):
        write()
        t.realize()
        assert place == address(t)
    assert [11.0, 11.0, 10.0] == t.tolist()


def test_what_shares_no_place_is_not_written() -> None:
    """A4"""
    t = Tensor([1, 2]).realize()
    for other in (t.clone(), t.contiguous(), t.detach(), Tensor(t), t + 0):
        other.assign([7, 8])
        assert ([7, 8], [1, 2]) == (other.tolist(), t.tolist())


def test_a_pending_copy_from_another_device_is_a_copy() -> None:
    """A4"""
    a = Tensor([2], device="PYTHON")
    b = a.to("CPU")
    b.assign([7])
    a.assign([3])

    assert ([7], [3]) == (b.tolist(), a.tolist())


def test_a_list_is_as_weak_as_a_number() -> None:
    """A8"""
    t = Tensor([1.0, 2.0])
    assert [3.0, 4.0] == t.assign([3, 4]).tolist()
    with pytest.raises(DTypeError, match="assign"):
        Tensor([1, 2]).assign([1.5, 2.5])
    with pytest.raises(DTypeError, match="assign"):
        t.assign(np.array([1, 2]))
    with pytest.raises(OverflowError):
        Tensor([1, 2], dtype="int8").assign([300, 1])


def test_an_error_leaves_everything_as_it_was() -> None:
    t = Tensor([1, 2, 3]).realize()
    t.assign(t + 1)
    with pytest.raises(ShapeError):
        t.assign([1, 2])
    with pytest.raises(ShapeError):
        t[0:2] = Tensor([1, 2, 3])

    assert [2, 3, 4] == t.tolist()


# --- gradients -----------------------------------------------------------------------------------


def test_a_column_that_is_added_twice_counts_twice() -> None:
    """B010"""
    x, y = Tensor([[1.0, 2.0, -3.0], [4.0, 5.0, 6.0]]), Tensor.zeros(2, 3)
    for _ in range(2):
        y[:, 0] += x[:, 2].abs()

    assert [[0.0, 0.0, -2.0], [0.0, 0.0, 2.0]] == y.sum().gradient(x)[0].tolist()


@pytest.mark.parametrize("realized", [(), (0,), (1,), (0, 1), (0, 1, 2)], ids=str)
def test_realizing_on_the_way_leaves_the_gradient(realized: tuple[int, ...]) -> None:
    """A3: what was overwritten is computed anew."""
    x = Tensor([2.0, 3.0], requires_grad=True)
    y = x.clone()
    for step in range(3):
        if step == 2:
            y[:1].assign(0)
        else:
            y.assign(y.square())
        if step in realized:
            y.realize()

    assert [0.0, 4 * 3.0**3] == y.sum().gradient(x)[0].tolist()


def test_a_partial_write_of_a_value_contributes_once() -> None:
    """A3"""
    x = Tensor([2.0, 3.0])
    y = Tensor.zeros(4)
    y[1:3] = x

    assert [1.0, 1.0] == y.sum().gradient(x)[0].tolist()


def test_a_view_that_was_written_passes_gradients_like_its_base() -> None:
    """A3"""
    x = Tensor([2.0, 3.0, 4.0])
    y = x.clone()
    part = y[1:]
    part *= part

    assert [1.0, 6.0, 8.0] == y.sum().gradient(x)[0].tolist()
    assert [0.0, 6.0, 8.0] == part.sum().gradient(x)[0].tolist()


def test_a_gradient_that_cannot_be_had_any_more_names_both_lines() -> None:
    """A3"""
    x, w = Tensor([2.0, 3.0]).realize(), Tensor([4.0, 5.0], requires_grad=True)
    y = (x * w).realize()
    x.assign(x + 1).realize()
    with pytest.raises(GradientError, match="later write") as caught:
        y.sum().gradient(w)[0].tolist()

    assert "the old value" in str(caught.value) and "replaced by" in str(caught.value)
    assert 2 <= str(caught.value).count("test_behaviour_writes.py:")


def test_a_value_that_another_tensor_takes_in_part_is_read_by_its_bytes() -> None:
    """A4: it is stored in memory of its own for that."""
    numbers = np.arange(12, dtype=np.int32).reshape(3, 4)
    x, taken = Tensor(numbers), Tensor.zeros(3, 4, dtype="int32")
    x[1:] = x[:-1]
    taken.flip(1).assign(x)
    x.bitcast("uint8")[..., ::4] = 1
    Tensor.realize(taken, x)

    assert [row[::-1] for row in numbers[[0, 0, 1]].tolist()] == taken.tolist()
    assert [[1] * 4] * 3 == x.tolist()
