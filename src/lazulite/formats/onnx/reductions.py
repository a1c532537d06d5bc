"""Operators along axes: sums, extremes, norms, running sums, positions, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lazulite.formats.onnx.registry import onnx_op
from lazulite.formats.onnx.values import Ints
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

Axes = tuple[int, ...]


def _reduction(name: str, function: Callable[[Tensor, Axes, bool], Tensor]) -> None:
    """A reduction over the axes given as an attribute or, in later versions, as an input."""

    @onnx_op(name)
    def apply(x: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        chosen = axes if axes or noop_with_empty_axes else tuple(range(len(x.shape)))
        return function(x, chosen or (), bool(keepdims)).cast(x.dtype)


def _sum(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return x.sum(axes, keep, dtype=x.dtype) if axes else x


def _extreme(method: Callable[..., Tensor], limit: Callable[[Any], Any]) -> Callable[[Tensor, Axes, bool], Tensor]:
    """A maximum or minimum, which of nothing is the limit of the type."""

    def apply(x: Tensor, axes: Axes, keep: bool) -> Tensor:
        if not axes:
            return x
        if any(x.shape[axis] == 0 for axis in axes):
            shape = [1 if n in [a % len(x.shape) for a in axes] else size for n, size in enumerate(x.shape)]
            empty = Tensor.full(shape, limit(x.dtype), dtype=x.dtype, device=x.device)
            return empty if keep else empty.reshape([s for n, s in enumerate(shape) if n not in axes])
        return method(x, axes, keep)

    return apply


def _log_sum_exp(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    wide = x if x.dtype.is_float else x.cast(dtypes.float32)
    if any(x.shape[axis] == 0 for axis in axes):
        return wide.exp().sum(axes, keep).log()
    return wide.logsumexp(axes, keep) if axes else wide


_reduction("ReduceSum", _sum)
_reduction("ReduceMean", lambda x, axes, keep: x.mean(axes, keep) if axes else x)
_reduction("ReduceProd", lambda x, axes, keep: x.prod(axes, keep, dtype=x.dtype) if axes else x)
_reduction("ReduceMax", _extreme(Tensor.max, lambda dtype: dtype.min))
_reduction("ReduceMin", _extreme(Tensor.min, lambda dtype: dtype.max))
_reduction("ReduceL1", lambda x, axes, keep: _sum(x.abs(), axes, keep))
_reduction("ReduceL2", lambda x, axes, keep: _sum(x * x, axes, keep).sqrt())
_reduction("ReduceSumSquare", lambda x, axes, keep: _sum(x * x, axes, keep))
_reduction("ReduceLogSum", lambda x, axes, keep: _sum(x, axes, keep).log())
_reduction("ReduceLogSumExp", _log_sum_exp)


def _position(name: str, method: Callable[..., Tensor]) -> None:
    @onnx_op(name)
    def apply(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
        if not select_last_index:
            return method(x, axis, bool(keepdims)).cast(dtypes.int64)
        last = x.shape[axis] - 1
        return (last - method(x.flip(axis), axis, bool(keepdims))).cast(dtypes.int64)


_position("ArgMax", Tensor.argmax)
_position("ArgMin", Tensor.argmin)


def _running(name: str, method: Callable[[Tensor, int], Tensor], start: int) -> None:
    @onnx_op(name)
    def apply(x: Tensor, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        """With `exclusive` each element is left out of its own result."""
        along = axis[0] % len(x.shape)
        ordered = x.flip(along) if reverse else x
        if exclusive:
            around = [(1, -1) if n == along else (0, 0) for n in range(len(x.shape))]
            ordered = ordered.pad(around, value=start)
        total = method(ordered, along).cast(x.dtype)
        return total.flip(along) if reverse else total


_running("CumSum", Tensor.cumsum, 0)
_running("CumProd", Tensor.cumprod, 1)


@onnx_op("TopK")
def top_k(x: Tensor, k: Ints, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    values, places = x.topk(k[0], axis, bool(largest))
    return values, places.cast(dtypes.int64)


@onnx_op("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Zeros stay zeros."""
    norm = (x.abs() if p == 1 else x * x).sum(axis, keepdim=True)
    norm = norm if p == 1 else norm.sqrt()
    return norm.eq(0).where(0, x / norm.eq(0).where(1, norm)).cast(x.dtype)


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_normalization(x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    over = tuple(axes or (0, 2, 3))
    centred = x - x.mean(over, keepdim=True)
    return centred / ((centred * centred).mean(over, keepdim=True).sqrt() + 1e-9)


@onnx_op("Einsum", since=12)
def einsum(*operands: Tensor, equation: str) -> Tensor:
    return Tensor.einsum(equation, *operands)


@onnx_op("Det", since=11)
def det(x: Tensor) -> Tensor:
    return x.det()
