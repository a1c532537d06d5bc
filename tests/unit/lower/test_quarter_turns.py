"""The digits of 1 / (2 pi), checked against a computation of pi in whole numbers."""

from fractions import Fraction

import numpy as np
import pytest

from lazulite.ir.dtype import dtypes
from lazulite.lower.quarter_turns import FAR, INVERSE_TURN, PLACES, turn_pieces


def pi_times(scale):
    """pi * scale by Machin's formula: 16 arctan(1/5) - 4 arctan(1/239), rounded down by a few units at most."""

    def arctan_of_inverse(n):
        term, total, k = scale // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    return 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)


def test_every_digit_is_right():
    places = PLACES + 64
    inverse = (1 << (PLACES + places)) // (2 * pi_times(1 << places))

    assert INVERSE_TURN == inverse


def test_the_pieces_add_up_to_all_places_that_matter():
    error = Fraction(INVERSE_TURN, 1 << PLACES) - sum(Fraction(piece) for piece in turn_pieces(far=False))

    assert 0 <= error < Fraction(1, 1 << 142)


def test_the_far_pieces_lack_only_whole_turns():
    total = Fraction(INVERSE_TURN, 1 << PLACES) - sum(Fraction(piece) for piece in turn_pieces(far=True))

    assert 0 <= (total * Fraction(2.0**54)) % 1 < Fraction(1, 1 << (194 - 54))
    assert FAR * dtypes.float32.epsilon == 2.0**54


@pytest.mark.parametrize("piece", turn_pieces(far=False)[:-1] + turn_pieces(far=True)[:-1])
def test_products_of_a_piece_with_a_float32_are_exact(piece):
    largest = float(np.float32(16777215.0))

    assert Fraction(piece) * Fraction(largest) == Fraction(piece * largest)
