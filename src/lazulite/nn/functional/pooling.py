"""Pools as torch.nn.functional calls them, over the last one, two or three axes.

Those whose windows depend on the output size (adaptive, fractional) pick the elements of all windows and reduce
them; the others are Tensor methods.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.create import shape_of
from lazulite.tensor.products import each_axis
from lazulite.tensor.tensor import Tensor

Sizes = int | Sequence[int]


def _with_indices(pool: Callable[..., Any]) -> Callable[..., Any]:
    """A pool that always gives the places, too, by torch's name for it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return pool(*args, **kwargs, return_indices=True)

    signature = inspect.signature(pool)
    others = [parameter for name, parameter in signature.parameters.items() if name != "return_indices"]
    call.__name__ = call.__qualname__ = f"{pool.__name__}_with_indices"
    call.__doc__ = f"`{pool.__name__}` with `return_indices`: (maxima, places)."
    vars(call)["__signature__"] = signature.replace(parameters=others)
    return call


def _max_pool(
    rank: int, input: Tensor, kernel_size: Sizes, stride: Sizes | None = None,
    padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    kernel = each_axis("max_pool", kernel_size, rank)
    _check_padding("max_pool", kernel, each_axis("max_pool", padding, rank))
    return input.max_pool2d(kernel, stride or None, dilation, padding, ceil_mode, return_indices)


def _check_padding(function: str, kernel: Sequence[int], padding: Sequence[int]) -> None:
    """A window must hold an element: padding is at most half of it."""
    if any(margin < 0 or 2 * margin > size for size, margin in zip(kernel, padding, strict=True)):
        raise ArgumentError(function, f"padding is from 0 to half of the kernel {tuple(kernel)}, got {tuple(padding)}")


def max_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """`Tensor.max_pool2d` over the last axis.

    >>> max_pool1d(Tensor([[1, 3, 2, 4]]), 2).tolist()
    [[3, 4]]
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """`Tensor.max_pool2d` over the last two axes."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """`Tensor.max_pool2d` over the last three axes."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


max_pool1d_with_indices = _with_indices(max_pool1d)
max_pool2d_with_indices = _with_indices(max_pool2d)
max_pool3d_with_indices = _with_indices(max_pool3d)


def _max_unpool(
    rank: int, input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes,
    output_size: Sequence[int] | None,
) -> Tensor:  # fmt: skip
    kernel = each_axis("max_unpool", kernel_size, rank)
    return input.max_unpool2d(indices, kernel, stride or None, 1, padding, output_size)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """`Tensor.max_unpool2d` over the last axis.

    >>> max_unpool1d(Tensor([[5]]), Tensor([[1]]), 2).tolist()
    [[0, 5]]
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """`Tensor.max_unpool2d` over the last two axes."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """`Tensor.max_unpool2d` over the last three axes."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _avg_pool(
    rank: int, input: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    kernel = each_axis("avg_pool", kernel_size, rank)
    _check_padding("avg_pool", kernel, each_axis("avg_pool", padding, rank))
    return input.avg_pool2d(kernel, stride or None, 1, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """`Tensor.avg_pool2d` over the last axis.

    >>> avg_pool1d(Tensor([[1.0, 3.0, 2.0, 4.0]]), 2).tolist()
    [[2.0, 3.0]]
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """`Tensor.avg_pool2d` over the last two axes."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """`Tensor.avg_pool2d` over the last three axes."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None, ceil_mode: bool
) -> Tensor:
    kernel = each_axis("lp_pool", kernel_size, rank)
    mean = _avg_pool(rank, input.pow(norm_type), kernel, stride, 0, ceil_mode, True)
    return (mean * math.prod(kernel)).pow(1 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of the last axis: (sum x^p)^(1/p), without absolute values, as in torch.

    >>> lp_pool1d(Tensor([[3.0, 4.0]]), 2, 2).tolist()
    [[5.0]]
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of the last two axes."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of the last three axes."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# --- windows that follow from the output size --------------------------------------------------------


def _targets(function: str, input: Tensor, output_size: Any, rank: int) -> tuple[int, ...]:
    """The new sizes; None keeps one."""
    if input.ndim < rank:
        raise ShapeError(function, f"{input.shape} has fewer than {rank} axes", about={"input": input})
    given = (None,) * rank if output_size is None else each_axis(function, output_size, rank)
    return shape_of(
        function, [old if new is None else new for old, new in zip(input.shape[-rank:], given, strict=True)]
    )


def _bounds(old: int, new: int) -> list[tuple[int, int]]:
    """Where the windows that cut an axis into `new` almost equal parts begin and end."""
    return [(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]


def _avg_adaptive(rank: int, input: Tensor, output_size: Any) -> Tensor:
    sizes = _targets("adaptive_avg_pool", input, output_size, rank)
    x = input
    for axis, new in zip(range(-rank, 0), sizes, strict=True):
        x = _mean_of_parts(x, x.ndim + axis, new)
    return x


def _mean_of_parts(x: Tensor, axis: int, new: int) -> Tensor:
    old = x.shape[axis]
    if new and old % new == 0:
        return x.unflatten(axis, (new, old // new)).mean(axis + 1)
    begins, widths, wide = _parts(old, new)
    windows = x.index_select(axis, _places(x, begins, widths, wide).flatten()).unflatten(axis, (new, wide))
    inside = _inside(x, widths, wide).reshape((new, wide, *(1,) * (x.ndim - axis - 1)))
    count = Tensor(widths, device=x.device).reshape((new, *(1,) * (x.ndim - axis - 1)))
    return inside.where(windows, 0).sum(axis + 1) / count.cast(x.dtype)


def _parts(old: int, new: int) -> tuple[list[int], list[int], int]:
    """Where the windows begin, their widths, and the largest width."""
    bounds = _bounds(old, new)
    widths = [end - begin for begin, end in bounds]
    return [begin for begin, _ in bounds], widths, max(widths, default=1)


def _places(x: Tensor, begins: Sequence[int], widths: Sequence[int], wide: int) -> Tensor:
    """The places of the elements of each window; behind a narrow one its last place again."""
    rows = [[begin + min(k, width - 1) for k in range(wide)] for begin, width in zip(begins, widths, strict=True)]
    return Tensor(rows, device=x.device) if rows else Tensor.zeros(0, wide, dtype="int32", device=x.device)


def _inside(x: Tensor, widths: Sequence[int], wide: int) -> Tensor:
    return Tensor([[k < width for k in range(wide)] for width in widths], device=x.device)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many parts of the last axis as asked for.

    >>> adaptive_avg_pool1d(Tensor([[1.0, 2.0, 3.0]]), 2).tolist()
    [[1.5, 2.5]]
    """
    return _avg_adaptive(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many parts of the last two axes as asked for; None keeps a size."""
    return _avg_adaptive(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many parts of the last three axes as asked for; None keeps a size."""
    return _avg_adaptive(3, input, output_size)


def _max_adaptive(rank: int, input: Tensor, output_size: Any, return_indices: bool = False,
                  ) -> Any:  # fmt: skip
    sizes = _targets("adaptive_max_pool", input, output_size, rank)
    places = []
    for old, new in zip(input.shape[-rank:], sizes, strict=True):
        places.append(_places(input, *_parts(old, new)))
    return _max_at(input, places, return_indices)


def _max_at(input: Tensor, places: Sequence[Tensor], with_indices: bool) -> Any:
    """The maximum over the product of places, for each axis (.., windows, elements) behind no or the leading axes."""
    rank, lead = len(places), input.shape[: input.ndim - len(places)]
    flat: Any = 0
    for axis, each in enumerate(places):
        new, wide = each.shape[-2:]
        spread = (*(1,) * axis, new, *(1,) * (rank - 1), wide, *(1,) * (rank - axis - 1))
        flat = flat * input.shape[len(lead) + axis] + each.reshape((*each.shape[:-2], *spread))
    shared, chosen = flat.ndim == 2 * rank, flat
    out, window = chosen.shape[-2 * rank : -rank], chosen.shape[-rank:]
    chosen = chosen.reshape((*chosen.shape[: -2 * rank], math.prod(out) * math.prod(window)))
    rows = input.flatten(len(lead))
    found = rows.index_select(len(lead), chosen) if shared else rows.gather(len(lead), chosen)
    found = found.reshape((*lead, *out, math.prod(window)))
    maxima = found.max(-1)
    if not with_indices:
        return maxima
    number = found.argmax(-1, keepdim=True)
    numbers = chosen.reshape((*chosen.shape[:-1], *out, math.prod(window))).expand(found.shape)
    return maxima, numbers.gather(-1, number).squeeze(-1)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of as many parts of the last axis as asked for; with `return_indices` their places, too.

    >>> adaptive_max_pool1d(Tensor([[1.0, 2.0, 3.0]]), 2).tolist()
    [[2.0, 3.0]]
    """
    return _max_adaptive(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of as many parts of the last two axes as asked for; None keeps a size."""
    return _max_adaptive(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of as many parts of the last three axes as asked for; None keeps a size."""
    return _max_adaptive(3, input, output_size, return_indices)


adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d)


def _fractional(
    rank: int, input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    function = f"fractional_max_pool{rank}d"
    if (output_size is None) is (output_ratio is None):
        raise ArgumentError(function, "give one of output_size and output_ratio")
    kernel, old = each_axis(function, kernel_size, rank), input.shape[-rank:]
    if output_size is None:
        ratios = (output_ratio,) * rank if isinstance(output_ratio, int | float) else output_ratio
        output_size = [int(size * ratio) for size, ratio in zip(old, ratios or (), strict=True)]
    sizes = each_axis(function, output_size, rank)
    batched = input if input.ndim == rank + 2 else input.unsqueeze(0)
    samples = _random_samples
    if samples is None:
        samples = Tensor.rand(*batched.shape[:2], rank, dtype=input.dtype, device=input.device)
    places = []
    for axis, (size, new, wide) in enumerate(zip(old, sizes, kernel, strict=True)):
        if not 1 <= new or new + wide - 1 > size:
            raise ShapeError(function, f"{new} windows of size {wide} do not fit an axis of size {size}")
        # torch draws for the last axis of an image first, and for the first axis of a volume
        draw = samples[..., axis if rank == 3 else rank - 1 - axis].reshape((*batched.shape[:2], 1))
        begin = _fractional_begins(draw, size, new, wide)
        places.append(begin.unsqueeze(-1) + Tensor.arange(wide, device=input.device))
    found = _max_at(batched, places, return_indices)
    if batched is input:
        return found
    return tuple([part.squeeze(0) for part in found]) if isinstance(found, tuple) else found.squeeze(0)


def _fractional_begins(draw: Tensor, size: int, new: int, wide: int) -> Tensor:
    """Where the windows begin (Graham): steps of a fraction, cut to integers, the last window at the end."""
    steps = Tensor.arange(new, device=draw.device)
    if new == 1:
        return steps + (size - wide) + (draw * 0).int()
    alpha = (size - wide) / (new - 1)
    begins = ((steps.cast(draw.dtype) + draw) * alpha).int() - (draw * alpha).int()
    return steps.eq(new - 1).where(size - wide, begins)


def fractional_max_pool2d(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The maxima of windows at steps of a random fraction (Graham), as many as `output_size` or `output_ratio` says.

    >>> fractional_max_pool2d(Tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2, output_size=1).tolist()
    [[[4.0]]]
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """`fractional_max_pool2d` over three axes."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


fractional_max_pool2d_with_indices = _with_indices(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _with_indices(fractional_max_pool3d)
