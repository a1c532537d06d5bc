"""Rows of Tensor methods that networks are made of, where their form is tinygrad's and not torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lazulite import Tensor
from surface.rows import Row, Sample, row

F = torch.nn.functional
_random = np.random.default_rng(13)


def floats(*shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.standard_normal(shape).astype(np.float32))


def chances(*shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.uniform(0.1, 0.9, shape).astype(np.float32))


def classes(high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.integers(0, high, shape))


def T(name: str, *samples: Any, **options: Any) -> Row:
    return row(name, *[s if isinstance(s, Sample) else Sample(s) for s in samples], alone=True, **options)


def given(*args: Any, **kwargs: Any) -> Sample:
    return Sample(args, kwargs)


_SHAPES = [(3,), (2, 3), (2, 3, 4), (1, 5), (4, 1)]
_IMAGES = [(2, 2, 7, 7), (1, 3, 5, 6)]
_WINDOWS: list[dict[str, Any]] = [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "ceil_mode": True},
    {"kernel_size": (3, 2), "stride": 1},
]  # fmt: skip
_REDUCTIONS = [{}, {"reduction": "sum"}, {"reduction": "none"}]


def per_channel(x: Any, column: Any) -> Any:
    return column.reshape((1, -1, *(1,) * (x.ndim - 2)))


def normal(x: Any, axes: Any) -> Any:
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5)


POOLS = [
    *[T(name, *[given(floats(*shape), **form) for shape in _IMAGES for form in _WINDOWS])
      for name in ("avg_pool2d", "max_pool2d")],
    T("max_unpool2d", *[given(*F.max_pool2d(floats(2, 2, n, n), 2, return_indices=True), 2) for n in (2, 4, 6, 8, 10)]),
    T("interpolate",
      *[given(floats(1, 2, n), m, align) for n, m in ((4, 7), (5, 3), (3, 1)) for align in (False, True)],
      ours=lambda x, size, align: x.interpolate(size, "linear", align),
      reference=lambda x, size, align: F.interpolate(x, size, mode="linear", align_corners=align)),
]  # fmt: skip

_KERNELS = [((2, 4, 6, 6), (4, 4, 3, 3), {}), ((1, 4, 5, 5), (6, 2, 3, 3), {"groups": 2}),
            ((2, 3, 7, 6), (2, 3, 2, 3), {"stride": 2, "padding": 1}), ((1, 2, 8, 8), (3, 2, 3, 3), {"dilation": 2}),
            ((1, 1, 4, 4), (1, 1, 1, 1), {})]  # fmt: skip

PRODUCTS = [
    T("conv2d", *[given(floats(*x), floats(*w), floats(w[0]), **form) for x, w, form in _KERNELS]),
    T("conv_transpose2d", *[given(floats(2, 4, 3, 3), floats(4, 2, 3, 3), floats(2), **form) for form in (
        {}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2}, {"padding": 2},
    )]),
    T("einsum", *[given(formula, *[floats(*shape) for shape in shapes]) for formula, *shapes in [
        ("ij,jk->ik", (2, 3), (3, 4)), ("iij->ij", (2, 2, 3)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)),
        ("ij,jk,kl", (2, 3), (3, 2), (2, 4)), ("i,j->ij", (2,), (3,)), ("ii", (3, 3)), ("b...,b...->b", (2, 3), (2, 3)),
    ]], ours=Tensor.einsum, reference=torch.einsum),
    T("scaled_dot_product_attention", *[given(floats(2, 3, 4), floats(2, n, 4), floats(2, n, 4), is_causal=causal)
      for n in (3, 5, 1) for causal in (False, True)]),
    T("layernorm", *[given(floats(*shape), axes) for shape in ((2, 3), (2, 3, 4)) for axes in (-1, (0, 1), 0)],
      ours=lambda x, axes: x.layernorm(axes), reference=normal),
    T("batchnorm", *[given(floats(*shape), floats(3), floats(3), floats(3), chances(3)) for shape in
      ((2, 3), (2, 3, 4), (1, 3, 2, 2), (4, 3), (2, 3, 1))],
      reference=lambda x, w, b, m, s: (x - per_channel(x, m)) * per_channel(x, s * w) + per_channel(x, b)),
]  # fmt: skip


LOSSES = [
    T("one_hot", *[given(classes(4, *shape), 4) for shape in _SHAPES],
      ours=lambda x, n: x.one_hot(n), reference=F.one_hot),
    T("binary_crossentropy", *[given(chances(*s), chances(*s), **form) for s in _SHAPES[:2] for form in _REDUCTIONS],
      reference=F.binary_cross_entropy),
    T("binary_crossentropy_logits",
      *[given(floats(*s), chances(*s), **form) for s in _SHAPES[:2] for form in _REDUCTIONS],
      given(floats(2, 3), chances(2, 3), pos_weight=chances(3)), reference=F.binary_cross_entropy_with_logits),
    T("sparse_categorical_crossentropy", *[given(floats(4, 3), classes(3, 4), **form) for form in
      (*_REDUCTIONS, {"label_smoothing": 0.1}, {"ignore_index": 1})],
      reference=lambda x, y, **form: F.cross_entropy(x, y, **{"ignore_index": -1} | form)),
]  # fmt: skip

FUNCTIONS = [
    T("hardtanh", *[given(floats(*shape), -0.5, 0.8) for shape in _SHAPES], given(torch.arange(-3, 3), -1, 1)),
    T("softplus", *[given(floats(*shape), 1.5) for shape in _SHAPES], reference=lambda x, b: F.softplus(x, b, 1e9)),
    T("swish", *[given(floats(*shape)) for shape in _SHAPES], reference=F.silu),
    T("quick_gelu", *[given(floats(*shape)) for shape in _SHAPES], reference=lambda x: x * torch.sigmoid(1.702 * x)),
    T("sequential", *[given(floats(*shape)) for shape in _SHAPES],
      ours=lambda x: x.sequential([Tensor.abs, Tensor.sqrt]), reference=lambda x: x.abs().sqrt()),
    T("rearrange", *[given(floats(*shape), axes) for shape, axes in [
        ((2, 6), "a (b c) -> b (a c)"), ((4, 6), "a (b c) -> b (a c)"), ((1, 2), "a (b c) -> b (a c)"),
        ((3, 8), "a (b c) -> b (a c)"), ((5, 4), "a (b c) -> b (a c)"),
    ]], ours=lambda x, axes: x.rearrange(axes, b=2),
      reference=lambda x, axes: x.reshape(x.shape[0], 2, -1).transpose(0, 1).reshape(2, -1)),
]  # fmt: skip

ROWS = [*POOLS, *PRODUCTS, *LOSSES, *FUNCTIONS]
