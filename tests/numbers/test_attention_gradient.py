"""The gradient of attention: no launch writes scores or weights, and the values are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from lazulite import Context, Tensor
from lazulite.ir import ops
from lazulite.ir.target import host
from lazulite.ir.uop import toposort
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Strip
from support.schedules import scheduled

HEADS, ROWS, SIZE = 4, 512, 32
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def softmax_of(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax() @ v


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, is_causal=True)


def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, attn_mask=Tensor(allowed(q.shape[-2], k.shape[-2])))


def allowed(rows: int, keys: int) -> np.ndarray:
    """Some keys for every row but one, which has none."""
    mask = np.random.default_rng(5).random((rows, keys)) > 0.3
    mask[:, 0], mask[3] = True, False
    return mask


KINDS: dict[str, Attention] = {
    "softmax": softmax_of, "whole": Tensor.scaled_dot_product_attention, "causal": causal, "masked": masked,
}  # fmt: skip


def inputs(heads: int, rows: int, keys: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(heads + rows)
    shapes = [(heads, rows, size), (heads, keys, size), (heads, keys, size), (heads, rows, size)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def of_tensors(attention: Attention, arrays: list[np.ndarray]) -> list[Tensor]:
    q, k, v, upstream = (Tensor(x).realize() for x in arrays)
    result = attention(q, k, v)
    return [result, *(result * upstream).sum().gradient(q, k, v)]


def of_torch(kind: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    torch = pytest.importorskip("torch")
    q, k, v, upstream = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if kind in ("causal", "masked"):
        shape = arrays[0].shape[1], arrays[1].shape[1]
        mask = torch.tensor(np.tril(np.ones(shape, bool)) if kind == "causal" else allowed(*shape))
        scores = scores.masked_fill(~mask, -1e300)
    weights = scores.softmax(-1)
    if kind == "masked":
        weights = weights * mask
    result = weights @ v
    return [x.detach().numpy() for x in (result, *torch.autograd.grad(result, (q, k, v), upstream))]


def assert_gradients(kind: str, arrays: list[np.ndarray]) -> None:
    for found, expected in zip(of_tensors(KINDS[kind], arrays), of_torch(kind, arrays), strict=True):
        bound = 16 * np.finfo(np.float32).eps * np.sqrt(arrays[0].shape[1]) * np.abs(expected).max()
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=bound)


@pytest.mark.parametrize("kind", KINDS)
def test_no_launch_writes_as_many_elements_as_there_are_scores(kind):
    found = scheduled([t.uop for t in of_tensors(KINDS[kind], inputs(HEADS, ROWS, ROWS, SIZE))], cache=1 << 21)

    for kernel in found.kernels:
        for store in kernel.src:
            assert prod(store.src[0].arg[1]) <= HEADS * ROWS * SIZE
    assert all(memory.nbytes <= 4 * HEADS * ROWS * SIZE for memory in found.schedule.plan.temporaries)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_keys_and_values_come_from_one_kernel(kind):
    found = scheduled([t.uop for t in of_tensors(KINDS[kind], inputs(HEADS, ROWS, ROWS, SIZE))], cache=1 << 21)
    products = [sum(n.op is ops.SCRATCH for n in toposort(kernel)) > 0 for kernel in found.kernels]

    assert 3 == sum(products)  # the result, the gradient of the queries, and those of keys and values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 512, 512, 32), (2, 640, 1100, 8), (3, 64, 64, 16)], ids=str)
def test_gradients_are_those_of_torch(kind, shape):
    assert_gradients(kind, inputs(*shape))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_wanted_without_the_result_store_no_scores_and_are_the_same(kind):
    arrays = inputs(4, 512, 512, 32)
    gradients = of_tensors(KINDS[kind], arrays)[1:]
    plan = scheduled([t.uop for t in gradients], cache=1 << 21).schedule.plan
    Tensor.realize(*gradients)

    assert all(memory.nbytes <= 4 * 4 * 512 * 32 for memory in plan.temporaries)
    for found, expected in zip(gradients, of_torch(kind, arrays)[1:], strict=True):
        bound = 16 * np.finfo(np.float32).eps * np.sqrt(512) * np.abs(expected).max()
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=bound)


@pytest.mark.parametrize("kind", ["whole", "causal", "softmax"])
def test_long_gradients_run_over_strips(kind):
    arrays = inputs(1, 4096, 4096, 8)
    kernels = scheduled([t.uop for t in of_tensors(KINDS[kind], arrays)], cache=1 << 21).kernels

    assert any(isinstance(step, Strip) for kernel in kernels for step in choose(kernel, host()))
    assert_gradients(kind, arrays)


def test_gradients_through_shared_keys_and_narrow_types():
    q, k, v, upstream = inputs(4, 512, 512, 16)
    narrow = [x.astype(np.float16) for x in (q, k[:2], v[:2], upstream)]
    results = []
    for options in ({}, {"FUSE": 0}):
        with Context(**options):
            a, b, c, d = (Tensor(x) for x in narrow)
            result = a.scaled_dot_product_attention(b, c, enable_gqa=True)
            results.append([t.numpy() for t in (result * d).sum().gradient(a, b, c)])

    for fused, apart in zip(*results, strict=True):
        assert np.float16 == fused.dtype
        np.testing.assert_allclose(fused, apart, rtol=2e-2, atol=2e-3)
