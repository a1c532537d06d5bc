"""Movement: other shapes for the same elements."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import ArgumentError, AxisError, ShapeError, Tensor, dtypes

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def counted(*shape: int) -> tuple[Tensor, np.ndarray]:
    array = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    return Tensor(array), array


@settings(max_examples=25)
@given(shapes, st.data())
def test_chains_of_movements_are_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    x, array = counted(*shape)
    for name in data.draw(st.lists(st.sampled_from(["permute", "flip", "shrink", "pad", "flatten"]), max_size=4)):
        ends = [st.tuples(st.integers(0, 2), st.integers(0, 2)) for _ in array.shape]
        pairs = data.draw(st.tuples(*ends))
        axes = data.draw(st.permutations(range(array.ndim)))
        if name == "permute":
            x, array = x.permute(axes), array.transpose(axes)
        elif name == "flip":
            x, array = x.flip(axes[0]), np.flip(array, axes[0])
        elif name == "shrink":
            box = [(min(a, n), max(min(a, n), n - b)) for (a, b), n in zip(pairs, array.shape, strict=True)]
            x, array = x.shrink(box), array[tuple(slice(*pair) for pair in box)]
        elif name == "pad":
            x, array = x.pad(pairs, value=7), np.pad(array, pairs, constant_values=7)
        else:
            x, array = x.flatten(), array.reshape(-1)

    assert array.shape == x.shape
    assert array.tolist() == x.tolist()


def test_reshape_infers_one_size_and_keeps_some() -> None:
    x, _ = counted(2, 3, 4)

    assert (6, 4) == x.reshape(-1, 4).shape == x.view((6, -1)).shape
    assert (2, 12) == x.reshape(None, -1).shape
    assert (2, 3, 2, 2) == x.unflatten(-1, (2, -1)).shape
    assert (0,) == Tensor.zeros(0, 3).reshape(0).shape


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (-2, -3), (7, -1), (-1, 0)])
def test_a_shape_that_does_not_hold_the_elements_raises(shape: tuple[int, ...]) -> None:
    """O16"""
    with pytest.raises(ShapeError, match="reshape: 6 elements of"):
        Tensor.zeros(2, 3).reshape(shape)


def test_reshaping_nothing_with_an_open_size_raises() -> None:
    """O16"""
    with pytest.raises(ShapeError, match="0 elements"):
        Tensor.zeros(0, 3).reshape(-1, 0)


def test_expand_repeats_axes_of_size_one() -> None:
    x = Tensor([[1], [2]])

    assert [[1, 1], [2, 2]] == x.expand(2, 2).tolist() == x.expand(-1, 2).tolist()
    assert (3, 2, 1) == x.expand(3, None, None).shape
    assert x is x.expand(2, 1)
    for wrong in ((2,), (3, 1), (2, -2)):
        with pytest.raises(ShapeError, match="expand"):
            x.expand(wrong)


def test_axes_are_named_once_and_exist() -> None:
    x, _ = counted(2, 3)
    with pytest.raises(AxisError, match="does not name each of 2 axes once"):
        x.permute(0, 0)
    with pytest.raises(AxisError, match="flip: axis 2"):
        x.flip(2)
    with pytest.raises(AxisError, match="before axis"):
        x.flatten(1, 0)


def test_boxes_lie_inside() -> None:
    x, array = counted(2, 3)

    assert array[:, 1:2].tolist() == x.shrink((None, (1, 2))).tolist()
    assert array[:1, :].tolist() == x.shrink_to(1, None).tolist()
    with pytest.raises(ShapeError, match="no box inside"):
        x.shrink(((0, 3), None))
    with pytest.raises(ShapeError, match="1 entries for the 2 axes"):
        x.shrink(((0, 1),))


def test_padding_takes_pairs_or_torchs_flat_form_and_may_cut() -> None:
    x = Tensor([[1, 2], [3, 4]])

    assert [[0, 1, 2], [0, 3, 4]] == x.pad((None, (1, 0))).tolist() == x.pad((1, 0)).tolist()
    assert [[2], [4]] == x.pad((-1, 0, 0, 0)).tolist()
    assert dtypes.float32 is x.pad((1, 0), value=0.5).dtype
    assert dtypes.bool is Tensor([True]).pad((1, 1)).dtype
    with pytest.raises(ArgumentError, match="mode"):
        x.pad((1, 1), mode="mirror")
    with pytest.raises(ShapeError, match="consists of pairs"):
        x.pad((1, 1, 1))
    with pytest.raises(OverflowError):
        Tensor([1], dtype="int8").pad((1, 1), value=1000)


def test_padding_up_to_a_size_keeps_what_is_none() -> None:
    """A10"""
    assert [[1, 9, 9]] == Tensor([[1]]).pad_to(None, 3, value=9).tolist()
    with pytest.raises(ShapeError, match="is larger than"):
        Tensor([1, 2]).pad_to(1)


def test_a_padded_infinity_does_not_reach_its_neighbours() -> None:
    assert [5.0, math.inf] == Tensor([math.inf]).pad(((1, 0),), value=5.0).tolist()


def test_sizes_are_told() -> None:
    x = Tensor.zeros(2, 3, dtype="int16")

    assert (2, 6, 2, 12) == (x.ndim, x.numel(), x.element_size(), x.nbytes())
    assert ((2, 3), 3) == (x.size(), x.size(-1))


def test_short_names_for_usual_movements() -> None:
    x, array = counted(1, 2, 3)

    assert array.swapaxes(0, 2).tolist() == x.transpose(0, 2).tolist()
    assert array[0].T.tolist() == x.squeeze().T.tolist()
    assert (2, 3) == x.squeeze(0).shape and (1, 2, 3) == x.squeeze(1).shape
    assert [1, 2] == Tensor([1, 2]).T.tolist()
    assert (1,) == Tensor(3).flatten().shape == Tensor(3).unsqueeze(0).shape
