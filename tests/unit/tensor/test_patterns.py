"""Products and rearrangements by names of axes."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import FormatError, ShapeError, Tensor, dtypes

Shapes = list[tuple[int, ...]]
FORMULAS: list[tuple[str, Shapes]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,jk", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (5, 1, 4, 6)]), ("ij->ji", [(3, 4)]), ("ij->", [(3, 4)]),
    ("i,j->ij", [(3,), (4,)]), ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]),
    ("ij,k->k", [(3, 4), (5,)]), ("i...->...", [(2, 3, 4)]), ("ab,b,a->", [(2, 3), (3,), (2,)]),
    (" b a -> a b ", [(2, 3)]), ("ba", [(2, 3)]), ("ij,ij->i", [(3, 4), (3, 1)]),
]  # fmt: skip


def numbers(shapes: Shapes) -> list[np.ndarray]:
    return [np.random.default_rng(n).integers(-4, 5, shape).astype(np.int64) for n, shape in enumerate(shapes)]


@pytest.mark.parametrize(("formula", "shapes"), FORMULAS, ids=str)
def test_a_formula_means_what_it_means_in_numpy(formula: str, shapes: Shapes) -> None:
    operands = numbers(shapes)
    expected = np.einsum(formula, *operands)
    found = Tensor.einsum(formula, *[Tensor(x) for x in operands])

    assert expected.shape == found.shape
    assert expected.tolist() == found.tolist()


def test_a_repeated_axis_that_is_not_last_is_a_diagonal() -> None:
    """B089"""
    assert [[0, 1], [6, 7]] == Tensor.einsum("iij->ij", Tensor.arange(8).reshape(2, 2, 2)).tolist()
    assert [3, 30] == Tensor.einsum("iij->i", Tensor.arange(12).reshape(2, 2, 3)).tolist()


def test_ellipses_of_different_ranks_broadcast() -> None:
    """B091"""
    x = Tensor.arange(6).reshape(2, 3)

    assert (x * 2).tolist() == Tensor.einsum("...,...->...", Tensor(2), x).tolist()


def test_operands_may_come_as_a_list_and_the_type_may_be_chosen() -> None:
    x = Tensor([[1, 2]], dtype="int8")

    assert dtypes.int32 is Tensor.einsum("ij->i", [x]).dtype
    assert dtypes.float16 is Tensor.einsum("ij->i", x, dtype="float16").dtype


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [("ij", [(2, 3), (3,)]), ("ijk", [(2, 3)]), ("ij->ik", [(2, 3)]), ("ij->ii", [(2, 3)]), ("i1", [(2, 3)])],
)
def test_a_formula_that_does_not_fit_raises(formula: str, shapes: Shapes) -> None:
    with pytest.raises(FormatError, match="einsum"):
        Tensor.einsum(formula, *[Tensor(x) for x in numbers(shapes)])


def test_axes_of_one_name_have_one_size() -> None:
    with pytest.raises(ShapeError, match="the axes 'j' of 'ij,jk' have the sizes 3 and 4"):
        Tensor.einsum("ij,jk", Tensor.ones(2, 3), Tensor.ones(4, 2))
    with pytest.raises(ShapeError, match="the axes 'i' of"):
        Tensor.einsum("ii", Tensor.ones(2, 3))


def test_axes_are_split_joined_and_moved() -> None:
    x = np.arange(48).reshape(2, 6, 4)
    tensor = Tensor(x)
    split = x.reshape(2, 2, 3, 4).transpose(0, 3, 1, 2)

    assert split.tolist() == tensor.rearrange("b (h w) c -> b c h w", h=2).tolist()
    assert x.tolist() == Tensor(split).rearrange("b c h w -> b (h w) c").tolist()
    assert x.transpose(2, 0, 1).tolist() == tensor.rearrange("... c -> c ...").tolist()
    assert x.reshape(12, 1, 4).tolist() == tensor.rearrange("b t c -> (b t) 1 c").tolist()
    assert x[:, 0].ravel().tolist() == tensor[:, :1].rearrange("b 1 c -> (b c)").tolist()


def test_a_rearrangement_that_does_not_fit_raises() -> None:
    x = Tensor.ones(2, 6)
    for formula in ("a b", "a -> a", "a b c -> a b c", "a b -> a", "a (b c -> a b c", "a b c) -> a b"):
        with pytest.raises(FormatError, match="rearrange"):
            x.rearrange(formula)
    for sizes in ({"b": 4}, {}):
        with pytest.raises(ShapeError, match="does not split"):
            x.rearrange("a (b c) -> a b c", **sizes)


def test_axes_may_be_numbers() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)

    product = Tensor.einsum(Tensor(x), [0, 1], Tensor(y), [1, 2], [0, 2])

    assert (x @ y).tolist() == product.tolist()
    assert (x @ y[:, 0]).tolist() == Tensor.einsum(Tensor(x), [..., 1], Tensor(y[:, 0]), [1]).tolist()
    assert x.T.tolist() == Tensor.einsum(Tensor(x), [1, 0]).tolist()
    with pytest.raises(FormatError, match="numbers from 0 to 51"):
        Tensor.einsum(Tensor(x), [0, 52])
