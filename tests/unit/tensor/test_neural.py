"""Attention, transposed convolution, resizing, unit vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazulite import ArgumentError, ShapeError, Tensor, dtypes


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    scores = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True) @ v


def test_attention_weighs_values_by_keys() -> None:
    q, k, v = normal(2, 3, 5, 8), normal(2, 3, 6, 8, seed=1), normal(2, 3, 6, 4, seed=2)
    mask = np.random.default_rng(3).random((5, 6)) > 0.4
    mask[:, 0] = True
    tensors = [Tensor(x) for x in (q, k, v)]
    causal = np.tril(np.ones((5, 6), bool))

    for allowed, facts in [
        (np.ones((5, 6), bool), {}), (mask, {"attn_mask": Tensor(mask)}), (causal, {"is_causal": True}),
        (mask, {"attn_mask": Tensor(np.where(mask, 0, -np.inf).astype(np.float32))}),
    ]:  # fmt: skip
        found = tensors[0].scaled_dot_product_attention(*tensors[1:], **facts)  # type: ignore[arg-type]
        assert attention(q, k, v, allowed) == pytest.approx(found.numpy(), rel=1e-5, abs=1e-5)


def test_a_masked_key_has_no_influence_and_a_query_without_keys_gives_zeros() -> None:
    """B082"""
    q = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    k = q.copy()
    k[0, 1] = np.nan
    rows = [q[0, 0].tolist()] * 2

    for dropped in (Tensor([[True, False]]), Tensor([[0.0, -math.inf]])):
        assert [rows] == Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(q), dropped).tolist()
        nothing = dropped.full_like(False if dropped.dtype is dtypes.bool else -math.inf)
        assert not Tensor(q).scaled_dot_product_attention(Tensor(q), Tensor(q), nothing).numpy().any()


def test_heads_may_share_keys_and_halves_stay_halves() -> None:
    q, k = normal(1, 4, 3, 8), normal(1, 2, 3, 8, seed=1)
    shared = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(k), enable_gqa=True)
    k = np.repeat(k, 2, 1)

    assert attention(q, k, k, np.ones((3, 3), bool)) == pytest.approx(shared.numpy(), rel=1e-5, abs=1e-5)
    half = Tensor(q).cast(dtypes.float16)
    assert dtypes.float16 is half.scaled_dot_product_attention(half, half).dtype


def test_a_transposed_convolution_is_the_adjoint_of_a_convolution() -> None:
    x, weight = normal(2, 4, 5, 6), normal(4, 3, 3, 2, seed=1)
    facts = {"stride": 2, "padding": 1, "dilation": 2}
    y = Tensor(x).conv_transpose2d(Tensor(weight), output_padding=1, **facts)  # type: ignore[arg-type]
    other = Tensor(normal(*y.shape, seed=2))
    there = other.conv2d(Tensor(weight), **facts)  # type: ignore[arg-type]

    assert (y * other).sum().item() == pytest.approx((Tensor(x) * there).sum().item(), rel=1e-4)


def test_resizing_keeps_corners_or_areas() -> None:
    x = Tensor([[[0.0, 1.0, 2.0, 3.0]]])

    assert [0.0, 1.5, 3.0] == x.interpolate(3, align_corners=True).flatten().tolist()
    assert [0.5, 2.5] == x.interpolate((2,)).flatten().tolist()
    assert [0.0, 1.0, 2.0] == x.interpolate(3, mode="nearest").flatten().tolist()
    assert [0.0, 2.0, 3.0] == x.interpolate(3, mode="nearest-exact").flatten().tolist()


def test_one_element_with_aligned_corners_is_the_first() -> None:
    """B092"""
    assert [0.0] == Tensor.arange(4).reshape(1, 1, 4).interpolate(1, align_corners=True).flatten().tolist()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_vectors_get_the_norm_one(p: float) -> None:
    x = normal(3, 4)
    expected = x / np.linalg.norm(x, p, axis=1, keepdims=True)

    assert expected == pytest.approx(Tensor(x).normalize(p).numpy(), rel=1e-5)
    assert [[0.0, 0.0]] == Tensor([[0.0, 0.0]]).normalize(p).tolist()


def test_what_does_not_fit_raises() -> None:
    x = Tensor.ones(1, 2, 3)
    with pytest.raises(ShapeError, match="does not fit the input"):
        x.conv_transpose2d(Tensor.ones(3, 1, 3))
    with pytest.raises(ArgumentError, match="none of the modes"):
        x.interpolate(3, mode="cubic")
    with pytest.raises(ArgumentError, match="none of the modes"):
        x.interpolate(3, mode="nearest", align_corners=True)
    with pytest.raises(ShapeError, match="cannot become"):
        x.interpolate((1, 2, 3, 4))
