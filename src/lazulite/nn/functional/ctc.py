"""The probability of label sequences over all their alignments (Graves et al., 2006).

Takes log-probabilities (time, batch, classes) and labels; gives a loss for each sequence.  The labels with blanks
between them are the states; a forward pass over time adds up the ways into each state, in logarithms.  Times
beyond the length of an input leave the states as they are.
"""

from __future__ import annotations

import math
from typing import Any

from lazulite.base.errors import ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.nn.functional.losses import reduced
from lazulite.tensor.tensor import Tensor

_NEVER = -1e30
"""The logarithm of a chance that is none: finite, so that gradients are."""


def ctc(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int, reduction: str,
    zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """The loss of each sequence, reduced; the mean divides each by its number of labels first."""
    single = log_probs.ndim == 2
    chances = log_probs.unsqueeze(1) if single else log_probs
    if chances.ndim != 3:
        raise ShapeError("ctc_loss", f"log_probs is (time, batch, classes), got {log_probs.shape}")
    lengths, counts = _numbers(chances, input_lengths), _numbers(chances, target_lengths)
    labels = _rows(targets.unsqueeze(0) if single and targets.ndim == 1 else targets, counts)
    log_chance = _forward(chances, labels, lengths, counts, blank)
    loss = (log_chance > _NEVER / 2).where(-log_chance, 0.0 if zero_infinity else math.inf)
    if reduction == "mean":
        return (loss / counts.maximum(1)).mean()
    return reduced(loss.squeeze(0) if single else loss, reduction)


def _numbers(chances: Tensor, given: Any) -> Tensor:
    """One number for each sequence."""
    numbers = given if isinstance(given, Tensor) else Tensor(given, dtype=dtypes.int32, device=chances.device)
    return numbers.reshape((-1,)).cast(dtypes.int32)


def _rows(targets: Tensor, counts: Tensor) -> Tensor:
    """Labels that lie one after another as rows, filled up with whatever follows."""
    if targets.ndim == 2:
        return targets
    begins = counts.cumsum(0) - counts
    widest = int(counts.max().item())
    places = begins.unsqueeze(1) + Tensor.arange(widest, device=targets.device)
    return targets.take(places.minimum(max(targets.shape[0] - 1, 0))) if widest else targets[:0].reshape((-1, 0))


def _forward(chances: Tensor, labels: Tensor, lengths: Tensor, counts: Tensor, blank: int) -> Tensor:
    """The logarithm of the sum over all alignments."""
    time, batch, _ = chances.shape
    blanks = Tensor.full((batch, labels.shape[1]), blank, dtype=labels.dtype, device=labels.device)
    states = (
        blanks.stack(labels, dim=2)
        .flatten(1, 2)
        .cat(blanks[:, :1] if labels.shape[1] else _one(labels, blank, batch), dim=1)
    )
    size = states.shape[1]
    own = chances.gather(2, states.unsqueeze(0).expand(time, batch, size))
    number = Tensor.arange(size, device=chances.device)
    two_back = states.pad(((0, 0), (2, 0)))[:, :size]
    skips = (number >= 2) & states.ne(blank) & states.ne(two_back)
    alpha = (number < 2).where(own[0], _NEVER)
    for step in range(1, time):
        before = _moved(alpha, 1)
        skipped = skips.where(_moved(alpha, 2), _NEVER)
        following = _log_sum(alpha, before, skipped) + own[step]
        alpha = (lengths > step).unsqueeze(1).where(following, alpha)
    last = (counts * 2).unsqueeze(1)
    final = alpha.gather(1, last)
    before_last = (last > 0).where(alpha.gather(1, (last - 1).maximum(0)), _NEVER)
    return (lengths > 0).where(_log_sum(final, before_last).squeeze(1), counts.eq(0).where(0.0, _NEVER))


def _one(labels: Tensor, blank: int, batch: int) -> Tensor:
    return Tensor.full((batch, 1), blank, dtype=labels.dtype, device=labels.device)


def _moved(x: Tensor, by: int) -> Tensor:
    """States moved on by some places."""
    return x.pad(((0, 0), (by, 0)), value=_NEVER)[:, : x.shape[1]]


def _log_sum(*parts: Tensor) -> Tensor:
    """log(sum(exp)), element by element."""
    top = parts[0]
    for part in parts[1:]:
        top = top.maximum(part)
    top = top.detach()
    total = (parts[0] - top).exp()
    for part in parts[1:]:
        total = total + (part - top).exp()
    return top + total.log()
