"""Losses over classes along axis 1."""

from __future__ import annotations

from typing import Any

from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.tensor.tensor import Tensor


@onnx_op("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    logs: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    return logs.nll_loss(target, weight, ignore_index, reduction)


@onnx_op("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, ignore_index: int | None = None,
    reduction: str = "mean", call: Call,
) -> Any:  # fmt: skip
    """The loss, and the logarithms of the probabilities."""
    logs = scores.log_softmax(1)
    loss = logs.nll_loss(labels, weights, ignore_index, reduction)
    return (loss, logs) if call.outputs > 1 else loss
