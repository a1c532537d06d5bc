"""Values of sizes that vary in their largest shapes."""

from __future__ import annotations

from lazulite import Tensor, Variable
from lazulite.ir.widest import cut, widest

N = Variable("n", 1, 4)


def test_what_a_size_leaves_out_is_filled_and_taken_away_again() -> None:
    x = Tensor([[1, 2, 3, 4], [5, 6, 7, 8]])[:, : N.bind(2)]
    for fill in (0, -1):
        wide = widest(x.uop, fill)
        assert [[1, 2, fill, fill], [5, 6, fill, fill]] == x._derived(wide).tolist()
        assert x.tolist() == x._derived(cut(wide, x.shape)).tolist()


def test_a_fixed_size_stays_as_it_is() -> None:
    node = Tensor([1, 2, 3]).uop
    assert widest(node, 7) is node
    assert cut(node, (3,)) is node
