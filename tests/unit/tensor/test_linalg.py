"""Factors and solutions against NumPy in double precision, corners, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazulite import ArgumentError, GradientError, ShapeError, Tensor, dtypes, linalg

KINDS = ["float32", "float64"]
random = np.random.default_rng(5)
MATRICES = {
    "of normal numbers": random.standard_normal((2, 7, 7)),
    "tall": random.standard_normal((9, 4)),
    "wide": random.standard_normal((4, 9)),
    "nearly singular": np.vander(np.linspace(0.1, 1, 9)),
    "of rank one": np.ones((5, 5)),
    "zero": np.zeros((3, 3)),
    "the unit": np.eye(4),
    "with eigenvalues of one size": np.diag([1.0, -1.0, 2.0, -2.0]),
    "graded": 10.0 ** -np.arange(6.0)[:, None] * random.standard_normal((6, 6)),
    "huge": random.standard_normal((4, 4)) * 1e30,
}


def close(x: np.ndarray, y: np.ndarray, kind: str, size: float = 1.0) -> bool:
    return bool(np.abs(x - y).max() <= 100 * np.finfo(kind).eps * size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MATRICES)
def test_orthogonal_factors_are_orthogonal_and_multiply_to_the_matrix(name: str, kind: str) -> None:
    """B086 among others: QR and SVD of degenerate matrices."""
    a = MATRICES[name].astype(kind)
    size, k = float(np.abs(a).max()) * max(a.shape), min(a.shape[-2:])
    q, r = [part.numpy() for part in Tensor(a).qr("complete")]
    u, s, vh = [part.numpy() for part in Tensor(a).svd()]

    assert close(q @ r, a, kind, size)
    assert np.tril(r, -1).max(initial=0) == 0
    assert close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, kind, size)
    assert close(s, np.linalg.svd(a.astype("float64"), compute_uv=False), kind, size)
    for each in (q, u, vh):
        assert close(each @ each.swapaxes(-1, -2), np.eye(each.shape[-1]), kind)


def test_degenerate_matrices_have_finite_factors() -> None:
    """B086."""
    q, r = Tensor([[0.0, 1.0], [0.0, 2.0]]).qr()

    assert [[0.0, 1.0], [0.0, 2.0]] == q.matmul(r).tolist()
    assert [1.0, 1.0] == Tensor.eye(2).svd()[1].tolist()
    assert [0.0, 0.0] == Tensor.zeros(2, 2).svd()[1].tolist()
    assert 2 == Tensor.eye(2).matrix_rank().item()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name, a in MATRICES.items() if a.shape[-1] == a.shape[-2]])
def test_eigenvectors_are_orthogonal_and_make_the_matrix_diagonal(name: str, kind: str) -> None:
    a = MATRICES[name].astype(kind)
    a = (a + a.swapaxes(-1, -2)) / 2
    size = float(np.abs(a).max()) * a.shape[-1]
    values, vectors = [part.numpy() for part in Tensor(a).eigh()]

    assert close(vectors * values[..., None, :] @ vectors.swapaxes(-1, -2), a, kind, size)
    assert close(vectors.swapaxes(-1, -2) @ vectors, np.eye(a.shape[-1]), kind)
    assert close(values, np.linalg.eigvalsh(a.astype("float64")), kind, size)


@pytest.mark.parametrize("kind", KINDS)
def test_solutions_and_factors_are_numpys(kind: str) -> None:
    a, b = random.standard_normal((2, 3, 6, 6)).astype(kind), random.standard_normal((3, 6, 2)).astype(kind)
    whole = a @ a.swapaxes(-1, -2) + np.eye(6, dtype=kind)
    p, lower, upper = [part.numpy() for part in Tensor(a).lu()]

    assert close(p @ lower @ upper, a, kind, 10)
    assert np.allclose(a @ Tensor(a).solve(Tensor(b)).numpy(), np.broadcast_to(b, (2, 3, 6, 2)), atol=1e-3)
    assert np.allclose(np.linalg.det(a), Tensor(a).det().numpy(), rtol=1e-4)
    assert close(np.linalg.cholesky(whole), Tensor(whole).cholesky().numpy(), kind, 10)
    assert Tensor(a).det().dtype.name == kind


def test_the_largest_element_of_a_column_is_the_pivot() -> None:
    packed, exchanges = Tensor([[1e-20, 1.0], [1.0, 1.0]]).lu_factor()

    assert [[1.0, 1.0], [pytest.approx(1e-20), 1.0]] == packed.tolist()
    assert [2, 2] == exchanges.tolist()


def test_what_is_singular_gives_what_division_by_zero_gives() -> None:
    singular = Tensor([[1.0, 2.0], [2.0, 4.0]])

    assert 0.0 == singular.det().item()
    assert [0.0, -math.inf] == [part.item() for part in singular.slogdet()]
    assert not np.isfinite(singular.inv().numpy()).any()
    assert math.isnan(Tensor([[-1.0]]).cholesky().item())
    assert math.isnan(Tensor([[-1.0]]).logdet().item())
    assert math.inf == singular.cond().item() or singular.cond().item() > 1e7


def test_empty_matrices_and_batches_stay_empty() -> None:
    assert 1.0 == Tensor.zeros(0, 0).det().item()
    assert (0, 3, 3) == Tensor.zeros(0, 3, 3).inv().shape
    assert (0, 3) == Tensor.zeros(0, 3, 3).eigh()[0].shape
    assert [(2, 0, 0), (2, 0), (2, 4, 4)] == [part.shape for part in Tensor.zeros(2, 0, 4).svd()]
    assert [(4, 4), (4, 0)] == [part.shape for part in Tensor.zeros(4, 0).qr("complete")]
    assert 0 == Tensor.zeros(0, 3).matrix_rank().item()


def test_half_precision_is_computed_in_float32() -> None:
    found = Tensor([[2.0, 0.0], [0.0, 4.0]], dtype=dtypes.float16).inv()

    assert dtypes.float16 is found.dtype
    assert [[0.5, 0.0], [0.0, 0.25]] == found.tolist()
    assert dtypes.float32 is Tensor([[2, 1], [1, 1]]).inv().dtype


@pytest.mark.parametrize("function", ["inv", "det", "logdet", "cholesky", "eigvalsh"])
def test_second_derivatives_follow_from_the_formulas(function: str) -> None:
    a, step = np.array([[2.0, 0.5], [0.5, 1.0]]), 1e-5

    def slope(m: np.ndarray) -> np.ndarray:
        x = Tensor(m)
        return getattr(x, function)().square().sum().gradient(x)[0].numpy()

    x = Tensor(a)
    (first,) = getattr(x, function)().square().sum().gradient(x)
    (second,) = (first * Tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtypes.float64)).sum().gradient(x)
    weight = np.array([[1.0, 2.0], [2.0, 4.0]])
    expected = np.zeros((2, 2))
    for i, j in [(0, 0), (0, 1), (1, 0), (1, 1)]:  # along symmetric directions, as some read one triangle
        e = np.zeros((2, 2))
        e[i, j] += 0.5
        e[j, i] += 0.5
        expected[i, j] = ((slope(a + step * e) - slope(a - step * e)) / (2 * step) * weight).sum()
    found = second.numpy()

    assert expected == pytest.approx((found + found.T) / 2, rel=1e-5, abs=1e-8)


def test_a_fourth_derivative_is_refused_and_not_wrong() -> None:
    x = Tensor([[2.0, 0.0], [0.0, 2.0]])
    weight = Tensor([[1.0, 2.0], [3.0, 5.0]])
    slope = (x.inv() * weight).sum()
    for _ in range(3):
        slope = (slope.gradient(x)[0] * weight).sum()

    with pytest.raises(GradientError, match="a kernel without a gradient"):
        slope.gradient(x)


def test_matrices_that_are_none_are_refused() -> None:
    with pytest.raises(ShapeError, match="square matrices are needed"):
        Tensor.zeros(2, 3).inv()
    with pytest.raises(ShapeError, match="a matrix has two axes"):
        Tensor.zeros(2).qr()
    with pytest.raises(ShapeError, match="do not fit right sides"):
        Tensor.eye(2).solve(Tensor.zeros(3, 1))
    with pytest.raises(ShapeError, match="do not broadcast"):
        Tensor.zeros(2, 3, 3).solve(Tensor.zeros(4, 3, 1))
    with pytest.raises(ArgumentError, match="'reduced', 'complete' or 'r'"):
        Tensor.eye(2).qr("full")
    with pytest.raises(ArgumentError, match="UPLO"):
        Tensor.eye(2).eigh("l")
    with pytest.raises(ShapeError, match="not a square"):
        Tensor.zeros(2, 3).tensorinv(1)


def test_a_chain_is_multiplied_in_the_cheapest_order() -> None:
    parts = [random.standard_normal(shape) for shape in ((3, 20), (20, 2), (2, 15), (15,))]

    assert np.linalg.multi_dot(parts) == pytest.approx(linalg.multi_dot([Tensor(p) for p in parts]).numpy())
    with pytest.raises(ShapeError, match="two tensors or more"):
        linalg.multi_dot([Tensor.eye(2)])


def test_torchs_options_are_understood() -> None:
    a = Tensor([[4.0, 1.0], [1.0, 3.0]])

    assert [[1.0, 0.0], [0.0, 1.0]] == linalg.solve(a, a, left=False).round().tolist()
    assert 1 == linalg.matrix_rank(Tensor([[5.0, 0.0], [0.0, 1.0]]), atol=2.0).item()
    with pytest.raises(ArgumentError, match="without exchanges"):
        linalg.lu(a, pivot=False)
