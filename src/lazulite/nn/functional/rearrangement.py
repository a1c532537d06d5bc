"""Elements moved and picked as torch.nn.functional calls it: pads, patches, channels, embeddings, one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.base.errors import ArgumentError, DTypeError, ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.patches import added_columns, window_columns
from lazulite.tensor.products import each_axis
from lazulite.tensor.tensor import Tensor

Sizes = int | Sequence[int]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`Tensor.pad`: "constant", "reflect", "replicate" or "circular"; pairs for the last axes, the last axis first.

    >>> pad(Tensor([[1, 2, 3]]), (1, 1), "reflect").tolist()
    [[2, 1, 2, 3, 2]]
    """
    return input.pad(tuple(pad), mode, 0 if value is None else value)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(.., C * r * r, H, W) as (.., C, H * r, W * r) (Shi et al.).

    >>> pixel_shuffle(Tensor([[[1]], [[2]], [[3]], [[4]]]), 2).tolist()
    [[[1, 2], [3, 4]]]
    """
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise ShapeError("pixel_shuffle", f"{r} x {r} does not divide the channels of {input.shape}")
    apart = input.unflatten(-3, (input.shape[-3] // (r * r), r, r))
    return _last_five(apart, (0, 3, 1, 4, 2)).flatten(-2, -1).flatten(-3, -2)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(.., C, H * r, W * r) as (.., C * r * r, H, W): the way back from `pixel_shuffle`.

    >>> pixel_unshuffle(Tensor([[[1, 2], [3, 4]]]), 2).flatten().tolist()
    [1, 2, 3, 4]
    """
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-1] % r or input.shape[-2] % r:
        raise ShapeError("pixel_unshuffle", f"{r} does not divide the last axes of {input.shape}")
    apart = input.unflatten(-1, (input.shape[-1] // r, r)).unflatten(-3, (input.shape[-2] // r, r))
    return _last_five(apart, (0, 2, 4, 1, 3)).flatten(-5, -3)


def _last_five(x: Tensor, order: tuple[int, ...]) -> Tensor:
    lead = x.ndim - 5
    return x.permute((*range(lead), *[lead + axis for axis in order]))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels (axis 1) read across the groups (Zhang et al.).

    >>> channel_shuffle(Tensor([[1, 2, 3, 4]]), 2).tolist()
    [[1, 3, 2, 4]]
    """
    if input.ndim < 2 or groups < 1 or input.shape[1] % groups:
        raise ShapeError("channel_shuffle", f"{groups} groups do not divide the channels of {input.shape}")
    return input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


native_channel_shuffle = channel_shuffle


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The windows of (N, C, H, W) as columns (N, C * window, windows).

    >>> unfold(Tensor([[[[1, 2], [3, 4]]]]), (1, 2)).tolist()
    [[[1, 3], [2, 4]]]
    """
    kernel, gaps, margins, steps = [each_axis("unfold", given, 2) for given in (kernel_size, dilation, padding, stride)]
    batch = input if input.ndim == 4 else input.unsqueeze(0)
    columns = window_columns(batch, kernel, gaps, margins, steps)
    return columns if batch is input else columns.squeeze(0)


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Columns added up where they came from: the gradient of `unfold` as a function.

    >>> fold(Tensor([[[1.0, 3.0], [2.0, 4.0]]]), (2, 2), (1, 2)).tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    kernel, gaps, margins, steps, sizes = [
        each_axis("fold", given, 2) for given in (kernel_size, dilation, padding, stride, output_size)
    ]
    batch = input if input.ndim == 3 else input.unsqueeze(0)
    image = added_columns(batch, sizes, kernel, gaps, margins, steps)
    return image if batch is input else image.squeeze(0)


# --- picking rows --------------------------------------------------------------------------------


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """`Tensor.one_hot`; -1 takes as many classes as there are, which is looked up now.

    >>> one_hot(Tensor([0, 2])).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    if num_classes != -1:
        return tensor.one_hot(num_classes)
    if not tensor.dtype.is_int:
        raise DTypeError("one_hot", f"class numbers are integers, got {tensor.dtype.name}", about={"classes": tensor})
    return tensor.one_hot(int(tensor.max().item()) + 1)


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """A row of the weight for each number.

    The row `padding_idx` gets no gradient.  With `max_norm` the rows that are used are first scaled down to that
    norm, in the weight itself.  `scale_grad_by_freq` divides a row's gradient by how often it is used.  Gradients
    are never sparse.

    >>> embedding(Tensor([1, 0]), Tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    rows = weight[input]
    if padding_idx is not None:
        row = padding_idx % weight.shape[0]
        rows = input.eq(row).unsqueeze(-1).where(weight.detach()[input], rows)
    if scale_grad_by_freq:
        share = (1 / _uses(weight, input).cast(weight.dtype))[input].unsqueeze(-1)
        rows = rows * share + (rows * (1 - share)).detach()
    return rows


def _uses(weight: Tensor, numbers: Tensor) -> Tensor:
    """How often each row of the weight is named."""
    ones = Tensor.ones(numbers.numel(), dtype=dtypes.int32, device=weight.device)
    nothing = Tensor.zeros(weight.shape[0], dtype=dtypes.int32, device=weight.device)
    return nothing.scatter_reduce(0, numbers.flatten(), ones, "sum")


def _limit_rows(weight: Tensor, numbers: Tensor, max_norm: float, norm_type: float) -> None:
    value = weight.detach()
    norm = (value.abs() ** norm_type).sum(-1, keepdim=True) ** (1 / norm_type)
    large = (norm > max_norm) & (_uses(weight, numbers) > 0).unsqueeze(-1)
    weight.assign(large.where(value * (max_norm / (norm + 1e-7)), value))


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sum, mean or maximum of the rows of each bag; zeros for an empty one.

    Bags are the rows of a matrix of numbers, or parts of a vector that begin at `offsets`.  The number
    `padding_idx` counts nothing.

    >>> embedding_bag(Tensor([0, 1, 1]), Tensor([[1.0], [2.0]]), Tensor([0, 2]), mode="sum").tolist()
    [[3.0], [2.0]]
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError("embedding_bag", f"mode is 'sum', 'mean' or 'max', not {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError("embedding_bag", "per_sample_weights need mode 'sum'")
    if input.ndim != (2 if offsets is None else 1):
        raise ShapeError("embedding_bag", "a vector of numbers needs offsets, a matrix of them none")
    if weight.ndim != 2 or (offsets is not None and offsets.ndim != 1):
        raise ShapeError(
            "embedding_bag", "the weight is a matrix, and offsets are a vector",
            about={"weight": weight} if offsets is None else {"weight": weight, "offsets": offsets},
        )  # fmt: skip
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    counted = input.eq(input) if padding_idx is None else input.ne(padding_idx % weight.shape[0])
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if offsets is None:
        count, bag = input.shape[0], Tensor.arange(input.shape[0], device=input.device).unsqueeze(1).expand(input.shape)
    else:
        count, bag = offsets.shape[0] - include_last_offset, _bags(input, offsets[: offsets.shape[0]])
    return _of_bags(rows.reshape((-1, weight.shape[1])), counted.flatten(), bag.flatten(), count, mode)


def _bags(input: Tensor, offsets: Tensor) -> Tensor:
    """The number of the bag that each element of a vector lies in."""
    begun = Tensor.zeros(input.shape[0] + 1, dtype=dtypes.int32, device=input.device)
    ones = Tensor.ones(offsets.shape[0], dtype=dtypes.int32, device=input.device)
    return begun.scatter_reduce(0, offsets, ones, "sum").cumsum(0)[: input.shape[0]] - 1


def _of_bags(rows: Tensor, counted: Tensor, bag: Tensor, count: int, mode: str) -> Tensor:
    into = Tensor.zeros(count, rows.shape[1], dtype=rows.dtype, device=rows.device)
    places = counted.where(bag, count).unsqueeze(1)  # what does not count goes outside, which drops it
    sizes = into[:, :1].scatter_reduce(0, places, counted.unsqueeze(1).cast(rows.dtype), "sum")
    places = places.expand(rows.shape)
    if mode == "max":
        return into.scatter_reduce(0, places, rows, "amax", include_self=False)
    total = into.scatter_reduce(0, places, rows, "sum")
    return total if mode == "sum" else total / sizes.maximum(1)
