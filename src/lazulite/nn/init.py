"""Initialisers: values written into a tensor, as torch.nn.init names them.  Each returns the tensor."""

from __future__ import annotations

import math

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.tensor import Tensor

_GAINS = {"relu": math.sqrt(2), "tanh": 5 / 3, "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity shrinks the deviation of what goes through it.

    >>> round(calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    return _GAINS.get(nonlinearity, 1.0)


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many elements a result is made of, and how many an element goes to."""
    if tensor.ndim < 2:
        raise ShapeError("init", f"a weight has two axes or more, got {tensor.shape}", about={"tensor": tensor})
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _written(tensor: Tensor, value: Tensor) -> Tensor:
    return tensor.assign(value.cast(tensor.dtype).to(tensor.device))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    >>> constant_(Tensor([1.0, 2.0]), 3.0).tolist()
    [3.0, 3.0]
    """
    return _written(tensor, tensor.full_like(val))


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """The unit matrix.

    >>> eye_(Tensor.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise ShapeError("eye_", f"a matrix is needed, got {tensor.shape}", about={"tensor": tensor})
    return _written(tensor, Tensor.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Evenly between a and b."""
    return _written(tensor, Tensor.uniform(*tensor.shape, low=a, high=b))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """From the normal distribution."""
    return _written(tensor, Tensor.normal(*tensor.shape, mean=mean, std=std))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """From the part of the normal distribution between a and b.

    >>> trunc_normal_(Tensor.zeros(100)).abs().max().item() <= 2
    True
    """
    low, high = [math.erf((end - mean) / std / math.sqrt(2)) for end in (a, b)]
    drawn = Tensor.uniform(*tensor.shape, low=low, high=high).erfinv() * (std * math.sqrt(2)) + mean
    return _written(tensor, drawn.clip(a, b))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Evenly, so that variance is kept there and back on the average (Glorot and Bengio)."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normally, so that variance is kept there and back on the average (Glorot and Bengio)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError("init", f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Evenly, so that variance is kept through the nonlinearity (He et al.)."""
    bound = math.sqrt(3) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normally, so that variance is kept through the nonlinearity (He et al.)."""
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity))


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Rows or columns orthonormal, times the gain (Saxe et al.); further axes count as columns.

    >>> w = orthogonal_(Tensor.zeros(2, 2)); w.matmul(w.T).round().abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _fans(tensor)
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    q, r = Tensor.randn(max(rows, columns), min(rows, columns)).qr()
    q = q * (r.diagonal() < 0).where(-1.0, 1.0)
    return _written(tensor, (q if rows >= columns else q.transpose()).reshape(tensor.shape) * gain)
