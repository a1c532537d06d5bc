"""Modules that hold arguments of one function, as one table.

`thin(name, function, field=default, ..)` is the class of that name: its arguments are the fields in that order, and
calling it calls the function with them.  REQUIRED marks a field without a default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lazulite.nn import functional as F
from lazulite.nn.module import Module
from lazulite.tensor.tensor import Tensor

REQUIRED: Any = inspect.Parameter.empty


class Thin(Module):
    """What all of them share."""

    function: Callable[..., Any]
    signature: inspect.Signature
    fixed: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        vars(self).update(bound.arguments)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        fields = {name: getattr(self, name) for name in self.signature.parameters}
        return type(self).function(*inputs, **fields, **self.fixed, **named)


def thin(name: str, function: Callable[..., Any], fixed: dict[str, Any] | None = None, **fields: Any) -> type[Thin]:
    """A module class for a function."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(field, kind, default=default) for field, default in fields.items()]
    shown = ", ".join(field if default is REQUIRED else f"{field}={default!r}" for field, default in fields.items())
    doc = (
        f"`{function.__name__}` as a module: {name}({shown}).\n\n{(function.__doc__ or '').partition('>>>')[0].strip()}"
    )
    members = {
        "function": staticmethod(function), "signature": inspect.Signature(parameters), "fixed": fixed or {},
        "__doc__": doc, "__module__": __name__,
    }  # fmt: skip
    return type(name, (Thin,), members)


# --- activations -----------------------------------------------------------------------------------

ReLU, ReLU6 = thin("ReLU", F.relu, inplace=False), thin("ReLU6", F.relu6, inplace=False)
SELU, SiLU = thin("SELU", F.selu, inplace=False), thin("SiLU", F.silu, inplace=False)
Mish, Hardswish = thin("Mish", F.mish, inplace=False), thin("Hardswish", F.hardswish, inplace=False)
Hardsigmoid = thin("Hardsigmoid", F.hardsigmoid, inplace=False)
ELU, CELU = thin("ELU", F.elu, alpha=1.0, inplace=False), thin("CELU", F.celu, alpha=1.0, inplace=False)
LeakyReLU = thin("LeakyReLU", F.leaky_relu, negative_slope=0.01, inplace=False)
Hardtanh = thin("Hardtanh", F.hardtanh, min_val=-1, max_val=1, inplace=False)
GELU, GLU = thin("GELU", F.gelu, approximate="none"), thin("GLU", F.glu, dim=-1)
Sigmoid, LogSigmoid = thin("Sigmoid", F.sigmoid), thin("LogSigmoid", F.logsigmoid)
Tanh, Tanhshrink, Softsign = thin("Tanh", F.tanh), thin("Tanhshrink", F.tanhshrink), thin("Softsign", F.softsign)
Softplus = thin("Softplus", F.softplus, beta=1.0, threshold=20.0)
Hardshrink, Softshrink = thin("Hardshrink", F.hardshrink, lambd=0.5), thin("Softshrink", F.softshrink, lambd=0.5)
Threshold = thin("Threshold", F.threshold, threshold=REQUIRED, value=REQUIRED, inplace=False)
Softmax, Softmin = thin("Softmax", F.softmax, dim=None), thin("Softmin", F.softmin, dim=None)
LogSoftmax, Softmax2d = thin("LogSoftmax", F.log_softmax, dim=None), thin("Softmax2d", F.softmax, {"dim": -3})

# --- distances and losses ----------------------------------------------------------------------------

CosineSimilarity = thin("CosineSimilarity", F.cosine_similarity, dim=1, eps=1e-8)
PairwiseDistance = thin("PairwiseDistance", F.pairwise_distance, p=2.0, eps=1e-6, keepdim=False)
_OLD: dict[str, Any] = {"size_average": None, "reduce": None, "reduction": "mean"}
L1Loss, MSELoss = thin("L1Loss", F.l1_loss, **_OLD), thin("MSELoss", F.mse_loss, **_OLD)
SmoothL1Loss = thin("SmoothL1Loss", F.smooth_l1_loss, **_OLD, beta=1.0)
HuberLoss = thin("HuberLoss", F.huber_loss, reduction="mean", delta=1.0)
KLDivLoss = thin("KLDivLoss", F.kl_div, **_OLD, log_target=False)
BCELoss = thin("BCELoss", F.binary_cross_entropy, weight=None, **_OLD)
BCEWithLogitsLoss = thin("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, weight=None, **_OLD, pos_weight=None)
NLLLoss = thin("NLLLoss", F.nll_loss, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean")
NLLLoss2d = thin(
    "NLLLoss2d", F.nll_loss, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"
)
CrossEntropyLoss = thin(
    "CrossEntropyLoss", F.cross_entropy, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction="mean", label_smoothing=0.0,
)  # fmt: skip
PoissonNLLLoss = thin(
    "PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
    reduction="mean",
)  # fmt: skip
GaussianNLLLoss = thin("GaussianNLLLoss", F.gaussian_nll_loss, full=False, eps=1e-6, reduction="mean")
CTCLoss = thin("CTCLoss", F.ctc_loss, blank=0, reduction="mean", zero_infinity=False)
HingeEmbeddingLoss = thin("HingeEmbeddingLoss", F.hinge_embedding_loss, margin=1.0, **_OLD)
MarginRankingLoss = thin("MarginRankingLoss", F.margin_ranking_loss, margin=0.0, **_OLD)
CosineEmbeddingLoss = thin("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0, **_OLD)
SoftMarginLoss = thin("SoftMarginLoss", F.soft_margin_loss, **_OLD)
MultiMarginLoss = thin("MultiMarginLoss", F.multi_margin_loss, p=1, margin=1.0, weight=None, **_OLD)
MultiLabelMarginLoss = thin("MultiLabelMarginLoss", F.multilabel_margin_loss, **_OLD)
MultiLabelSoftMarginLoss = thin("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, weight=None, **_OLD)
TripletMarginLoss = thin("TripletMarginLoss", F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False, **_OLD)
TripletMarginWithDistanceLoss = thin(
    "TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, distance_function=None, margin=1.0,
    swap=False, reduction="mean",
)  # fmt: skip

# --- pools -----------------------------------------------------------------------------------------

_MAX: dict[str, Any] = {
    "kernel_size": REQUIRED, "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False,
}  # fmt: skip
_MEAN: dict[str, Any] = {
    "kernel_size": REQUIRED, "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True,
}  # fmt: skip
_NORM: dict[str, Any] = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}
_BACK: dict[str, Any] = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_PART: dict[str, Any] = {
    "kernel_size": REQUIRED, "output_size": None, "output_ratio": None, "return_indices": False,
    "_random_samples": None,
}  # fmt: skip
MaxPool1d, MaxPool2d = thin("MaxPool1d", F.max_pool1d, **_MAX), thin("MaxPool2d", F.max_pool2d, **_MAX)
MaxPool3d, AvgPool1d = thin("MaxPool3d", F.max_pool3d, **_MAX), thin("AvgPool1d", F.avg_pool1d, **_MEAN)
AvgPool2d = thin("AvgPool2d", F.avg_pool2d, **_MEAN, divisor_override=None)
AvgPool3d = thin("AvgPool3d", F.avg_pool3d, **_MEAN, divisor_override=None)
LPPool1d, LPPool2d = thin("LPPool1d", F.lp_pool1d, **_NORM), thin("LPPool2d", F.lp_pool2d, **_NORM)
LPPool3d, MaxUnpool1d = thin("LPPool3d", F.lp_pool3d, **_NORM), thin("MaxUnpool1d", F.max_unpool1d, **_BACK)
MaxUnpool2d, MaxUnpool3d = thin("MaxUnpool2d", F.max_unpool2d, **_BACK), thin("MaxUnpool3d", F.max_unpool3d, **_BACK)
AdaptiveAvgPool1d = thin("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, output_size=REQUIRED)
AdaptiveAvgPool2d = thin("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, output_size=REQUIRED)
AdaptiveAvgPool3d = thin("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, output_size=REQUIRED)
AdaptiveMaxPool1d = thin("AdaptiveMaxPool1d", F.adaptive_max_pool1d, output_size=REQUIRED, return_indices=False)
AdaptiveMaxPool2d = thin("AdaptiveMaxPool2d", F.adaptive_max_pool2d, output_size=REQUIRED, return_indices=False)
AdaptiveMaxPool3d = thin("AdaptiveMaxPool3d", F.adaptive_max_pool3d, output_size=REQUIRED, return_indices=False)
FractionalMaxPool2d = thin("FractionalMaxPool2d", F.fractional_max_pool2d, **_PART)
FractionalMaxPool3d = thin("FractionalMaxPool3d", F.fractional_max_pool3d, **_PART)

# --- pads ------------------------------------------------------------------------------------------


def _pad(rank: int, mode: str) -> Callable[..., Tensor]:
    """A pad of the last axes; one number is all of them."""

    def padded(input: Tensor, padding: int | Sequence[int], value: float = 0.0) -> Tensor:
        pairs = (padding,) * (2 * rank) if isinstance(padding, int) else tuple(padding)
        return F.pad(input, pairs, mode, value)

    padded.__name__, padded.__doc__ = "pad", f"`Tensor.pad` of the last {rank} axes, mode {mode!r}."
    return padded


ConstantPad1d = thin("ConstantPad1d", _pad(1, "constant"), padding=REQUIRED, value=REQUIRED)
ConstantPad2d = thin("ConstantPad2d", _pad(2, "constant"), padding=REQUIRED, value=REQUIRED)
ConstantPad3d = thin("ConstantPad3d", _pad(3, "constant"), padding=REQUIRED, value=REQUIRED)
ZeroPad1d = thin("ZeroPad1d", _pad(1, "constant"), padding=REQUIRED)
ZeroPad2d = thin("ZeroPad2d", _pad(2, "constant"), padding=REQUIRED)
ZeroPad3d = thin("ZeroPad3d", _pad(3, "constant"), padding=REQUIRED)
ReflectionPad1d = thin("ReflectionPad1d", _pad(1, "reflect"), padding=REQUIRED)
ReflectionPad2d = thin("ReflectionPad2d", _pad(2, "reflect"), padding=REQUIRED)
ReflectionPad3d = thin("ReflectionPad3d", _pad(3, "reflect"), padding=REQUIRED)
ReplicationPad1d = thin("ReplicationPad1d", _pad(1, "replicate"), padding=REQUIRED)
ReplicationPad2d = thin("ReplicationPad2d", _pad(2, "replicate"), padding=REQUIRED)
ReplicationPad3d = thin("ReplicationPad3d", _pad(3, "replicate"), padding=REQUIRED)
CircularPad1d = thin("CircularPad1d", _pad(1, "circular"), padding=REQUIRED)
CircularPad2d = thin("CircularPad2d", _pad(2, "circular"), padding=REQUIRED)
CircularPad3d = thin("CircularPad3d", _pad(3, "circular"), padding=REQUIRED)

# --- elements in other places ----------------------------------------------------------------------------

Flatten = thin("Flatten", Tensor.flatten, start_dim=1, end_dim=-1)
PixelShuffle = thin("PixelShuffle", F.pixel_shuffle, upscale_factor=REQUIRED)
PixelUnshuffle = thin("PixelUnshuffle", F.pixel_unshuffle, downscale_factor=REQUIRED)
ChannelShuffle = thin("ChannelShuffle", F.channel_shuffle, groups=REQUIRED)
Unfold = thin("Unfold", F.unfold, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Fold = thin("Fold", F.fold, output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Upsample = thin(
    "Upsample", F.interpolate, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None,
)  # fmt: skip
UpsamplingNearest2d = thin("UpsamplingNearest2d", F.upsample_nearest, size=None, scale_factor=None)
UpsamplingBilinear2d = thin("UpsamplingBilinear2d", F.upsample_bilinear, size=None, scale_factor=None)
LocalResponseNorm = thin("LocalResponseNorm", F.local_response_norm, size=REQUIRED, alpha=1e-4, beta=0.75, k=1.0)


# --- with a name or a state of training ---------------------------------------------------------------------


def _unflattened(input: Tensor, dim: int, unflattened_size: Sequence[int]) -> Tensor:
    """`Tensor.unflatten`."""
    return input.unflatten(dim, unflattened_size)


def _in_training(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that leaves out at random in training only."""

    def drawn(input: Tensor, **fields: Any) -> Tensor:
        return function(input, training=Tensor.training(), **fields)

    drawn.__name__, drawn.__doc__ = function.__name__, (function.__doc__ or "").partition(">>>")[0]
    return drawn


Unflatten = thin("Unflatten", _unflattened, dim=REQUIRED, unflattened_size=REQUIRED)
Dropout = thin("Dropout", _in_training(F.dropout), p=0.5, inplace=False)
Dropout1d = thin("Dropout1d", _in_training(F.dropout1d), p=0.5, inplace=False)
Dropout2d = thin("Dropout2d", _in_training(F.dropout2d), p=0.5, inplace=False)
Dropout3d = thin("Dropout3d", _in_training(F.dropout3d), p=0.5, inplace=False)
AlphaDropout = thin("AlphaDropout", _in_training(F.alpha_dropout), p=0.5, inplace=False)
FeatureAlphaDropout = thin("FeatureAlphaDropout", _in_training(F.feature_alpha_dropout), p=0.5, inplace=False)
RReLU = thin("RReLU", _in_training(F.rrelu), lower=1 / 8, upper=1 / 3, inplace=False)


class Identity(Module):
    """The input; arguments are taken and forgotten.

    >>> Identity(7)(Tensor([1.0])).tolist()
    [1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x
