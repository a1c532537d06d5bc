"""Element types of a byte and less, against ml_dtypes: every code, and values between them."""

import ml_dtypes
import numpy
import pytest

from lazulite import Tensor
from lazulite.formats.onnx.codes import decoded, encoded, is_integer, value_table
from lazulite.formats.onnx.values import CODED, Coded

FLOATS = [kind for kind in CODED if not is_integer(kind) and kind != "float8_e8m0fnu"]
KINDS = sorted(CODED)


def known(kind):
    return numpy.dtype(getattr(ml_dtypes, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_code_means_what_ml_dtypes_says(kind):
    codes = numpy.arange(1 << CODED[kind], dtype="uint8")
    expected = codes.view(known(kind)).astype("float32")

    numpy.testing.assert_array_equal(expected, value_table(kind).astype("float32"))
    numpy.testing.assert_array_equal(expected, decoded(Coded(Tensor(codes), kind)).numpy().astype("float32"))


@pytest.mark.parametrize("kind", FLOATS)
def test_values_become_the_nearest_code_and_ties_the_even_one(kind):
    grid = numpy.unique(numpy.abs(value_table(kind)[numpy.isfinite(value_table(kind))]))
    middles = (grid[1:] + grid[:-1]) / 2
    beside = [numpy.nextafter(middles, numpy.float32(side)) for side in (0, 1e9)]
    x = numpy.concatenate([grid, middles, *beside]).astype("float32")
    x = numpy.concatenate([x, -x])

    numpy.testing.assert_array_equal(x.astype(known(kind)), encoded(Tensor(x), kind).numpy())


@pytest.mark.parametrize("kind", [kind for kind in FLOATS if kind.startswith("float8")])
def test_values_too_large_saturate_or_leave_the_numbers(kind):
    x = numpy.array([1e6, -1e6, numpy.inf, -numpy.inf, numpy.nan], "float32")
    largest = value_table(kind)[numpy.isfinite(value_table(kind))].max()

    kept = decoded(encoded(Tensor(x), kind)).numpy()
    assert [largest, -largest, largest, -largest] == kept[:4].tolist() and numpy.isnan(kept[4])
    with numpy.errstate(over="ignore"):
        expected = x.astype(known(kind)).astype("float32")
    numpy.testing.assert_array_equal(expected, decoded(encoded(Tensor(x), kind, saturate=False)).numpy())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if is_integer(kind)])
def test_integers_keep_their_low_bits(kind):
    x = numpy.arange(-20, 20)
    assert (x & (1 << CODED[kind]) - 1).tolist() == encoded(Tensor(x), kind).codes.tolist()


@pytest.mark.parametrize("mode, expected", [("up", [1, 2, 2, 4]), ("down", [1, 1, 1, 2]), ("nearest", [1, 1, 2, 4])])
def test_powers_of_two_round_as_asked(mode, expected):
    x = Tensor([1.0, 1.4, 1.6, 3.5])
    assert expected == decoded(encoded(x, "float8_e8m0fnu", round_mode=mode)).tolist()
