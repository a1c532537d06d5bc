"""Rows of torch.nn.functional: what the operator database lacks, tests with random draws, or tests in other forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lazulite import Tensor
from lazulite.nn import functional as ours
from surface.rows import Row, Sample, claim, row

theirs = torch.nn.functional
_random = np.random.default_rng(7)


def floats(*shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.standard_normal(shape).astype(np.float32))


def positive(*shape: int) -> torch.Tensor:
    return floats(*shape).abs() + 0.1


def classes(high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.integers(0, high, shape))


def signs(*shape: int) -> torch.Tensor:
    return torch.sign(floats(*shape))


def F(name: str, *samples: Any, **options: Any) -> Row:
    return row(name, *samples, space="functional", **options)


def given(*args: Any, **kwargs: Any) -> Sample:
    return Sample(args, kwargs)


# --- activations -----------------------------------------------------------------------------------

_SHAPES = [(4, 5), (3,), (2, 3, 4), (1, 6), (5, 1), (2, 8)]


def on_a_copy(name: str) -> Row:
    """A function that writes its input, on copies."""
    return F(
        name, *[given(floats(*shape)) for shape in _SHAPES], gradient=False,
        ours=lambda x: getattr(ours, name)(x.clone()), reference=lambda x: getattr(theirs, name)(x.clone()),
    )  # fmt: skip


ACTIVATIONS = [
    *[on_a_copy(name) for name in ("relu_", "elu_", "celu_", "selu_", "hardtanh_", "leaky_relu_", "rrelu_")],
    F("threshold_", *[given(floats(*shape)) for shape in _SHAPES], gradient=False,
      ours=lambda x: ours.threshold_(x.clone(), 0.1, 7.0), reference=lambda x: theirs.threshold_(x.clone(), 0.1, 7.0)),
    F("rrelu", *[given(floats(*shape), 0.1, 0.5) for shape in _SHAPES], alone=True),
    F("hardtanh", *[given(floats(*shape), -0.4, 0.8) for shape in _SHAPES], given(torch.arange(-3, 3)), alone=True),
    claim(
        "gumbel_softmax",
        lambda: abs(ours.gumbel_softmax(Tensor.zeros(2000, 4)).mean(0).numpy() - 0.25).max() < 0.03,
        lambda: np.allclose(ours.gumbel_softmax(Tensor.randn(5, 3), tau=0.5).sum(-1).numpy(), 1, rtol=1e-5),
        lambda: set(ours.gumbel_softmax(Tensor.randn(9, 3), hard=True).flatten().tolist()) == {0.0, 1.0},
        lambda: ours.gumbel_softmax(Tensor.randn(3, 4), hard=True, dim=0).sum(0).tolist() == [1.0] * 4,
        lambda: ours.gumbel_softmax(Tensor([[0.0, 99.0]]), tau=0.1).round().tolist() == [[0.0, 1.0]],
        space="functional",
    ),
]  # fmt: skip

# --- what leaves out at random ------------------------------------------------------------------------


def dropping(name: str, *shapes: tuple[int, ...]) -> list[Row]:
    """Outside of training nothing happens; in training whole units go, and the mean stays."""
    call = getattr(ours, name)
    keeps_mean = not name.endswith("alpha_dropout")
    x = Tensor.ones(*shapes[0])

    def drawn(p: float = 0.5) -> np.ndarray[Any, Any]:
        return call(Tensor.ones(*shapes[0]), p, training=True).numpy()

    return [
        F(name, *[given(floats(*shape), p, training=False) for shape in shapes for p in (0.3, 0.5)],
          *[given(floats(*shape), 0.0, training=True) for shape in shapes], alone=True),
        claim(
            name, lambda: call(x, 0.5, training=False).numpy().tolist() == x.numpy().tolist(),
            lambda: len(np.unique(drawn())) == 2, lambda: not keeps_mean or abs(drawn().mean() - 1) < 0.4,
            lambda: np.isfinite(drawn(1.0)).all(), lambda: drawn(0.0).min() == 1, space="functional",
        ),
    ]  # fmt: skip


DROPOUTS = [
    *dropping("dropout", (50, 40), (3, 4)), *dropping("alpha_dropout", (50, 40), (3, 4)),
    *dropping("dropout1d", (40, 20, 3), (4, 3, 5)), *dropping("dropout2d", (40, 20, 3, 2), (4, 3, 2, 2)),
    *dropping("dropout3d", (40, 20, 2, 2, 2), (2, 2, 2, 2, 2)),
    *dropping("feature_alpha_dropout", (40, 20, 3), (4, 3, 5)),
]  # fmt: skip

# --- pools -----------------------------------------------------------------------------------------


def pools(name: str, rank: int, *forms: dict[str, Any], size: int = 9, **options: Any) -> Row:
    x = floats(2, 3, *(size,) * rank)
    return F(name, *[given(x, **form) for form in forms], given(x[0], **forms[0]), given(-x, **forms[-1]), **options)


_AVERAGES: list[dict[str, Any]] = [
    {"kernel_size": 3}, {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "ceil_mode": True}, {"kernel_size": 3, "padding": 1, "count_include_pad": False},
]  # fmt: skip
_NORMS: list[dict[str, Any]] = [
    {"norm_type": 2, "kernel_size": 2}, {"norm_type": 1, "kernel_size": 3, "stride": 2},
    {"norm_type": 3, "kernel_size": 2, "ceil_mode": True},
]  # fmt: skip


def windows_by_draw(name: str, rank: int, **options: Any) -> Row:
    """Fractional pools with the draws given."""
    x, draws = floats(2, 3, *(8,) * rank), torch.rand(2, 3, rank)
    forms: list[dict[str, Any]] = [{"output_size": n} for n in (2, 3, (4,) * rank)]
    return F(
        name, *[given(x, size, _random_samples=draws, **form) for form in forms for size in (2, 3)], alone=True,
        gradient=False, **options,
    )  # fmt: skip


def with_places(name: str) -> dict[str, Any]:
    """The same with positions, whose type is int32 here."""
    return {
        "ours": getattr(ours, f"{name}_with_indices"),
        "reference": lambda *a, **k: getattr(theirs, name)(*a, return_indices=True, **k),
    }


def unpooled(rank: int) -> Row:
    """Windows side by side, so that no element is chosen twice."""
    maxima = [getattr(theirs, f"max_pool{rank}d")(floats(2, 2, *(n,) * rank), 2, return_indices=True)
              for n in (2, 4, 6, 8, 10)]  # fmt: skip
    return F(f"max_unpool{rank}d", *[given(*pair, 2) for pair in maxima], alone=True)


POOLS = [
    *[pools(f"avg_pool{rank}d", rank, *_AVERAGES, size=7, alone=True) for rank in (1, 2, 3)],
    *[pools(f"lp_pool{rank}d", rank, *_NORMS) for rank in (1, 2)],
    F("lp_pool3d", *[given(positive(1, 2, 5, 5, 5), **form) for form in _NORMS for _ in range(2)]),
    *[unpooled(rank) for rank in (1, 2, 3)],
    *[pools(f"max_pool{rank}d_with_indices", rank, {"kernel_size": 3}, {"kernel_size": 2, "stride": 3},
            {"kernel_size": 3, "padding": 1, "dilation": 2}, size=7, **with_places(f"max_pool{rank}d"))
      for rank in (1, 2, 3)],
    *[pools(f"adaptive_max_pool{rank}d_with_indices", rank, {"output_size": 2}, {"output_size": 3}, {"output_size": 5},
            size=7, **with_places(f"adaptive_max_pool{rank}d")) for rank in (1, 2, 3)],
    *[windows_by_draw(f"fractional_max_pool{rank}d", rank) for rank in (2, 3)],
    *[windows_by_draw(f"fractional_max_pool{rank}d_with_indices", rank, **with_places(f"fractional_max_pool{rank}d"))
      for rank in (2, 3)],
]  # fmt: skip

# --- places ----------------------------------------------------------------------------------------

_SIZES = [(2, 2, 3, 4), (1, 1, 5, 5), (2, 3, 1, 2), (2, 1, 4, 1)]

PLACES = [
    F("affine_grid", *[given(floats(size[0], 2, 3), size, align_corners=c) for size in _SIZES for c in (False, True)],
      given(floats(1, 3, 4), (1, 1, 2, 3, 4), align_corners=False)),
    F("fold", *[given(floats(*shape), size, kernel, **form) for shape, size, kernel, form in [
        ((2, 12, 12), (4, 5), 2, {}), ((1, 4, 6), (4, 6), 2, {"stride": 2}), ((4, 6), (4, 6), 2, {"stride": 2}),
        ((2, 9, 30), (5, 6), 3, {"padding": 1}), ((1, 8, 9), (5, 5), 2, {"dilation": 2}),
    ]]),
    F("upsample", *[given(floats(2, 2, 4, 5), **form) for form in (
        {"size": (7, 3)}, {"scale_factor": 2}, {"size": 6, "mode": "bilinear", "align_corners": True},
        {"scale_factor": 1.7, "mode": "bilinear"}, {"size": (2, 9), "mode": "bicubic"},
    )]),
    F("native_channel_shuffle", *[given(floats(2, c, *rest), g) for c, g, rest in [
        (4, 2, (3,)), (6, 3, (2, 2)), (6, 2, (2, 2)), (8, 4, (1,)), (2, 1, (5,))
    ]]),
    F("embedding", *[given(classes(6, *shape), floats(6, 3), **form) for shape, form in [
        ((4,), {}), ((2, 3), {}), ((0,), {}), ((3, 1), {"padding_idx": 2}), ((5,), {"padding_idx": -1}),
        ((9,), {"scale_grad_by_freq": True}),
    ]], alone=True),
    F("embedding_bag", *[given(classes(6, *shape), floats(6, 3), **form) for shape, form in [
        ((2, 4), {}), ((2, 4), {"mode": "sum"}), ((3, 2), {"mode": "max"}),
        ((6,), {"offsets": torch.tensor([0, 2, 2, 5]), "mode": "sum"}),
        ((6,), {"offsets": torch.tensor([0, 2, 2, 6]), "mode": "max", "include_last_offset": True}),
        ((2, 4), {"mode": "sum", "per_sample_weights": floats(2, 4)}), ((3, 4), {"padding_idx": 1}),
        ((6,), {"offsets": torch.tensor([0, 3]), "padding_idx": 0}),
    ]], alone=True),
]  # fmt: skip

# --- products, attention, norms -----------------------------------------------------------------------

_HEADS = [((2, 3, 4), (2, 5, 4)), ((2, 2, 3, 4), (2, 2, 3, 4)), ((1, 4, 6), (1, 2, 6))]

PRODUCTS = [
    F("conv_tbc", *[given(floats(t, 2, 3), floats(k, 3, 4), floats(4), pad) for t, k, pad in [
        (5, 3, 0), (5, 3, 1), (4, 1, 0), (6, 2, 2), (3, 3, 1)
    ]]),
    F("scaled_dot_product_attention", *[given(floats(*q), floats(*k), floats(*k), **form) for q, k in _HEADS for form in
      ({}, {"is_causal": True}, {"scale": 0.3})],
      given(floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 4), attn_mask=floats(3, 5) > -0.5),
      given(floats(4, 3, 4), floats(2, 5, 4), floats(2, 5, 4), enable_gqa=True), alone=True),
    F("linear_cross_entropy", *[given(floats(n, 3), floats(4, 3), classes(4, n), **form) for n, form in [
        (5, {}), (2, {"reduction": "sum"}), (3, {"reduction": "none"}), (4, {"label_smoothing": 0.2}),
        (4, {"linear_bias": floats(4)}), (6, {"ignore_index": 1}),
    ]], alone=True),
    F("multi_head_attention_forward", *[
        given(floats(length, 2, 8), floats(4, 2, 8), floats(4, 2, 8), 8, heads, floats(24, 8), floats(24), None, None,
              zero, 0.0, floats(8, 8), floats(8), need_weights=weights)
        for length, heads, zero, weights in [(3, 2, False, True), (4, 4, True, True), (1, 1, False, False),
                                             (2, 8, True, False), (5, 2, False, True)]
    ]),
    F("batch_norm", *[given(floats(*shape), floats(3), positive(3), **form)
      for shape in ((4, 3), (2, 3, 5), (2, 3, 2, 2))
      for form in ({}, {"training": True}, {"weight": floats(3), "bias": floats(3), "eps": 0.1})],
      gradient=False, alone=True),
    F("instance_norm", *[given(floats(2, 3, *rest), **form) for rest in ((5,), (2, 3), (2, 2, 2))
      for form in ({}, {"weight": floats(3), "bias": floats(3)})]),
]  # fmt: skip

# --- losses ----------------------------------------------------------------------------------------


def aligned(function: Any) -> Any:
    """CTC of scores: torch's gradient is meant for what log_softmax gives."""
    return lambda scores, *args, **kwargs: function(scores.log_softmax(-1), *args, **kwargs)


def cosine_distance(library: Any) -> Any:
    return lambda x, y: 1 - library.cosine_similarity(x, y)


_ALIGNMENTS = [
    given(floats(6, 2, 4), torch.tensor([[1, 2, 2], [3, 1, 0]]), torch.tensor([6, 5]), torch.tensor([3, 2]), **form)
    for form in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"zero_infinity": True})
] + [
    given(floats(5, 2, 3), torch.tensor([1, 1, 2]), torch.tensor([5, 4]), torch.tensor([1, 2])),
    given(floats(4, 3), torch.tensor([1, 2]), torch.tensor(4), torch.tensor(2)),
    given(floats(5, 1, 3), torch.tensor([[0, 1]]), torch.tensor([5]), torch.tensor([2]), blank=2),
]

LOSSES = [
    F("ctc_loss", *_ALIGNMENTS, ours=aligned(ours.ctc_loss), reference=aligned(theirs.ctc_loss), alone=True),
    F("soft_margin_loss", *[given(floats(*s), signs(*s), **form) for s, form in [
        ((3,), {}), ((2, 3), {"reduction": "sum"}), ((4,), {"reduction": "none"}), ((), {}), ((2, 2, 2), {})
    ]], gradient=False),
    F("triplet_margin_with_distance_loss", *[given(floats(4, 3), floats(4, 3), floats(4, 3), **form) for form in (
        {}, {"margin": 0.5}, {"swap": True}, {"reduction": "sum"}, {"reduction": "none"}
      )], ours=lambda *a, **k: ours.triplet_margin_with_distance_loss(*a, distance_function=cosine_distance(ours), **k),
      reference=lambda *a, **k: theirs.triplet_margin_with_distance_loss(
          *a, distance_function=cosine_distance(theirs), **k), alone=True),
]  # fmt: skip

ROWS = [*ACTIVATIONS, *DROPOUTS, *POOLS, *PLACES, *PRODUCTS, *LOSSES]
