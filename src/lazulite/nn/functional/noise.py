"""Elements or whole channels left out at random, as torch.nn.functional calls it.

`training` decides, not `Tensor.train()`; what stays keeps the expected sum (or, with alpha, mean and variance).
"""

from __future__ import annotations

from lazulite.base.errors import ArgumentError
from lazulite.nn.functional.activations import placed
from lazulite.tensor.tensor import Tensor

_SATURATED = -1.7580993408473766
"""What selu gives far below zero: -scale * alpha."""


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element zero with probability `p`, the others over 1 - p.

    >>> dropout(Tensor([1.0, 2.0]), 0.0).tolist(), dropout(Tensor([1.0]), 1.0).tolist()
    ([1.0, 2.0], [0.0])
    """
    with Tensor.train(training):
        return placed(input, input.dropout(p), inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) zero with probability `p`."""
    return _channels(input, 1, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, H, W) or (C, H, W) zero with probability `p`."""
    return _channels(input, 2, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) zero with probability `p`."""
    return _channels(input, 3, p, training, inplace)


def _channels(input: Tensor, spatial: int, p: float, training: bool, inplace: bool) -> Tensor:
    lead = max(input.ndim - spatial, 0)
    ones = Tensor.ones(*input.shape[:lead], *(1,) * (input.ndim - lead), dtype=input.dtype, device=input.device)
    with Tensor.train(training):
        return placed(input, input * ones.dropout(p) if training else input, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Each element set to what selu saturates at with probability `p`, mean and variance kept (Klambauer et al.).

    >>> alpha_dropout(Tensor([1.0]), 0.5).tolist()  # not in training
    [1.0]
    """
    return _saturated(input, input.shape, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels (axes 0 and 1)."""
    return _saturated(input, input.shape[:2] + (1,) * (input.ndim - 2), p, training, inplace)


def _saturated(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise ArgumentError("alpha_dropout", f"p is a probability, got {p}")
    if not training or p == 0:
        return placed(input, input, False)
    if p == 1:
        return placed(input, input * 0, inplace)
    kept = Tensor.rand(*shape, device=input.device) >= p
    scale = ((1 - p) * (1 + p * _SATURATED**2)) ** -0.5
    mixed = kept.where(input, _SATURATED) * scale - scale * _SATURATED * p
    return placed(input, mixed, inplace)
