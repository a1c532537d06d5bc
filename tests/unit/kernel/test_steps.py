"""Schedule steps are data: they print, parse, compare and hash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.base.errors import FormatError
from lazulite.kernel.steps import (
    Epilogue,
    Group,
    Keep,
    MatrixUnit,
    Parallel,
    Partition,
    Prefetch,
    Reorder,
    Split,
    Stage,
    Stream,
    Strip,
    Tile,
    Vectorize,
    parse,
    text,
)

names = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(tuple)
numbers = st.integers(1, 4096)
some = st.lists(names, min_size=1, max_size=4).map(tuple)
steps = st.one_of(
    st.builds(Split, names, numbers),
    st.builds(Partition, names, numbers),
    st.builds(Strip, names, numbers),
    st.builds(Reorder, some),
    st.builds(Keep, names, names),
    st.builds(Epilogue, names, st.lists(names, max_size=2).map(tuple)),
    st.builds(Prefetch, st.integers(0, 31), names, names),
    st.builds(Stream, st.integers(0, 31)),
    st.builds(Stage, st.integers(0, 31), some),
    st.builds(MatrixUnit, some, some, some, st.sampled_from([(), ("uint8", "int8")])),
    *[st.builds(kind, names) for kind in (Parallel, Vectorize, Tile, Group)],
)


@given(st.lists(steps, max_size=8).map(tuple))
def test_what_is_printed_parses_back(some_steps):
    assert some_steps == parse(text(some_steps))


def test_a_step_is_one_line():
    assert "split 0.1 16\nstage 2 1 0.1" == text((Split((0, 1), 16), Stage(2, ((1,), (0, 1)))))


WRONG = [
    "split 0", "cut 0 1", "tile x", "partition 0 y", "stage 1", "parallel 0 1", "stream 0 1", "prefetch 1",
    "matrixunit 0 by 1 over", "matrixunit 0 by 1",
]  # fmt: skip


@pytest.mark.parametrize("line", WRONG)
def test_a_line_that_is_no_step_is_named_in_the_error(line):
    with pytest.raises(FormatError, match=line):
        parse(line)
