"""Choosing the next token from the scores of a model.

`Sampling` says how; a `Sampler` does it for one sequence.  The steps follow one another as in most
programs of this kind: bias, penalties, temperature, top-k, top-p (Holtzman et al. 2019,
https://arxiv.org/abs/1904.09751), min-p (Nguyen et al. 2024, https://arxiv.org/abs/2407.01082), a draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lazulite.base.errors import ArgumentError

Scores = Any
"""A NumPy array of float32, (vocabulary,)."""

_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0.0, 100.0), "top_k": (0, 1 << 31), "top_p": (0.0, 1.0), "min_p": (0.0, 1.0),
    "repetition_penalty": (0.01, 100.0), "presence_penalty": (-100.0, 100.0), "frequency_penalty": (-100.0, 100.0),
}  # fmt: skip


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.  The default takes the token of highest score, always.

    `temperature` divides the scores (0: the highest score wins); `top_k` keeps so many tokens (0: all), `top_p` the
    likeliest that together have this chance, `min_p` those of at least this share of the highest chance.
    `repetition_penalty` divides (negative scores: multiplies) the scores of tokens that occurred,
    `presence_penalty` and `frequency_penalty` are taken off once, or for each time that they were generated.
    `bias` is added to scores by token.  Equal seeds give equal draws; None draws anew each time.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise ArgumentError("generate", f"{name} lies between {low} and {high}, got {value!r:.40}")


class Sampler:
    """Chooses the tokens of one sequence; `prompt` are the tokens before them."""

    def __init__(self, how: Sampling, prompt: Sequence[int] = ()) -> None:
        import numpy

        self.how, self.prompt = how, set(prompt)
        self.counts: dict[int, int] = {}
        self.random = numpy.random.Generator(numpy.random.Philox(how.seed))

    def choose(self, scores: Scores) -> int:
        """The next token, of the scores (vocabulary,)."""
        import numpy

        scores = self._adjusted(scores)
        if not self.how.temperature:
            token = int(scores.argmax())
        else:
            kept, chances = self._likely(scores)
            # One draw for each token, whatever is kept: the sequence of draws depends on the seed alone.
            sums = chances.cumsum()
            token = int(kept[numpy.searchsorted(sums[:-1], self.random.random() * sums[-1], side="right")])
        self.counts[token] = self.counts.get(token, 0) + 1
        return token

    def _adjusted(self, scores: Scores) -> Scores:
        """The scores with bias and penalties."""
        import numpy

        how = self.how
        penalised = how.repetition_penalty != 1.0 or how.presence_penalty or how.frequency_penalty
        if not (how.bias or penalised):
            return scores
        scores = scores.astype(numpy.float32, copy=True)
        for token, extra in how.bias.items():
            if 0 <= token < len(scores):
                scores[token] += extra
        if how.repetition_penalty != 1.0:
            seen = numpy.fromiter(self.prompt | self.counts.keys(), numpy.int64)
            old = scores[seen]
            scores[seen] = numpy.where(old > 0, old / how.repetition_penalty, old * how.repetition_penalty)
        for token, count in self.counts.items():
            scores[token] -= how.presence_penalty + how.frequency_penalty * count
        return scores

    def _likely(self, scores: Scores) -> tuple[Any, Any]:
        """The tokens that may be drawn, the likeliest first, and their chances up to a factor."""
        import numpy

        how, count = self.how, len(scores)
        keep = min(how.top_k, count) if how.top_k else count
        kept = numpy.argpartition(scores, count - keep)[count - keep :] if keep < count else numpy.arange(count)
        kept = kept[numpy.argsort(-scores[kept], kind="stable")]
        chances = numpy.exp((scores[kept].astype(numpy.float64) - scores[kept[0]]) / how.temperature)
        if how.top_p < 1.0:
            before = chances.cumsum() - chances
            some = max(1, int(numpy.count_nonzero(before < how.top_p * chances.sum())))
            kept, chances = kept[:some], chances[:some]
        if how.min_p:
            some = max(1, int(numpy.count_nonzero(chances >= how.min_p * chances[0])))
            kept, chances = kept[:some], chances[:some]
        return kept, chances


def log_chances(scores: Scores, token: int, most: int) -> tuple[float, list[tuple[int, float]]]:
    """The logarithm of the chance of a token, and those of the likeliest `most` tokens."""
    import numpy

    wide = scores.astype(numpy.float64)
    logs = wide - wide.max()
    logs -= numpy.log(numpy.exp(logs).sum())
    top = numpy.argsort(-logs, kind="stable")[:most]
    return float(logs[token]), [(int(each), float(logs[each])) for each in top]
