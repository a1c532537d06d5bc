import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import Tensor
from lazulite.formats.strides import strided

numpy = pytest.importorskip("numpy")
COUNT = 24


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), max_size=4), st.integers(0, 5))
def test_any_strides_give_what_numpy_gives(axes, offset):
    shape, strides = tuple(size for size, _ in axes), tuple(step for _, step in axes)
    elements = numpy.arange(COUNT, dtype=numpy.int32)
    if 0 not in shape and offset + sum((size - 1) * step for size, step in axes) >= COUNT:
        with pytest.raises(ValueError, match="is needed of a storage"):
            strided(Tensor(elements), offset, shape, strides)
        return
    expected = numpy.lib.stride_tricks.as_strided(elements[offset:], shape, [4 * step for step in strides])
    result = strided(Tensor(elements), offset, shape, strides)
    assert (expected.shape, expected.tolist()) == (result.shape, result.tolist())


def test_a_repeated_axis_needs_no_memory():
    assert [3, 3] == strided(Tensor([1, 2, 3]), 2, (1 << 40,), (0,))[:2].tolist()


@pytest.mark.parametrize(
    "offset, shape, strides",
    [
        (-1, (1,), (1,)),
        (0, (2,), (-1,)),
        (0, (-2,), (1,)),
        (0, (2,), ()),
        (0, (1,) * 65, (1,) * 65),
        (0, (True,), (1,)),
        (0, (2.0,), (1,)),
        (0, ("2",), (1,)),
        (1 << 80, (1,), (1,)),
        (0, (1 << 62, 1 << 62), (1 << 62, 1 << 62)),
    ],
)
def test_what_no_tensor_has_is_refused(offset, shape, strides):
    with pytest.raises(ValueError, match=r"no tensor has|is needed"):
        strided(Tensor([1, 2, 3]), offset, shape, strides)
