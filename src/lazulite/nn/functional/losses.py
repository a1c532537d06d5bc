"""Losses as torch.nn.functional calls them.

`reduction` is "mean", "sum" or "none"; torch's older `size_average` and `reduce` are understood, too.  What
networks need most (cross entropies, negative log-likelihood) are Tensor methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.nn.functional.distance import pairwise_distance
from lazulite.tensor.tensor import Tensor


def _named(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """What torch's older two switches mean."""
    if size_average is None and reduce is None:
        return reduction
    return "none" if reduce is False else "sum" if size_average is False else "mean"


def reduced(
    loss: Tensor, reduction: str, size_average: bool | None = None, reduce: bool | None = None,
    weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean (over the sum of the weights, if any), the sum, or all of the elements."""
    reduction = _named(reduction, size_average, reduce)
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError("loss", f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    total = loss if weight is None else loss * weight
    if reduction == "none":
        return total
    if reduction == "sum":
        return total.sum()
    return total.mean() if weight is None else total.sum() / (weight + loss * 0).sum()


# --- differences -----------------------------------------------------------------------------------


def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(input - target)^2.

    >>> mse_loss(Tensor([1.0, 3.0]), Tensor([1.0, 1.0])).item()
    2.0
    """
    return reduced((input - target).square(), reduction, size_average, reduce, weight)


def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """|input - target|.

    >>> l1_loss(Tensor([1.0, 3.0]), Tensor([1.0, 1.0])).item()
    1.0
    """
    return reduced((input - target).abs(), reduction, size_average, reduce, weight)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference up to `delta`, linear beyond (Huber).

    >>> huber_loss(Tensor([3.0]), Tensor([0.0])).item()
    2.5
    """
    if delta <= 0:
        raise ArgumentError("huber_loss", f"delta is above zero, got {delta}")
    size = (input - target).abs()
    return reduced((size < delta).where(size * size * 0.5, (size - 0.5 * delta) * delta), reduction, weight=weight)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """`huber_loss` over beta: |difference| - beta / 2 beyond `beta`; `l1_loss` where beta is zero.

    >>> smooth_l1_loss(Tensor([3.0]), Tensor([0.0]), beta=2.0).item()
    2.0
    """
    if beta < 0:
        raise ArgumentError("smooth_l1_loss", f"beta is not below zero, got {beta}")
    size = (input - target).abs()
    loss = size if beta == 0 else (size < beta).where(size * size * (0.5 / beta), size - 0.5 * beta)
    return reduced(loss, reduction, size_average, reduce)


# --- likelihoods -----------------------------------------------------------------------------------


def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """target * (log target - input), where the input holds logarithms, and the target with `log_target`, too.

    With reduction "batchmean" the sum over the size of the first axis (Kullback and Leibler).

    >>> kl_div(Tensor([[-1.0]]), Tensor([[1.0]]), reduction="batchmean").item()
    1.0
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        positive = target > 0
        own = positive.where(target * positive.where(target, 1).log(), (target < 0).where(math.nan, 0.0))
        loss = own - target * input
    if reduction != "batchmean":
        return reduced(loss, reduction, size_average, reduce)
    return loss.sum() / (input.shape[0] if input.ndim else 1)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-(target * log(input) + (1 - target) * log(1 - input)), the logarithms not below -100, as in torch.

    >>> binary_cross_entropy(Tensor([1.0]), Tensor([0.0])).item()
    100.0
    """
    if input.shape != target.shape:
        raise ShapeError("binary_cross_entropy", f"input {input.shape} and target {target.shape} differ")
    own, other = input.log().maximum(-100), (1 - input).log().maximum(-100)
    loss = -(target * own + (1 - target) * other)
    return reduced(loss if weight is None else loss * weight, reduction, size_average, reduce)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`Tensor.binary_crossentropy_logits`: that of sigmoid(input), without overflow.

    >>> binary_cross_entropy_with_logits(Tensor([1000.0]), Tensor([1.0])).item()
    0.0
    """
    if input.shape != target.shape:
        raise ShapeError("binary_cross_entropy_with_logits", f"input {input.shape} and target {target.shape} differ")
    loss = input.binary_crossentropy_logits(target, "none", pos_weight)
    return reduced(loss if weight is None else loss * weight, reduction, size_average, reduce)


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`Tensor.nll_loss`: minus the log-probability of each class, classes along axis 1.

    >>> nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """
    return input.nll_loss(target, weight, ignore_index, _named(reduction, size_average, reduce))


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`Tensor.cross_entropy`: scores along axis 1 with class numbers, or with probabilities.

    >>> round(cross_entropy(Tensor([[0.0, 0.0]]), Tensor([1])).item(), 4)
    0.6931
    """
    named = _named(reduction, size_average, reduce)
    return input.cross_entropy(target, named, label_smoothing, weight, ignore_index)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """`cross_entropy` of `input @ linear_weight.T + linear_bias`; the scores are an intermediate like any other.

    torch's `options` say how it cuts the work into parts; here the compiler does.

    >>> round(linear_cross_entropy(Tensor([[1.0]]), Tensor([[0.0], [0.0]]), Tensor([1])).item(), 4)
    0.6931
    """
    scores = input.linear(linear_weight.transpose(), linear_bias)
    ignored = -100 if ignore_index is None else ignore_index
    rows = scores.reshape((-1, scores.shape[-1]))
    hard = target.ndim == scores.ndim - 1
    targets = target.flatten() if hard else target.reshape(rows.shape)
    loss = rows.cross_entropy(targets, reduction, label_smoothing, weight, ignored)
    return loss.reshape(scores.shape[:-1]) if reduction == "none" else loss


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of counts from a Poisson distribution; `full` adds Stirling's term above 1.

    >>> poisson_nll_loss(Tensor([0.0]), Tensor([3.0])).item()
    1.0
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        large = target > 1
        count = large.where(target, 1)
        term = count * count.log() - count + (count * (2 * math.pi)).log() * 0.5
        loss = loss + large.where(term, 0)
    return reduced(loss, reduction, size_average, reduce)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Minus the log-likelihood of a normal distribution; a variance below `eps` counts as `eps`, its slope stays.

    >>> gaussian_nll_loss(Tensor([0.0]), Tensor([2.0]), Tensor([1.0])).item()
    2.0
    """
    given = var if isinstance(var, Tensor) else input.full_like(var)
    if given.ndim == input.ndim - 1 and given.shape == input.shape[:-1]:
        given = given.unsqueeze(-1)
    limited = given + (given.maximum(eps) - given).detach()
    loss = (limited.log() + (input - target).square() / limited) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log-probability of label sequences over all alignments (Graves et al.): `nn.functional.ctc`.

    `log_probs` is (time, batch, classes) or (time, classes); targets are rows, or one after another in a vector.

    >>> chances = Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> ctc_loss(chances, Tensor([[1]]), Tensor([2]), Tensor([1]), reduction="sum").exp().item()
    1.3333333730697632
    """
    from lazulite.nn.functional.ctc import ctc

    return ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


# --- margins ---------------------------------------------------------------------------------------


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin - target * (input1 - input2)), with a target of 1 or -1.

    >>> margin_ranking_loss(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """
    return reduced((margin - target * (input1 - input2)).relu(), reduction, size_average, reduce)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The input where the target is 1, max(0, margin - input) where it is -1.

    >>> hinge_embedding_loss(Tensor([3.0, 0.25]), Tensor([1, -1]), reduction="none").tolist()
    [3.0, 0.75]
    """
    near, far = target.ne(1).where((margin - input).relu(), 0), target.ne(-1).where(input, 0)
    return reduced(near + far, reduction, size_average, reduce)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """log(1 + exp(-target * input)).

    >>> round(soft_margin_loss(Tensor([0.0]), Tensor([1.0])).item(), 4)
    0.6931
    """
    return reduced((-target * input).softplus(), reduction, size_average, reduce)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes of max(0, margin - own score + score)^p, the own class left out.

    >>> multi_margin_loss(Tensor([[0.0, 0.5]]), Tensor([1])).item()
    0.25
    """
    if p not in (1, 2):
        raise ArgumentError("multi_margin_loss", f"p is 1 or 2, got {p}")
    rows = input.reshape((-1, input.shape[-1])) if input.ndim else input.reshape((1, 1))
    classes = target.reshape((-1, 1))
    gap = (margin - rows.gather(1, classes) + rows).relu()
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * weight[classes]
    others = Tensor.arange(rows.shape[1], device=rows.device).ne(classes)
    loss = others.where(gap, 0).sum(1) / rows.shape[1]
    return reduced(loss if target.ndim else loss.squeeze(0), reduction, size_average, reduce)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean of max(0, 1 - score of a label + score of what is none); labels are those before the first -1.

    >>> multilabel_margin_loss(Tensor([0.0, 0.5]), Tensor([1, -1])).item()
    0.25
    """
    if input.shape != target.shape:
        raise ShapeError("multilabel_margin_loss", f"input {input.shape} and target {target.shape} differ")
    count = input.shape[-1] if input.ndim else 1
    rows, labels = input.reshape((-1, count)), target.reshape((-1, count))
    known = labels.eq(-1).int().cumsum(1).eq(0)
    classes = Tensor.arange(count, device=input.device)
    is_label = (labels.unsqueeze(2).eq(classes) & known.unsqueeze(2)).any(1)
    own = rows.gather(1, known.where(labels, 0))
    gap = (1 - own.unsqueeze(2) + rows.unsqueeze(1)).relu()
    counted = known.unsqueeze(2) & is_label.logical_not().unsqueeze(1)
    loss = counted.where(gap, 0).sum((1, 2)) / count
    return reduced(loss if input.ndim > 1 else loss.squeeze(0), reduction, size_average, reduce)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes (the last axis) of the binary cross entropy of sigmoid scores.

    >>> round(multilabel_soft_margin_loss(Tensor([[0.0, 0.0]]), Tensor([[1.0, 0.0]])).item(), 4)
    0.6931
    """
    loss = -(target * input.logsigmoid() + (1 - target) * (-input).logsigmoid())
    loss = loss if weight is None else loss * weight
    return reduced(loss.mean(-1) if input.ndim else loss, reduction, size_average, reduce)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    >>> cosine_embedding_loss(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]]), Tensor([1])).item()
    1.0
    """
    tiny = 1e-12
    product = (input1 * input2).sum(-1)
    cosine = product / ((input1.square().sum(-1) + tiny) * (input2.square().sum(-1) + tiny)).sqrt()
    near, far = target.eq(1).where(1 - cosine, 0), target.eq(-1).where((cosine - margin).relu(), 0)
    return reduced(near + far, reduction, size_average, reduce)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin + distance to the positive - distance to the negative), distances as p-norms.

    With `swap` the negative's distance is the smaller of those to anchor and positive (Balntas et al.).

    >>> a, b = Tensor([[0.0]]), Tensor([[3.0]])
    >>> triplet_margin_loss(a, b, a, eps=0.0).item()
    4.0
    """
    loss = _triplet(anchor, positive, negative, lambda x, y: pairwise_distance(x, y, p, eps), margin, swap)
    return reduced(loss, reduction, size_average, reduce)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with any distance."""
    return reduced(
        _triplet(anchor, positive, negative, distance_function or pairwise_distance, margin, swap), reduction
    )


def _triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, distance: Callable[[Tensor, Tensor], Tensor], margin: float,
    swap: bool,
) -> Tensor:  # fmt: skip
    far = distance(anchor, negative)
    far = far.minimum(distance(positive, negative)) if swap else far
    return (distance(anchor, positive) - far + margin).relu()
