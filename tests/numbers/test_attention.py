"""Attention in one kernel against float64, over shapes, masks, shared heads and types."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import Context, Tensor, Variable, dtypes

TYPES = {"float32": (np.float32, 2e-5), "float16": (np.float16, 4e-3)}


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = powers.sum(-1, keepdims=True)
    return powers @ v / np.where(total == 0, 1, total)


@given(
    heads=st.sampled_from([1, 2, 4]), shared=st.sampled_from([1, 2]), rows=st.sampled_from([1, 16, 64, 100, 131]),
    keys=st.sampled_from([1, 17, 64, 150]), size=st.sampled_from([1, 8, 64, 80]), mask=st.sampled_from("-bac"),
    dtype=st.sampled_from(list(TYPES)), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=12, deadline=None)
def test_attention_of_any_shape(heads, shared, rows, keys, size, mask, dtype, seed):
    """B082: a mask of bools, of numbers, or of the causal kind; some rows may have no key at all."""
    kind, tolerance = TYPES[dtype]
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((2, heads * shared, rows, size)).astype(kind)
    k, v = (rng.standard_normal((2, heads, keys, size)).astype(kind) for _ in range(2))
    allowed = np.tril(np.ones((rows, keys), bool)) if mask == "c" else rng.random((rows, keys)) > 0.4
    if mask == "-":
        allowed[:] = True
    added = np.where(allowed, 0, -np.inf).astype(np.float32)
    options = {
        "-": {},
        "b": {"attn_mask": Tensor(allowed)},
        "a": {"attn_mask": Tensor(added)},
        "c": {"is_causal": True},
    }
    found = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), enable_gqa=shared > 1, **options[mask])

    wide_k, wide_v = (np.repeat(x, shared, 1) for x in (k, v))
    np.testing.assert_allclose(found.numpy(), expected(q, wide_k, wide_v, allowed), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
def test_fused_and_unfused_agree(causal):
    rng = np.random.default_rng(0)
    q, k, v = (Tensor(rng.standard_normal((4, 128, 32)).astype(np.float32)) for _ in range(3))
    fused = q.scaled_dot_product_attention(k, v, is_causal=causal).numpy()
    with Context(FUSE=0):
        apart = q.scaled_dot_product_attention(k, v, is_causal=causal).numpy()

    np.testing.assert_allclose(fused, apart, rtol=2e-5, atol=2e-6)


def test_the_plain_expression_is_one_kernel_too():
    rng = np.random.default_rng(1)
    q, k, v = (Tensor(rng.standard_normal((4, 256, 32)).astype(np.float32)).realize() for _ in range(3))
    plain = (q @ k.transpose(-1, -2) * 0.25).softmax() @ v

    assert 1 == len(plain.explain().kernels)
    np.testing.assert_allclose(
        plain.numpy(), expected(q.numpy() * (0.25 * 32**0.5), k.numpy(), v.numpy(), np.ones((256, 256), bool)),
        rtol=2e-5, atol=2e-6,
    )  # fmt: skip


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(2)
    q, k, v = (Tensor(rng.standard_normal((4, 256, 32)).astype(np.float32)).realize() for _ in range(3))
    results = []
    for threads in (1, 2):
        with Context(THREADS=threads):
            results.append(q.scaled_dot_product_attention(k, v, is_causal=True).numpy())

    np.testing.assert_array_equal(*results)


def test_half_attention_accumulates_in_float32():
    ones = Tensor(np.ones((16, 64, 8), np.float16))
    weights = Tensor(np.full((16, 64, 8), 2.0**-11, np.float16))

    found = ones.scaled_dot_product_attention(ones, weights)
    assert dtypes.float16 is found.dtype
    assert (found.numpy() == np.float16(2.0**-11)).all()


@pytest.mark.parametrize("size", [128, 192, 256])
def test_wide_heads_are_one_kernel(size):
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((2, rows, size)).astype(np.float32) for rows in (512, 1536, 1536))
    tensors = [Tensor(x).realize() for x in (q, k, v)]
    found = tensors[0].scaled_dot_product_attention(*tensors[1:])

    assert 1 == len(found.explain().kernels)
    np.testing.assert_allclose(found.numpy(), expected(q, k, v, np.ones((512, 1536), bool)), rtol=2e-5, atol=2e-6)


LONG = 8192


@pytest.mark.parametrize("mask", "-ba")
@pytest.mark.parametrize("kind", TYPES)
def test_long_rows_run_over_strips_with_a_running_maximum(mask, kind):
    """B082: rows whose first strips are masked out as a whole, and rows without any key."""
    rng = np.random.default_rng(3)
    numpy_type, tolerance = TYPES[kind]
    q = (3 * rng.standard_normal((2, 256, 8))).astype(numpy_type)
    k, v = (rng.standard_normal((1, LONG, 8)).astype(numpy_type) for _ in range(2))
    allowed = rng.random((256, LONG)) > (0.4 if mask != "-" else 0)
    if mask != "-":
        allowed[5:40, : LONG // 2] = False
        allowed[50] = False
    added = np.where(allowed, 0, -np.inf).astype(np.float32)
    options = {"-": {}, "b": {"attn_mask": Tensor(allowed)}, "a": {"attn_mask": Tensor(added)}}
    tensors = [Tensor(x).realize() for x in (q, k, v)]
    found = tensors[0].scaled_dot_product_attention(*tensors[1:], enable_gqa=True, **options[mask])

    assert "strip" in str(found.explain())
    np.testing.assert_allclose(found.numpy(), expected(q, k, v, allowed), rtol=tolerance, atol=tolerance)


def test_long_causal_rows_run_over_the_strips_that_the_mask_leaves():
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((LONG, 8)).astype(np.float32) for _ in range(3))
    tensors = [Tensor(x).realize() for x in (q, k, v)]
    found = tensors[0].scaled_dot_product_attention(*tensors[1:], is_causal=True)
    some = np.arange(0, LONG, 61)

    assert "strip" in str(found.explain())
    allowed = np.arange(LONG) <= some[:, None]
    np.testing.assert_allclose(found.numpy()[some], expected(q[some], k, v, allowed), rtol=2e-5, atol=2e-6)


def test_a_long_softmax_expression_runs_over_strips_too():
    """A row of nothing but -inf stays NaN, as in the plain expression."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((rows, 8)).astype(np.float32) for rows in (512, LONG, LONG))
    added = np.where(rng.random((512, LONG)) > 0.4, 0, -np.inf).astype(np.float32)
    added[7] = -np.inf
    added[9, : LONG // 2] = -np.inf
    tensors = [Tensor(x).realize() for x in (q, k, v, added)]
    found = (tensors[0] @ tensors[1].transpose(0, 1) + tensors[3]).softmax() @ tensors[2]

    assert "strip" in str(found.explain())
    wide = expected(q * 8**0.5, k, v, added == 0)
    wide[7] = np.nan
    np.testing.assert_allclose(found.numpy(), wide, rtol=2e-5, atol=2e-6)


# --- as people write it --------------------------------------------------------------------------


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5


def repeated(q: Tensor, x: Tensor) -> Tensor:
    """Heads of keys or values by hand, one for each head of queries."""
    groups, size = x.shape[-3], x.shape[-2:]
    return x.reshape(1, groups, 1, *size).expand(1, groups, q.shape[-3] // groups, *size).reshape(1, -1, *size)


def positions(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    rows, keys = q.shape[-2], k.shape[-2]
    return Tensor.arange(rows).reshape(rows, 1), Tensor.arange(keys).reshape(1, keys)


def added(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = positions(q, k)
    return (scores(q, k) + (i < j).where(Tensor(-math.inf), 0.0)).softmax() @ v


def filled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = positions(q, k)
    return scores(q, k).masked_fill(i < j, -math.inf).softmax() @ v


def windowed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = positions(q, k)
    return q.scaled_dot_product_attention(k, v, attn_mask=(j <= i) & (i - j < 40))


def around(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = positions(q, k)
    return ((i - j).abs() < 24).where(scores(q, k), -math.inf).softmax() @ v


def capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = positions(q, k)
    return (j <= i).where((scores(q, k) / 4).tanh() * 4, -math.inf).softmax() @ v


EXPRESSIONS = {
    "repeated heads": lambda q, k, v: scores(q, repeated(q, k)).softmax() @ repeated(q, v),
    "repeat_interleave": lambda q, k, v: scores(q, k.repeat_interleave(q.shape[1] // k.shape[1], 1)).softmax()
    @ v.repeat_interleave(q.shape[1] // v.shape[1], 1),
    "added": lambda q, k, v: added(q, repeated(q, k), repeated(q, v)),
    "filled": lambda q, k, v: filled(q, repeated(q, k), repeated(q, v)),
    "a window": lambda q, k, v: windowed(q, repeated(q, k), repeated(q, v)),
    "around": lambda q, k, v: around(q, repeated(q, k), repeated(q, v)),
    "a soft cap": lambda q, k, v: capped(q, repeated(q, k), repeated(q, v)),
}  # fmt: skip


def what_is_allowed(kind: str, rows: int, keys: int) -> np.ndarray:
    i, j = np.arange(rows)[:, None], np.arange(keys)
    masks = {"a window": (j <= i) & (i - j < 40), "around": abs(i - j) < 24}
    causal = kind in ("added", "filled", "a soft cap")
    return masks.get(kind, (j <= i) if causal else np.ones((rows, keys), bool))


@pytest.mark.parametrize("kind", EXPRESSIONS)
@given(
    shared=st.sampled_from([1, 2]), rows=st.sampled_from([256, 320]), extra=st.sampled_from([-12, 0, 32]),
    size=st.sampled_from([8, 64]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=4, deadline=None)
def test_expressions_of_users_are_one_kernel_that_stores_no_scores(kind, shared, rows, extra, size, seed):
    rng = np.random.default_rng(seed)
    heads, keys = 4, rows + (extra if kind != "around" else 0)
    q = rng.standard_normal((1, heads, rows, size)).astype(np.float32)
    k, v = (rng.standard_normal((1, heads // shared, keys, size)).astype(np.float32) for _ in range(2))
    found = EXPRESSIONS[kind](*[Tensor(x).realize() for x in (q, k, v)])
    explained = found.explain()

    assert 1 == len(explained.kernels)
    assert "intermediates need" not in str(explained) or "intermediates need 0 B" in str(explained)
    wide_k, wide_v = (np.repeat(x, shared, 1) for x in (k, v))
    mask = what_is_allowed(kind, rows, keys)
    right = expected(q, wide_k, wide_v, mask) if kind != "a soft cap" else soft_capped(q, wide_k, wide_v, mask)
    np.testing.assert_allclose(found.numpy(), right, rtol=2e-5, atol=5e-6)


def soft_capped(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    capped = np.tanh(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) / 4) * 4
    powers = np.where(allowed, np.exp(capped), 0)
    return powers @ v / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("shared", [1, 4])
@given(keys=st.integers(1, 600), rows=st.sampled_from([1, 3]), seed=st.integers(0, 99))
@settings(max_examples=6, deadline=None)
def test_keys_of_a_size_that_varies_are_read_in_one_kernel(shared, keys, rows, seed):
    """A token more beside keys and values that are known: a cache of a fixed size, as far as it is filled."""
    rng = np.random.default_rng(seed)
    heads, most, size = 32, 600, 16
    q = rng.standard_normal((heads, rows, size)).astype(np.float32)
    k, v = (rng.standard_normal((heads // shared, most, size)).astype(np.float32) for _ in range(2))
    length = Variable("length", 1, most).bind(keys)
    query, *cache = [Tensor(x).realize() for x in (q, k, v)]
    some = [x.shrink(((0, heads // shared), (0, length), (0, size))) for x in cache]
    found = query.scaled_dot_product_attention(*some, enable_gqa=shared > 1)

    assert 1 == len(found.explain().kernels)
    wide_k, wide_v = (np.repeat(x[:, :keys], shared, 0) for x in (k, v))
    np.testing.assert_allclose(
        found.numpy(), expected(q, wide_k, wide_v, np.ones((rows, keys), bool)), rtol=2e-5, atol=5e-6
    )
