"""Conversions between all stored types: one rounding, saturation, NaN to 0 (A10, B067, B068)."""

import numpy as np
import pytest

from float_samples import array, assert_same, processor, samples
from lazulite.ir.dtype import STORED, dtypes
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf


def values_of(source):
    """Samples, and for the wide floats values at and beside the ties of the narrower types."""
    values = samples(source, 800)
    if source in (dtypes.float32, dtypes.float64):
        for target in (dtypes.float16, dtypes.bfloat16, dtypes.float32):
            tie = 2.0 ** -(target.mantissa_bits + 1)
            for value in samples(target, 200):
                values += [source.round(value * (1 + tie + more)) for more in (0, 2.0**-50, -(2.0**-50), 2.0**-22)]
    return values


@pytest.mark.parametrize("target", STORED, ids=repr)
@pytest.mark.parametrize("source", STORED, ids=repr)
def test_a_conversion_gives_what_the_type_converts_to(source, target):
    """A10 (uint64 to double is exact), B067, B068."""
    x, values = leaf(source), values_of(source)

    found = evaluate(decompose(x.cast(target), processor), {x: array(source, values)})

    assert_same(array(target, [target.convert(value) for value in values]), found, array(source, values))


@pytest.mark.parametrize("source", [dtypes.float16, dtypes.bfloat16], ids=repr)
def test_every_narrow_float_survives_the_way_to_float32_and_back(source):
    x = leaf(source)
    values = array(source, [source.from_bits(bits) for bits in range(1 << 16)])

    found = evaluate(decompose(x.cast(dtypes.float32).cast(source), processor), {x: values})

    assert_same(values, found)


def test_a_large_uint64_keeps_every_digit_a_double_has():
    x = leaf(dtypes.uint64)

    found = evaluate(decompose(x.cast(dtypes.float64), processor), {x: np.array([(1 << 32) + 1], np.uint64)})

    assert [4294967297.0] == list(found)
