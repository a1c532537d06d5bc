"""Rotary embeddings of models that were trained on short texts and read longer ones.

Every way comes down to a factor by which each pair of elements turns slower, and one by which the
turned elements grow.  The ways are those of Chen et al. 2023 (linear, https://arxiv.org/abs/2306.15595), YaRN (Peng et
al. 2023, https://arxiv.org/abs/2309.00071), Llama 3.1, and LongRoPE (Ding et al. 2024, https://arxiv.org/abs/2402.13753).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lazulite.base.errors import FormatError


@dataclass(frozen=True)
class Rope:
    """A rotary embedding: what angles positions turn by (Su et al. 2021, https://arxiv.org/abs/2104.09864)."""

    base: float
    width: int
    """How many elements of a head are turned."""
    adjacent: bool = False
    factors: tuple[float, ...] = ()
    """What the speed of each pair is divided by; empty: by 1."""
    magnitude: float = 1.0
    """What the turned elements are multiplied by."""


def stretched(rope: Rope, facts: Mapping[str, Any], context: int, file: str) -> Rope:
    """The embedding with what a configuration says of it; FormatError where that is not known or wrong.

    >>> stretched(Rope(10000.0, 4), {"rope_type": "linear", "factor": 2.0}, 4096, "config.json").factors
    (2.0, 2.0)
    """
    kind = _kind_of(facts)
    if kind in ("default", "none"):
        return rope
    if kind not in _WAYS:
        raise FormatError(
            "load", f"the rotary embedding {kind!r} is not known", file=file, field="rope_type",
            hint=f"the known ones are {', '.join(_WAYS)}",
        )  # fmt: skip
    try:
        factors, magnitude = _WAYS[kind](rope, facts, context)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise FormatError("load", f"the rotary embedding {kind} is badly described: {error}", file=file,
                          field="rope_type") from None  # fmt: skip
    if len(factors) != rope.width // 2:
        raise FormatError("load", f"{len(factors)} factors for {rope.width // 2} pairs", file=file, field="rope_type")
    return replace(rope, factors=factors, magnitude=magnitude)


def shortened(facts: Mapping[str, Any], context: int) -> int:
    """How long texts may be: LongRoPE has other factors for texts longer than those of the training."""
    original = facts.get("original_max_position_embeddings") or facts.get("original")
    return min(context, int(original)) if _kind_of(facts) == "longrope" and original else context


def _kind_of(facts: Mapping[str, Any]) -> str:
    return str(facts.get("rope_type") or facts.get("type") or "default")


_Stretched = tuple[tuple[float, ...], float]


def _linear(rope: Rope, facts: Mapping[str, Any], context: int) -> _Stretched:
    """All pairs turn slower alike."""
    return (float(facts["factor"]),) * (rope.width // 2), 1.0


def _llama3(rope: Rope, facts: Mapping[str, Any], context: int) -> _Stretched:
    """Pairs that turn slowly turn slower still, quick ones as they did, those between in part."""
    factor, original = float(facts["factor"]), float(facts["original_max_position_embeddings"])
    low, high = float(facts["low_freq_factor"]), float(facts["high_freq_factor"])
    found = []
    for pair in range(rope.width // 2):
        turns = original / (2 * math.pi * rope.base ** (2 * pair / rope.width))
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        found.append(1.0 / ((1 - share) / factor + share))
    return tuple(found), 1.0


def _yarn(rope: Rope, facts: Mapping[str, Any], context: int) -> _Stretched:
    """As Llama 3.1 does, between bounds given by numbers of turns; and scores grow with the factor."""
    factor = float(facts["factor"])
    original = float(facts.get("original_max_position_embeddings") or facts.get("original") or context / factor)

    def pair_of(turns: float) -> float:
        return rope.width * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(rope.base))

    low = max(math.floor(pair_of(float(facts.get("beta_fast") or 32.0))), 0)
    high = min(math.ceil(pair_of(float(facts.get("beta_slow") or 1.0))), rope.width - 1)
    found = []
    for pair in range(rope.width // 2):
        share = min(max((pair - low) / max(high - low, 0.001), 0.0), 1.0)
        found.append(1.0 / (share / factor + 1 - share))
    return tuple(found), float(facts.get("attention_factor") or 0.1 * math.log(max(factor, 1.0)) + 1.0)


def _longrope(rope: Rope, facts: Mapping[str, Any], context: int) -> _Stretched:
    """Factors that were searched for; those for texts of the original length."""
    original = float(facts.get("original_max_position_embeddings") or facts.get("original") or context)
    grown = max(context / original, 1.0)
    given = facts.get("attention_factor")
    magnitude = float(given) if given else math.sqrt(1 + math.log(grown) / math.log(original)) if grown > 1 else 1.0
    short = facts.get("short_factor", (1.0,) * (rope.width // 2))  # GGUF files have them as a weight
    return tuple([float(factor) for factor in short]), magnitude


_WAYS = {"linear": _linear, "llama3": _llama3, "yarn": _yarn, "longrope": _longrope}
