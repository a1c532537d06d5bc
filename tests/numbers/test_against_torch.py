"""Reductions, products, windows and losses have torch's values and gradients."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import Tensor

torch = pytest.importorskip("torch", reason="notimpl: torch is not installed here")
F = torch.nn.functional

Shapes = tuple[tuple[int, ...], ...]
Case = tuple[str, Callable[..., Any], Callable[..., Any], Shapes]

REDUCTIONS: list[Case] = [
    ("sum", lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), ((2, 3, 4),)),
    ("mean", lambda x: x.mean(dim=1, keepdim=True), lambda x: x.mean(1, keepdim=True), ((2, 3, 4),)),
    ("max", lambda x: x.max(1), lambda x: x.amax(1), ((2, 3, 4),)),
    ("min", lambda x: x.min((0, 1)), lambda x: x.amin((0, 1)), ((2, 3, 4),)),
    ("prod", lambda x: x.prod(1), lambda x: x.prod(1), ((2, 5, 4),)),
    ("var", lambda x: x.var(1), lambda x: x.var(1), ((2, 3, 4),)),
    ("var of all", lambda x: x.var(correction=0), lambda x: x.var(correction=0), ((2, 3, 4),)),
    ("std", lambda x: x.std((0, 2)), lambda x: x.std((0, 2)), ((2, 3, 4),)),
    ("softmax", lambda x: x.softmax(1), lambda x: x.softmax(1), ((2, 3, 4),)),
    ("log_softmax", lambda x: x.log_softmax(), lambda x: x.log_softmax(-1), ((2, 3, 4),)),
    ("logsumexp", lambda x: x.logsumexp((0, 1)), lambda x: x.logsumexp((0, 1)), ((2, 3, 4),)),
    ("layernorm", lambda x: x.layernorm((1, 2)), lambda x: F.layer_norm(x, (3, 4)), ((2, 3, 4),)),
]

PRODUCTS: list[Case] = [
    (f"{left} @ {right}", lambda x, y: x @ y, lambda x, y: x @ y, (left, right))
    for left, right in [
        ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (3, 4, 2)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)),
    ]
]  # fmt: skip

MOVEMENTS: list[Case] = [
    ("unfold", lambda x: x.unfold(1, 3, 2), lambda x: x.unfold(1, 3, 2), ((2, 8, 3),)),
    ("roll", lambda x: x.roll((1, -2), (0, 1)), lambda x: x.roll((1, -2), (0, 1)), ((3, 4),)),
    ("roll flat", lambda x: x.roll(2), lambda x: x.roll(2), ((3, 4),)),
    ("cat", lambda x, y: x.cat(y, dim=1), lambda x, y: torch.cat([x, y], 1), ((3, 4), (3, 2))),
    ("stack", lambda x, y: x.stack(y, dim=-1), lambda x, y: torch.stack([x, y], -1), ((3, 4), (3, 4))),
    ("triangles", lambda x: x.tril(1) + x.triu(-1), lambda x: x.tril(1) + x.triu(-1), ((2, 3, 4),)),
    ("pad", lambda x: x.pad((1, 2, 0, -1), value=3.0), lambda x: F.pad(x, (1, 2, 0, -1), value=3.0), ((2, 3, 4),)),
    ("repeat", lambda x: x.repeat(2, 1, 3), lambda x: x.repeat(2, 1, 3), ((3, 4),)),
    ("interleave", lambda x: x.repeat_interleave(3, 1), lambda x: x.repeat_interleave(3, 1), ((3, 4),)),
    ("slices", lambda x: x[:, 1:4:2, None, -1], lambda x: x[:, 1:4:2, None, -1], ((3, 5, 2),)),
]

CONVOLUTIONS: list[Case] = [
    (f"conv2d {facts}", lambda x, w, b, f=facts: x.conv2d(w, b, **f), lambda x, w, b, f=facts: F.conv2d(x, w, b, **f),
     ((2, 3, 8, 7), (4, 3, 3, 2), (4,)))
    for facts in [
        {}, {"stride": 2}, {"padding": 1}, {"padding": (1, 2)}, {"dilation": 2}, {"stride": 3},
        {"stride": 2, "dilation": 2, "padding": 2},
    ]
] + [
    ("groups", lambda x, w: x.conv2d(w, groups=2), lambda x, w: F.conv2d(x, w, groups=2), ((2, 4, 5, 5), (6, 2, 3, 3))),
    ("one axis", lambda x, w: x.conv2d(w), F.conv1d, ((2, 4, 9), (6, 4, 3))),
    ("three axes", lambda x, w: x.conv2d(w), F.conv3d, ((1, 2, 4, 4, 4), (2, 2, 2, 2, 2))),
    ("1x1", lambda x, w: x.conv2d(w, stride=2), lambda x, w: F.conv2d(x, w, stride=2), ((2, 4, 5, 5), (6, 4, 1, 1))),
    ("side by side", lambda x, w: x.conv2d(w, stride=2), lambda x, w: F.conv2d(x, w, stride=2),
     ((2, 2, 5, 6), (3, 2, 2, 2))),
]  # fmt: skip

POOLS: list[Case] = [
    (f"{name} {facts}", lambda x, n=name, f=facts: getattr(x, n)(**f), lambda x, n=name, f=facts: getattr(F, n)(x, **f),
     ((2, 2, 7, 7),))
    for name in ("max_pool2d", "avg_pool2d")
    for facts in [
        {"kernel_size": 2}, {"kernel_size": 3, "stride": 2}, {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 2, "ceil_mode": True}, {"kernel_size": (2, 3)},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    ]
]  # fmt: skip

CLASSES = [1, 0, 3]


def loss(name: str, **facts: Any) -> Case:
    return (
        f"{name} {facts}",
        lambda x: getattr(x, name)(Tensor(CLASSES), **facts),
        lambda x: F.cross_entropy(x, torch.tensor(CLASSES), **({"ignore_index": -1} | facts)),
        ((3, 4),),
    )


LOSSES = [
    loss(name, **facts)
    for name in ("cross_entropy", "sparse_categorical_crossentropy")
    for facts in [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"reduction": "none"}]
]

SCANS: list[Case] = [
    (f"{name} along {axis}", lambda x, n=name, a=axis: getattr(x, n)(a), lambda x, n=name, a=axis: getattr(x, n)(a),
     ((3, 70, 2),))
    for name in ("cumsum", "cumprod", "logcumsumexp") for axis in (0, 1)
]  # fmt: skip

ROWS = [[2, 0], [2, 1]]

PICKING: list[Case] = [
    ("rows", lambda x: x[ROWS], lambda x: x[ROWS, :], ((3, 4),)),
    ("rows and columns", lambda x: x[ROWS, :, [1, 3]], lambda x: x[ROWS, :, [1, 3]], ((3, 2, 4),)),
    ("gather", lambda x: x.gather(1, Tensor(ROWS)), lambda x: x.gather(1, torch.tensor(ROWS)), ((3, 4),)),
    ("index_select", lambda x: x.index_select(1, [3, 3, 0]), lambda x: x.index_select(1, torch.tensor([3, 3, 0])),
     ((3, 4),)),
    ("take", lambda x: x.take(Tensor(ROWS)), lambda x: x.take(torch.tensor(ROWS)), ((3, 4),)),
    ("scatter", lambda x, y: x.scatter(1, Tensor([[2, 0]]), y), lambda x, y: x.scatter(1, torch.tensor([[2, 0]]), y),
     ((3, 4), (1, 2))),
    ("scatter_reduce", lambda x, y: x.scatter_reduce(1, Tensor(ROWS), y, "prod"),
     lambda x, y: x.scatter_reduce(1, torch.tensor(ROWS), y, "prod"), ((3, 4), (2, 2))),
    ("diagonal", lambda x: x.diagonal(1, 2, 0), lambda x: x.diagonal(1, 2, 0), ((3, 2, 4),)),
]  # fmt: skip

NETWORKS: list[Case] = [
    ("einsum", lambda x, y, z: Tensor.einsum("bij,jk,bk->bi", x, y, z),
     lambda x, y, z: torch.einsum("bij,jk,bk->bi", x, y, z), ((2, 3, 4), (4, 5), (2, 5))),
    ("attention", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
     lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), ((2, 4, 5), (2, 6, 5), (2, 6, 3))),
    *[(f"normalize by {p}", lambda x, p=p: x.normalize(p), lambda x, p=p: F.normalize(x, p), ((3, 4),))
      for p in (1.0, 2.0, 3.0)],
    *[(f"interpolate {shape} to {size} {align}", lambda x, s=size, a=align: x.interpolate(s, align_corners=a),
       lambda x, s=size, a=align: F.interpolate(x, s, mode="linear" if len(s) == 1 else "bilinear", align_corners=a),
       (shape,))
      for shape, size in [((1, 2, 4), (7,)), ((1, 2, 4), (2,)), ((2, 1, 3, 5), (5, 3))] for align in (False, True)],
    *[(f"interpolate {mode}", lambda x, m=mode: x.interpolate(7, m), lambda x, m=mode: F.interpolate(x, 7, mode=m),
       ((1, 2, 4),)) for mode in ("nearest", "nearest-exact")],
]  # fmt: skip


def transposed(stride: int, padding: int, output_padding: int, dilation: int) -> Case:
    facts = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation, "groups": 2}
    return (
        f"conv_transpose2d {facts}",
        lambda x, w, b: x.conv_transpose2d(w, b, **facts),
        lambda x, w, b: F.conv_transpose2d(x, w, b, **facts),
        ((2, 4, 3, 3), (4, 3, 3, 3), (6,)),
    )


TRANSPOSED = [transposed(2, 0, 1, 1), transposed(3, 1, 2, 1), transposed(2, 1, 1, 2), transposed(1, 0, 0, 2)]

ALL = [*REDUCTIONS, *SCANS, *PICKING, *NETWORKS, *TRANSPOSED, *PRODUCTS, *MOVEMENTS, *CONVOLUTIONS, *POOLS, *LOSSES]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case[0])
def test_value_and_gradient_are_torchs(case: Case) -> None:
    """B098 among others: transposed convolutions with output padding and dilation."""
    name, ours, theirs, shapes = case
    random = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    leaves = [Tensor(array) for array in arrays]
    twins = [torch.tensor(array, requires_grad=True) for array in arrays]
    expected = theirs(*twins)
    weight = random.standard_normal(tuple(expected.shape)).astype(np.float32)
    result = ours(*leaves)
    gradients = (result * Tensor(weight)).sum().gradient(*leaves)
    (expected * torch.tensor(weight)).sum().backward()

    assert tuple(expected.shape) == result.shape
    assert expected.detach().numpy() == pytest.approx(result.numpy(), rel=1e-5, abs=1e-5)
    for twin, gradient in zip(twins, gradients, strict=True):
        assert twin.grad.numpy() == pytest.approx(gradient.numpy(), rel=1e-4, abs=1e-4)
