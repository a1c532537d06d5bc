"""Movement chains as index expressions, against NumPy on arrays of element numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analysis.index_map import Maps, flat, origin, through
from lazulite.analysis.regions import Region, apply_region, invert
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.simplify.normal import SIMPLIFY
from support.index_grid import divisions, grid, loops, values

MOST_VISITS = 60


def tensor(*shape: int) -> UOp:
    return UOp(ops.PARAM, dtypes.float32, (), (0, shape, "CPU"))


def moved(array: np.ndarray, chain: Region) -> np.ndarray:
    """The chain as NumPy does it."""
    for name, arg in chain:
        if name == "reshape":
            array = array.reshape(arg)
        elif name == "permute":
            array = array.transpose(arg)
        elif name == "expand":
            array = np.broadcast_to(array, arg)
        elif name == "pad":
            array = np.pad(array, arg) if arg else array
        elif name == "shrink":
            array = array[tuple(slice(begin, end) for begin, end in arg)]
        else:
            array = np.flip(array, arg)
    return array


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """Element numbers from 1; 0 stands for a padded zero."""
    return np.arange(1, math.prod(shape) + 1).reshape(shape)


def elements(chain: Region, shape: tuple[int, ...]) -> np.ndarray:
    """What `origin` says the elements of the moved array are."""
    view = apply_region(tensor(*shape), chain)
    ranges = loops(view.shape)
    _, position, gate = origin(view, ranges)
    known = grid(ranges)
    place = np.broadcast_to(values(flat(shape, position), known), view.shape)
    if gate is None:
        return place + 1
    inside = np.broadcast_to(values(gate, known), view.shape)
    assert 0 <= place[inside].min(initial=0)
    assert place[inside].max(initial=0) < math.prod(shape)
    return np.where(inside, place + 1, 0)


def indices(chain: Region, *shape: int) -> tuple[tuple[UOp, ...], UOp | None, tuple[UOp, ...]]:
    view = apply_region(tensor(*shape), chain)
    ranges = loops(view.shape)
    _, position, gate = origin(view, ranges)
    return position, gate, ranges


# --- random chains -----------------------------------------------------------------------------


@st.composite
def factorised(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """A shape of `count` elements."""
    shape: list[int] = []
    while count > 1 and len(shape) < 4:
        factor = draw(st.sampled_from([f for f in range(1, count + 1) if count % f == 0]))
        shape.append(factor)
        count //= factor
    return (*shape, count) if count > 1 or draw(st.booleans()) else tuple(shape)


@st.composite
def chains(draw: st.DrawFn, repeats: bool = True) -> tuple[tuple[int, ...], Region]:
    """A source shape and up to six movements."""
    shape = source = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3)))
    chain: list[tuple[str, object]] = []
    for _ in range(draw(st.integers(1, 6))):
        size = math.prod(shape)
        name = draw(st.sampled_from(["reshape", "reshape", "permute", "pad", "shrink", "flip", "expand"]))
        arg: tuple = ()
        if name == "reshape":
            arg = draw(factorised(size))
        elif name == "permute":
            arg = tuple(draw(st.permutations(range(len(shape)))))
        elif name == "pad" and size < 100:
            arg = tuple([(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape])
        elif name == "shrink" and size > 1:
            begins = [draw(st.integers(0, n - 1)) for n in shape]
            arg = tuple([(begin, draw(st.integers(begin + 1, n))) for begin, n in zip(begins, shape, strict=True)])
        elif name == "flip":
            arg = tuple(axis for axis in range(len(shape)) if draw(st.booleans()))
        elif name == "expand" and size < 50 and repeats:
            arg = (2,) * draw(st.integers(0, 1)) + tuple([draw(st.integers(1, 3)) if n == 1 else n for n in shape])
        else:
            continue
        chain.append((name, arg))
        shape = apply_region(tensor(*source), tuple(chain)).shape
    return source, tuple(chain)


@given(chains())
def test_random_chains_lead_to_the_elements_that_numpy_finds(drawn):
    source, chain = drawn

    assert np.array_equal(moved(numbered(source), chain), elements(chain, source))


@given(chains(repeats=False))
def test_inverse_chain_puts_every_element_back_in_its_place(drawn):
    source, chain = drawn
    view = moved(numbered(source), chain)
    back = moved(view, invert(chain, source))

    assert back.shape == source
    assert set(back.ravel().tolist()) - {0} == set(view.ravel().tolist()) - {0}
    assert all(number in (0, own) for number, own in zip(back.ravel(), numbered(source).ravel(), strict=True))


@given(chains())
def test_a_movement_needs_few_rewrite_visits(drawn):
    source, chain = drawn
    before = SIMPLIFY.visits
    indices(chain, *source)

    assert SIMPLIFY.visits - before <= MOST_VISITS * max(len(chain), 1)


# --- what must come out without division ---------------------------------------------------------

PLAIN = {
    "merge then split": [("reshape", (24,)), ("reshape", (4, 6))],
    "split then merge": [("reshape", (2, 2, 3, 2)), ("reshape", (4, 6))],
    "merge two axes, split them again": [("reshape", (2, 2, 6)), ("reshape", (4, 6)), ("reshape", (2, 2, 2, 3))],
    "transpose inside a split": [("reshape", (2, 2, 6)), ("permute", (1, 0, 2)), ("reshape", (2, 2, 2, 3))],
    "unit axes": [("reshape", (1, 4, 1, 6, 1)), ("permute", (4, 3, 2, 1, 0)), ("reshape", (6, 4))],
    "split of a shrunk axis": [("shrink", ((0, 4), (1, 5))), ("reshape", (4, 2, 2)), ("flip", (2,))],
    "split of a padded and shrunk axis": [
        ("pad", ((0, 0), (1, 1))),
        ("shrink", ((0, 4), (1, 7))),
        ("reshape", (2, 2, 6)),
    ],
    "batch axis through a flat form": [("reshape", (24,)), ("flip", (0,)), ("reshape", (4, 6))],
}


@pytest.mark.parametrize("chain", PLAIN.values(), ids=PLAIN.keys())
def test_chains_with_a_strided_form_come_out_without_division(chain):
    position, gate, _ = indices(tuple(chain), 4, 6)

    assert divisions(*position, gate) == []
    assert np.array_equal(moved(numbered((4, 6)), tuple(chain)), elements(tuple(chain), (4, 6)))


def test_a_gate_removes_a_division_that_the_bounds_alone_cannot():
    chain = (("reshape", (2, 3)), ("pad", ((0, 0), (1, 1))))
    view = apply_region(tensor(2, 3, 1), chain)
    row, column = ranges = loops(view.shape)
    _, position, gate = origin(view, ranges)

    assert divisions(*position, gate) == []
    assert position == (row, column + -1, index(0))


# --- the window chain of a convolution -----------------------------------------------------------


def windows(length: int, size: int, stride: int, dilation: int, extra: int = 0) -> Region:
    """Movements from (1, length) to (size, outputs), the windows of a convolution along one axis."""
    outputs = (length - (size - 1) * dilation - 1) // stride + 1
    before = (size - 1) * dilation
    row = before + length + extra
    reach = (outputs - 1) * stride + 1
    chain: list[tuple[str, object]] = [
        ("expand", (size, length)),
        ("pad", ((0, 0), (before, extra))),
        ("reshape", (size * row,)),
        ("pad", ((0, size * dilation),)),
        ("reshape", (size, row + dilation)),
        ("shrink", ((0, size), (before, before + reach))),
    ]
    if stride > 1:
        chain += [
            ("pad", ((0, 0), (0, stride - 1))),
            ("reshape", (size, outputs, stride)),
            ("shrink", ((0, size), (0, outputs), (0, 1))),
            ("reshape", (size, outputs)),
        ]
    return tuple(chain)


WINDOWS = [(10, 3, 1, 1, 0), (10, 3, 1, 2, 0), (12, 5, 1, 2, 3), (9, 1, 1, 1, 0), (10, 3, 2, 1, 0), (17, 3, 3, 2, 1)]


@pytest.mark.parametrize(("length", "size", "stride", "dilation", "extra"), WINDOWS)
def test_windows_are_plain_strides(length, size, stride, dilation, extra):
    chain = windows(length, size, stride, dilation, extra)
    position, gate, (k, o) = indices(chain, 1, length)
    expected = [[i + 1 for i in range(length)][kk * dilation :: stride] for kk in range(size)]
    found = elements(chain, (1, length))

    assert gate is None
    assert divisions(*position) == []
    assert {k, o} - {k if size == 1 else o} <= position[1].ranges
    assert [row[: found.shape[1]] for row in expected] == found.tolist()


@pytest.mark.parametrize(("length", "size", "stride", "dilation", "extra"), [w for w in WINDOWS if w[2] == 1])
def test_adjoint_of_windows_is_plain_strides_and_gates(length, size, stride, dilation, extra):
    expand, *rest = windows(length, size, stride, dilation, extra)
    adjoint = invert(tuple(rest), (size, length))
    outputs = length - (size - 1) * dilation
    position, gate, _ = indices(adjoint, size, outputs)
    found = elements(adjoint, (size, outputs))
    number = numbered((size, outputs))

    assert expand[0] == "expand"
    assert divisions(*position, gate) == []
    for k in range(size):
        for i in range(length):
            o = i - k * dilation
            assert found[k, i] == (number[k, o] if 0 <= o < outputs else 0)


def windows_2d(height: int, width: int, size: int, stride: int) -> Region:
    """Windows along both axes of (height, width), as (size, rows, size, columns)."""
    rows, columns = (height - size) // stride + 1, (width - size) // stride + 1
    along_rows = windows(height, size, stride, 1)
    along_columns = windows(width, size, stride, 1)
    lifted = [_beside(step, width, False) for step in along_rows]
    lifted += [("reshape", (size * rows, 1, width))]
    lifted += [_beside(step, size * rows, True) for step in along_columns]
    return (("reshape", (1, height, width)), *lifted, ("reshape", (size, rows, size, columns)))


def _beside(step: tuple[str, object], other: int, leading: bool) -> tuple[str, object]:
    """The movement applied beside one further axis of `other` elements, before or after its own."""
    name, arg = step
    own = {"pad": (0, 0), "shrink": (0, other)}.get(name, other)
    return name, ((own, *arg) if leading else (*arg, own))


@pytest.mark.parametrize("stride", [1, 2])
def test_windows_along_two_axes_are_plain_strides(stride):
    chain = windows_2d(8, 9, 3, stride)
    position, gate, _ = indices(chain, 8, 9)
    before = SIMPLIFY.visits
    indices(chain, 8, 9)

    assert gate is None
    assert divisions(*position) == []
    assert np.array_equal(moved(numbered((8, 9)), chain), elements(chain, (8, 9)))
    assert SIMPLIFY.visits - before <= MOST_VISITS * len(chain)


# --- single movements ----------------------------------------------------------------------------


def test_through_a_pad_gives_both_ends_of_the_gate():
    node = apply_region(tensor(4), (("pad", ((1, 2),)),))
    (i,) = loops(node.shape)
    (position,), gate = through(node, (i,))

    assert position is i + -1
    assert gate is not None
    assert values(gate, grid((i,))).tolist() == [False, True, True, True, True, False, False]


def test_through_refuses_a_node_that_is_no_movement():
    with pytest.raises(TypeError, match="no movement"):
        through(tensor(2) + tensor(2), loops((2,)))


def test_kept_answers_are_those_of_the_functions():
    maps, chain = Maps(), (("reshape", (6, 4)), ("pad", ((1, 0), (0, 2))))
    node = apply_region(tensor(4, 6), chain)
    position, gate = loops(node.shape), UOp.const(dtypes.bool, True)

    for _ in range(2):
        assert maps.through(node, position) == through(node, position)
        assert maps.through(node, position, gate) == through(node, position, gate)
        assert maps.through(node.src[0], position) == through(node.src[0], position)
        assert maps.flat((7, 6), position) is flat((7, 6), position)
        assert maps.flat((7, 9), position) is flat((7, 9), position)


def test_empty_shapes_have_indices_too():
    node = apply_region(tensor(0, 3), (("reshape", (3, 0)),))

    assert len(through(node, loops((3, 0)))[0]) == 2


def test_a_region_that_repeats_elements_cannot_be_inverted():
    with pytest.raises(ValueError, match="repeats elements"):
        invert((("expand", (2, 3)),), (1, 3))
