"""Twenty programs of about one line.  Read them first: each is a whole use of Lazulite."""

import numpy as np
import pytest

from lazulite import AxisError, Context, DTypeError, GlobalCounters, IndexRangeError, ShapeError, Tensor, dtypes


def test_a_tensor_holds_numbers():
    assert [1, 2, 3] == Tensor([1, 2, 3]).tolist()


def test_operators_work_on_every_element():
    assert [3, 5, 7] == (Tensor([1, 2, 3]) * 2 + 1).tolist()


def test_shapes_are_broadcast():
    assert [[11, 21], [12, 22]] == (Tensor([[1], [2]]) + Tensor([10, 20])).tolist()


def test_python_numbers_take_the_type_of_the_tensor():
    assert (Tensor([1, 2], dtype=dtypes.int8) + 1).dtype is dtypes.int8


def test_true_division_gives_floats():
    assert [0.5, 1.0] == (Tensor([1, 2]) / 2).tolist()


def test_numpy_arrays_go_in_and_come_out():
    assert np.array_equal(Tensor(np.arange(6).reshape(2, 3)).T.numpy(), np.arange(6).reshape(2, 3).T)


def test_a_slice_is_a_view_of_what_was_there():
    assert [[2, 3], [5, 6]] == Tensor([[1, 2, 3], [4, 5, 6]])[:, 1:].tolist()


def test_axes_move():
    assert [1, 3, 2, 4] == Tensor([[1, 2], [3, 4]]).permute(1, 0).reshape(4).tolist()


def test_a_sum_runs_over_one_axis_or_all():
    assert ([4, 6], 10) == (Tensor([[1, 2], [3, 4]]).sum(axis=0).tolist(), Tensor([[1, 2], [3, 4]]).sum().item())


def test_a_matrix_product():
    assert [[19, 22], [43, 50]] == (Tensor([[1, 2], [3, 4]]) @ Tensor([[5, 6], [7, 8]])).tolist()


def test_softmax_gives_weights_that_add_up_to_one():
    assert Tensor([0.0, 1.0, 2.0]).softmax().sum().item() == pytest.approx(1.0)


def test_the_largest_of_each_row():
    assert [1, 0] == Tensor([[1, 9, 2], [7, 0, 3]]).argmax(axis=1).tolist()


def test_a_choice_between_two_values():
    assert [1, 0, 1] == (Tensor([1, -2, 3]) > 0).where(Tensor([1, 1, 1]), 0).tolist()


def test_a_convolution():
    assert [[[[4.0, 4.0], [4.0, 4.0]]]] == Tensor.ones(1, 1, 3, 3).conv2d(Tensor.ones(1, 1, 2, 2)).tolist()


def test_a_gradient():
    assert [6.0] == (x := Tensor([3.0])).square().sum().gradient(x)[0].tolist()


def test_the_same_seed_gives_the_same_numbers():
    def draw():
        Tensor.manual_seed(1)
        return Tensor.rand(3).tolist()

    assert draw() == draw()


def test_a_write_is_seen_by_what_is_read_after_it():
    assert [6] == (x := Tensor([2])).assign(x + 1).assign(x * 2).tolist()


def test_nothing_runs_before_somebody_looks():
    GlobalCounters.reset()
    assert (2,) == (Tensor([1, 2]) + 1).shape
    assert 0 == GlobalCounters.kernel_count


def test_a_setting_holds_for_a_block():
    with Context(FUSE=0):
        assert [3.0, 5.0] == (Tensor([1.0, 2.0]) * 2 + 1).tolist()


@pytest.mark.parametrize(
    ("error", "program"),
    [
        (ShapeError, lambda: Tensor([1, 2, 3]).reshape(2, 2)),
        (AxisError, lambda: Tensor([1, 2, 3]).sum(axis=1)),
        (IndexRangeError, lambda: Tensor([1, 2, 3])[3]),
        (DTypeError, lambda: Tensor([True]) - Tensor([False])),
        (OverflowError, lambda: Tensor([1], dtype=dtypes.int8) + 1000),
    ],
    ids=lambda value: getattr(value, "__name__", "program"),
)
def test_a_mistake_is_an_error_at_its_line(error, program):
    with pytest.raises(error):
        program()
