"""Rows of module classes: both sides are made with the same arguments and get the same parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from lazulite import Tensor, nn
from lazulite.nn.state import load_state_dict
from surface.rows import Row, Sample, claim

_random = np.random.default_rng(17)
Form = tuple[tuple[Any, ...], dict[str, Any]]


def floats(*shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.standard_normal(shape).astype(np.float32))


def classes(high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.integers(0, high, shape))


def form(*args: Any, **kwargs: Any) -> Form:
    return args, kwargs


def state_of(make: Callable[[], Any]) -> dict[str, torch.Tensor]:
    """The parameters of a module of torch that is made now, without what it says about its speed."""
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {key: value.detach() for key, value in make().state_dict().items()}


def module(name: str, forms: Sequence[Form], inputs: Sequence[Any], **options: Any) -> Row:
    """Each form with each input (a tensor, or a tuple of several)."""

    def samples() -> list[Sample]:
        found = []
        for args, kwargs in forms:
            state = state_of(lambda a=args, k=kwargs: getattr(torch.nn, name)(*a, **k))
            for given in inputs:
                rest = given if isinstance(given, tuple) else (given,)
                found.append(Sample((list(args), dict(kwargs), state, *rest)))
        return found

    def own(args: list[Any], kwargs: dict[str, Any], state: dict[str, Any], *rest: Any) -> Any:
        made = getattr(nn, name)(*args, **kwargs)
        if state:
            load_state_dict(made, state)
        return made(*rest)

    def theirs(args: list[Any], kwargs: dict[str, Any], state: dict[str, Any], *rest: Any) -> Any:
        made = getattr(torch.nn, name)(*args, **kwargs).eval()
        made.load_state_dict(state)
        return made(*rest)

    return Row("nn", name, samples, own, theirs, relative=5e-5, alone=True, **options)


PLAIN = [form()]
_ROWS = [floats(3, 4), floats(2, 3, 4), floats(5, 2), floats(1, 6), floats(4, 3, 2)]
ACTIVATIONS = [
    *[
        module(name, PLAIN, _ROWS)
        for name in (
            "GELU Hardswish Hardsigmoid Hardtanh LogSigmoid Mish ReLU ReLU6 SELU SiLU Sigmoid Softsign Tanh Tanhshrink"
            " RReLU Softplus Identity Dropout AlphaDropout"
        ).split()
    ],
    *[module(name, [form(), form(0.7)], _ROWS[:3]) for name in "CELU ELU Hardshrink Softshrink LeakyReLU".split()],
    module("GLU", [form(), form(0)], [floats(4, 6), floats(2, 2, 4), floats(6, 2)]),
    module("Threshold", [form(0.1, 7.0)], _ROWS),
    module("PReLU", [form(), form(3)], [floats(2, 3), floats(1, 3, 4), floats(4, 3)]),
    *[
        module(name, [form(1), form(-1)], [floats(3, 4), floats(2, 3, 4), floats(1, 2)])
        for name in ("Softmax", "Softmin", "LogSoftmax")
    ],
    module(
        "Softmax2d",
        PLAIN,
        [floats(2, 3, 4, 2), floats(1, 2, 3, 3), floats(3, 2, 2), floats(2, 2, 1, 1), floats(4, 2, 2)],
    ),
    *[
        module(
            name,
            PLAIN,
            [floats(2, 3, *(2,) * rank), floats(1, 2, *(3,) * rank), *[floats(n, 4, *(2,) * rank) for n in (2, 3, 4)]],
        )
        for name, rank in (("Dropout1d", 1), ("Dropout2d", 2), ("Dropout3d", 3), ("FeatureAlphaDropout", 2))
    ],
]

_PAIRS = [(floats(4, 3), floats(4, 3)), (floats(2, 3), floats(2, 3)), (floats(1, 5), floats(1, 5))]
LOSSES = [
    module("HuberLoss", [form(), form("sum", 0.5)], _PAIRS),
    module("KLDivLoss", [form(), form(reduction="batchmean", log_target=True)], [(a, b.abs()) for a, b in _PAIRS]),
    module("SoftMarginLoss", [form(), form(reduction="sum")], [(a, torch.sign(b)) for a, b in _PAIRS], gradient=False),
    *[
        module(name, [form(), form(reduction="none")], [(floats(n, 3, 2, 2), classes(3, n, 2, 2)) for n in (1, 2, 3)])
        for name in ("NLLLoss2d", "NLLLoss")
    ],
    module(
        "CTCLoss",
        [form(), form(0, "sum"), form(reduction="none")],
        [
            (floats(5, 2, 3), torch.tensor([[1, 2], [2, 2]]), torch.tensor([5, 4]), torch.tensor([2, 1])),
            (floats(4, 2, 3), torch.tensor([[1], [2]]), torch.tensor([4, 3]), torch.tensor([1, 1])),
        ],
        gradient=False,
    ),
    module("CosineSimilarity", [form(), form(0)], _PAIRS),
    module("PairwiseDistance", [form(), form(1.0)], _PAIRS),
    *[
        module(name, [form(), form(margin=0.3)], [(*pair, floats(*pair[0].shape)) for pair in _PAIRS])
        for name in ("TripletMarginLoss", "TripletMarginWithDistanceLoss")
    ],
]


def spatial(rank: int, size: int = 6) -> list[torch.Tensor]:
    return [floats(2, 4, *(size,) * rank), floats(1, 4, *range(size, size + rank)), floats(4, *(size,) * rank)]


def each_rank(names: str, *forms: Form, **options: Any) -> list[Row]:
    """A class for one, two and three axes."""
    return [module(f"{name}{rank}d", forms, spatial(rank), **options) for name in names.split() for rank in (1, 2, 3)]


POOLS = [
    *each_rank("AvgPool", form(2), form(3, 2, 1)),
    *each_rank("MaxPool", form(2), form(3, 2, 1, ceil_mode=True)),
    *each_rank("AdaptiveAvgPool AdaptiveMaxPool", form(3), form(4)),
    *[module(f"LPPool{rank}d", [form(2, 2), form(4, 3, stride=2)], spatial(rank)) for rank in (1, 2, 3)],
    *[
        module(
            f"MaxUnpool{rank}d",
            [form(2)],
            [
                getattr(torch.nn.functional, f"max_pool{rank}d")(floats(1, 2, *(n,) * rank), 2, return_indices=True)
                for n in (2, 4, 6, 8, 10)
            ],
        )
        for rank in (1, 2, 3)
    ],
    *[
        module(
            f"FractionalMaxPool{rank}d",
            [form(2, output_size=n, _random_samples=torch.rand(2, 4, rank)) for n in (2, 3, 4, 5, 1)],
            [floats(2, 4, *(7,) * rank)],
            gradient=False,
        )
        for rank in (2, 3)
    ],
]
PADS = [
    *each_rank("ZeroPad ReflectionPad ReplicationPad CircularPad", form(1), form(2)),
    *each_rank("ConstantPad", form(1, 0.5), form(2, -1.0)),
]

PLACES = [
    module("Flatten", [form(), form(0, 1)], [floats(2, 3, 4), floats(1, 2), floats(2, 2, 2, 2)]),
    module(
        "Unflatten", [form(1, (2, 2))], [floats(2, 4), floats(1, 4, 3), floats(3, 4), floats(2, 4, 1), floats(5, 4)]
    ),
    module("PixelShuffle", [form(2)], [floats(n, 8, 2, 3) for n in (1, 2, 3, 4)] + [floats(4, 1, 1)]),
    module("PixelUnshuffle", [form(2)], [floats(n, 3, 4, 2) for n in (1, 2, 3, 4)] + [floats(1, 2, 2)]),
    module("ChannelShuffle", [form(2)], [floats(n, 4, 2, 3) for n in (1, 2, 3, 4, 5)]),
    module("Unfold", [form(2), form((2, 3), 1, 1, 2)], [floats(n, 2, 5, 6) for n in (1, 2, 3)]),
    module("Fold", [form((4, 5), 2)], [floats(n, 8, 12) for n in (1, 2, 3, 4)] + [floats(8, 12)]),
    module(
        "Upsample",
        [form(5), form(scale_factor=2.0), form(7, mode="bilinear", align_corners=True)],
        [floats(2, 2, 3, 4), floats(1, 1, 2, 2)],
    ),
    *[
        module(name, [form(5), form(scale_factor=2)], [floats(n, 2, 3, 4) for n in (1, 2, 3)])
        for name in ("UpsamplingNearest2d", "UpsamplingBilinear2d")
    ],
    module(
        "LocalResponseNorm", [form(2), form(3, 0.1, 0.5, 2.0)], [floats(2, 5, 4), floats(1, 6, 2, 3), floats(2, 3, 2)]
    ),
]

LAYERS = [
    module("Linear", [form(3, 4), form(3, 2, bias=False)], [floats(5, 3), floats(3), floats(2, 2, 3)]),
    module("Bilinear", [form(3, 2, 4), form(3, 2, 1, bias=False)], [(floats(n, 3), floats(n, 2)) for n in (1, 2, 4)]),
    *each_rank(
        "Conv", form(4, 6, 3), form(4, 4, 2, 2, 1, groups=2), form(4, 2, 3, padding="same", padding_mode="circular")
    ),
    *each_rank("ConvTranspose", form(4, 6, 3), form(4, 4, 2, 2, 1, output_padding=1, groups=2)),
    module("Embedding", [form(5, 3), form(5, 2, padding_idx=1)], [classes(5, 4), classes(5, 2, 3), classes(5, 1)]),
    module(
        "EmbeddingBag",
        [form(5, 3), form(5, 3, mode="sum"), form(5, 2, mode="max")],
        [classes(5, 2, 4), classes(5, 3, 1)],
    ),
    *[
        module(
            f"BatchNorm{rank}d", [form(4), form(4, eps=0.1, affine=False), form(4, momentum=0.3)], spatial(rank, 3)[:2]
        )
        for rank in (1, 2, 3)
    ],
    *each_rank("InstanceNorm", form(4), form(4, affine=True), form(4, track_running_stats=True)),
    module("GroupNorm", [form(2, 4), form(4, 4, affine=False)], [floats(2, 4, 5), floats(2, 4, 3), floats(1, 4, 2, 2)]),
    module("LayerNorm", [form(4), form(4, elementwise_affine=False)], [floats(2, 4), floats(2, 3, 4), floats(1, 4)]),
    module("RMSNorm", [form(4, eps=1e-6), form(4, eps=0.1)], [floats(2, 4), floats(2, 3, 4), floats(1, 4)]),
]

_SEQUENCES = [floats(3, 2, 4), floats(2, 4), floats(1, 1, 4)]
RECURRENT = [
    *[
        module(
            name, [form(4, 3), form(4, 3, 2, bidirectional=True), form(4, 2, batch_first=True, bias=False)], _SEQUENCES
        )
        for name in ("RNN", "GRU", "LSTM")
    ],
    *[
        module(name, [form(4, 3), form(4, 2, bias=False)], [floats(2, 4), floats(1, 4), floats(4)])
        for name in ("RNNCell", "GRUCell", "LSTMCell")
    ],
]
_WIDE = [floats(3, 2, 4), floats(2, 1, 4)]
TRANSFORMERS = [
    module(
        "MultiheadAttention",
        [form(4, 2), form(4, 1, add_bias_kv=True, add_zero_attn=True), form(4, 4, batch_first=True)],
        [(x, x.clone(), x.clone()) for x in _WIDE],  # one tensor three times has one gradient in torch
    ),
    module(
        "TransformerEncoderLayer",
        [form(4, 2, 8), form(4, 1, 8, norm_first=True), form(4, 2, 6, activation="gelu", batch_first=True)],
        _WIDE,
    ),
    module(
        "TransformerDecoderLayer",
        [form(4, 2, 8), form(4, 1, 8, norm_first=True), form(4, 2, 6, bias=False)],
        [(x, floats(5, x.shape[1], 4)) for x in _WIDE],
    ),
    module(
        "Transformer",
        [form(4, 2, 1, 1, 8), form(4, 1, 2, 1, 6), form(4, 2, 1, 2, 4, norm_first=True)],
        [(x, x + 1) for x in _WIDE],
    ),
]


def stacked(name: str, layer: str) -> Row:
    """Several layers of a kind; the layer is made anew on both sides."""

    def built(space: Any, count: int, end: bool) -> Any:
        return getattr(space, name)(getattr(space, layer)(4, 2, 6), count, space.LayerNorm(4) if end else None)

    samples = []
    for count, end in ((1, False), (2, True), (3, False)):
        state = state_of(lambda c=count, e=end: built(torch.nn, c, e))
        samples += [Sample((count, end, state, x, *([x + 1] if "Decoder" in name else []))) for x in _WIDE]

    def own(count: int, end: bool, state: dict[str, Any], *rest: Any) -> Any:
        made = built(nn, count, end)
        load_state_dict(made, state)
        return made(*rest)

    def theirs(count: int, end: bool, state: dict[str, Any], *rest: Any) -> Any:
        made = built(torch.nn, count, end).eval()
        made.load_state_dict(state)
        return made(*rest)

    return Row("nn", name, lambda: samples, own, theirs, relative=5e-5, alone=True)


def names(model: Any) -> list[str]:
    return list(model.state_dict())


_PARTS: Callable[..., list[Any]] = lambda: [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)]
CONTAINERS = [
    claim(
        "Sequential",
        lambda: names(nn.Sequential(*_PARTS())) == ["0.weight", "0.bias", "2.weight", "2.bias"],
        lambda: nn.Sequential(*_PARTS())(Tensor.ones(4, 2)).shape == (4, 1),
        lambda: len(nn.Sequential(*_PARTS())) == 3,
        lambda: names(nn.Sequential({"a": nn.Linear(1, 1)})) == ["a.weight", "a.bias"],
        lambda: len(nn.Sequential(*_PARTS())[:2]) == 2,
        space="nn",
    ),
    claim(
        "ModuleList",
        lambda: names(nn.ModuleList(_PARTS())) == ["0.weight", "0.bias", "2.weight", "2.bias"],
        lambda: len(nn.ModuleList(_PARTS()).append(nn.Tanh())) == 4,
        lambda: len(list(nn.ModuleList(_PARTS()))) == 3,
        lambda: isinstance(nn.ModuleList(_PARTS())[1], nn.ReLU),
        lambda: len(nn.ModuleList(_PARTS())[1:]) == 2,
        space="nn",
    ),
    claim(
        "ModuleDict",
        lambda: names(nn.ModuleDict({"a": nn.Linear(1, 1)})) == ["a.weight", "a.bias"],
        lambda: "a" in nn.ModuleDict({"a": nn.ReLU()}),
        lambda: list(nn.ModuleDict({"a": nn.ReLU()})) == ["a"],
        lambda: len(nn.ModuleDict([("a", nn.ReLU()), ("b", nn.Tanh())])) == 2,
        lambda: isinstance(nn.ModuleDict({"a": nn.ReLU()})["a"], nn.ReLU),
        space="nn",
    ),
    claim(
        "ParameterList",
        lambda: names(nn.ParameterList([Tensor([1.0])])) == ["0"],
        lambda: len(nn.ParameterList([Tensor([1.0])]).parameters()) == 1,
        lambda: len(nn.ParameterList()) == 0,
        lambda: nn.ParameterList([Tensor([1.0])])[0].item() == 1.0,
        lambda: len(nn.ParameterList().append(Tensor([1.0]))) == 1,
        space="nn",
    ),
    claim(
        "ParameterDict",
        lambda: names(nn.ParameterDict({"a": Tensor([1.0])})) == ["a"],
        lambda: len(nn.ParameterDict({"a": Tensor([1.0])}).parameters()) == 1,
        lambda: len(nn.ParameterDict()) == 0,
        lambda: nn.ParameterDict({"a": Tensor([1.0])})["a"].item() == 1.0,
        lambda: "a" in nn.ParameterDict({"a": Tensor([1.0])}),
        space="nn",
    ),
    claim(
        "Module",
        lambda: nn.Sequential(nn.Dropout(1.0)).train()(Tensor.ones(3)).tolist() == [0.0] * 3,
        lambda: nn.Sequential(nn.Dropout(1.0)).train().eval()(Tensor.ones(3)).tolist() == [1.0] * 3,
        lambda: len(nn.Sequential(*_PARTS()).parameters()) == 4,
        lambda: "(0): " in repr(nn.Sequential(*_PARTS())),
        lambda: "13 elements, 13 of them learned" in nn.Sequential(*_PARTS()).summary(),
        space="nn",
    ),
]

ROWS = [
    *ACTIVATIONS,
    *LOSSES,
    *POOLS,
    *PADS,
    *PLACES,
    *LAYERS,
    *RECURRENT,
    *TRANSFORMERS,
    *CONTAINERS,
    stacked("TransformerEncoder", "TransformerEncoderLayer"),
    stacked("TransformerDecoder", "TransformerDecoderLayer"),
]
