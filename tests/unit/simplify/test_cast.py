"""Casts that lose nothing, and integer arithmetic on positions."""

from __future__ import annotations

import itertools

import pytest

from lazulite.ir.dtype import STORED, dtypes
from lazulite.simplify.cast import fits, holds
from lazulite.simplify.normal import normalise
from support.brute_force import CAST_TYPES, counterexample, scalar
from support.index_grid import loop

SMALL = (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.float16)
ROW, COLUMN = loop(10, 0), loop(20, 1)


@pytest.mark.parametrize(("first", "between", "last"), [
    chain for chain in itertools.product(SMALL, CAST_TYPES, CAST_TYPES) if dtypes.index not in chain
])  # fmt: skip
def test_chains_of_casts_keep_their_values(first, between, last):
    chain = scalar(0, first).cast(between).cast(last)

    assert counterexample(chain, normalise(chain)[0]) is None


@pytest.mark.parametrize("wide", STORED)
def test_a_type_holds_another_only_if_its_ends_survive(wide):
    for narrow in STORED:
        ends = [narrow.min, narrow.max] if not narrow.is_float else [narrow.largest, -narrow.largest, narrow.epsilon]
        back = [narrow.convert(wide.convert(value)) for value in ends]

        assert not holds(wide, narrow) or back == ends


def test_masks_of_positions_become_comparisons_of_positions():
    row, column = ROW.cast(dtypes.int32), COLUMN.cast(dtypes.int32)
    (gate,) = normalise((column - row) < 3)

    assert gate is (COLUMN < ROW + 3)


def test_positions_stay_in_their_type_where_it_could_wrap():
    far = loop(300, 0)
    node = far.cast(dtypes.int8) + 3

    assert not fits(far, dtypes.int8)
    assert normalise(node) == [node]


def test_a_gather_by_positions_is_a_plain_index():
    assert normalise((COLUMN.cast(dtypes.int32) * 2 + 1).cast(dtypes.index)) == [COLUMN * 2 + 1]


def test_narrowing_casts_are_never_dropped():
    node = scalar(0, dtypes.float32).cast(dtypes.float16).cast(dtypes.float32)

    assert normalise(node) == [node]
