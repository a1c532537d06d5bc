"""What distinguishes one language model from another, apart from its weights.

A `Config` comes from the metadata of a GGUF file or from the config.json of a Hugging Face folder.  It holds
facts, not code: `model` applies whatever the facts and the weights that are there ask for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lazulite.base.errors import FormatError
from lazulite.llm.stretching import Rope, shortened, stretched

FAMILIES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi2", "phi3", "gpt2", "olmoe", "qwen2moe", "qwen3moe")
"""The families that are known, by GGUF's names (Mistral, SmolLM2 and Mixtral are of the family llama)."""
_KINDS = {
    "mistral": "llama", "mixtral": "llama", "gemma3_text": "gemma3", "phi": "phi2", "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
}  # fmt: skip
"""What Hugging Face calls them, where it is another name."""
_ADJACENT = ("llama",)
"""Families whose files turn neighbouring elements together; all others turn an element with one half a head away."""


@dataclass(frozen=True)
class Config:
    """The facts about a model; sizes in elements."""

    family: str
    blocks: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    context: int
    epsilon: float
    rope: Rope | None
    local_rope: Rope | None = None
    """The rotary embedding of blocks that see a window only, where it is another one."""
    rms: bool = True
    """Whether norms divide by the root mean square only, instead of subtracting the mean first."""
    activation: str = "silu"
    embedding_scale: float = 1.0
    attention_scale: float = 0.0
    """What scores are multiplied by; 0 stands for 1 / sqrt(head_width)."""
    attention_cap: float = 0.0
    """Scores are pressed into this range by tanh; 0 leaves them."""
    logit_cap: float = 0.0
    window: int = 0
    """How many positions a windowed block sees; 0: all blocks see everything."""
    window_every: int = 0
    """Every so many blocks one sees everything; 0: every block is windowed."""
    parallel: bool = False
    """Whether attention and feed-forward network read the same norm, and are added at once."""
    experts: int = 0
    experts_used: int = 0
    normalise_experts: bool = True

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return self.attention_scale or 1.0 / math.sqrt(self.head_width)

    def window_of(self, block: int) -> int:
        """How many positions a block sees; 0 where it sees all."""
        if not self.window or (self.window_every and (block + 1) % self.window_every == 0):
            return 0
        return self.window

    def rope_of(self, block: int) -> Rope | None:
        """The rotary embedding of a block."""
        return self.local_rope if self.local_rope is not None and self.window_of(block) else self.rope


def from_gguf(metadata: Mapping[str, Any], file: str) -> Config:
    """The facts in the metadata of a GGUF file."""
    facts = _Facts(metadata, file)
    family = facts.family
    heads, width = facts.integer("attention.head_count"), facts.integer("embedding_length")
    head_width = facts.integer("attention.key_length", width // max(heads, 1))
    base, turned = facts.number("rope.freq_base", 10000.0), facts.integer("rope.dimension_count", head_width)
    context, rope_facts = facts.integer("context_length"), facts.rope()
    rope = stretched(Rope(base, turned, family in _ADJACENT), rope_facts, context, file)
    config = Config(
        family, facts.integer("block_count"), width, heads, facts.integer("attention.head_count_kv", heads), head_width,
        shortened(rope_facts, context), facts.epsilon(), rope, experts=facts.integer("expert_count", 0),
        experts_used=facts.integer("expert_used_count", 0), window=facts.integer("attention.sliding_window", 0),
        attention_cap=facts.number("attn_logit_softcapping", 0.0),
        logit_cap=facts.number("final_logit_softcapping", 0.0),
    )  # fmt: skip
    return of_family(config)


def from_hugging_face(facts: dict[str, Any], file: str) -> Config:
    """The facts in a config.json."""
    kind = str(facts.get("model_type"))
    family = _KINDS.get(kind, kind)
    if family == "gpt2":
        facts = {**facts, "hidden_size": facts["n_embd"], "num_hidden_layers": facts["n_layer"],
                 "num_attention_heads": facts["n_head"], "max_position_embeddings": facts["n_positions"]}  # fmt: skip
    try:
        heads, width = int(facts["num_attention_heads"]), int(facts["hidden_size"])
        head_width = int(facts.get("head_dim") or width // heads)
        rope_facts = facts.get("rope_parameters") or facts.get("rope_scaling") or {}
        rope_facts = rope_facts.get("full_attention", rope_facts)  # which may stand beside "sliding_attention"
        base = float(facts.get("rope_theta") or rope_facts.get("rope_theta") or 10000.0)
        turned = int(head_width * float((facts | rope_facts).get("partial_rotary_factor") or 1.0))
        rope_facts = rope_facts | {"original": facts.get("original_max_position_embeddings")}
        context = int(facts["max_position_embeddings"])
        rope = stretched(Rope(base, turned), rope_facts, context, file)
        context = shortened(rope_facts, context)
        config = Config(
            family, int(facts["num_hidden_layers"]), width, heads,
            int(facts.get("num_key_value_heads") or heads), head_width, context,
            float(facts.get("rms_norm_eps") or facts.get("layer_norm_eps") or facts.get("layer_norm_epsilon") or 1e-5),
            rope, window=int(facts.get("sliding_window") or 0),
            experts=int(facts.get("num_local_experts") or facts.get("num_experts") or 0),
            experts_used=int(facts.get("num_experts_per_tok") or 0),
            normalise_experts=bool(facts.get("norm_topk_prob", True)),
            attention_cap=float(facts.get("attn_logit_softcapping") or 0.0),
            logit_cap=float(facts.get("final_logit_softcapping") or 0.0),
        )  # fmt: skip
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise FormatError("load", f"the configuration lacks {error}", file=file) from None
    if family in ("qwen2", "qwen3") and not facts.get("use_sliding_window"):
        config = replace(config, window=0)
    return of_family(config)


def of_family(config: Config) -> Config:
    """What files leave out because it holds for the whole family; FormatError for an unknown one."""
    family, scale = config.family, math.sqrt(config.width)
    if family not in FAMILIES:
        raise FormatError(
            "load", f"models of the family {family!r} are not known", field="general.architecture",
            hint=f"the known ones are {', '.join(FAMILIES)}",
        )  # fmt: skip
    if config.experts and not 0 < config.experts_used <= config.experts:
        raise FormatError(
            "load", f"of {config.experts} experts {config.experts_used} cannot be used", field="expert_used_count"
        )
    if family == "gemma2":
        return replace(
            config, activation="gelu_tanh", embedding_scale=scale, window=config.window or 4096, window_every=2,
            attention_cap=config.attention_cap or 50.0, logit_cap=config.logit_cap or 30.0,
            attention_scale=_gemma2_scale(config),
        )  # fmt: skip
    if family == "gemma3" and config.rope is not None:
        return replace(
            config, activation="gelu_tanh", embedding_scale=scale, window_every=6,
            local_rope=replace(config.rope, base=10000.0, factors=(), magnitude=1.0),
        )  # fmt: skip
    if family == "gpt2":
        return replace(config, rope=None, rms=False, activation="gelu_tanh")
    if family == "phi2":
        return replace(config, rms=False, activation="gelu_tanh", parallel=True)
    if family in ("olmoe", "qwen2moe"):
        return replace(config, normalise_experts=False)
    return config


def _gemma2_scale(config: Config) -> float:
    """The largest model divides scores by the width of a head as if all heads shared the width of the model."""
    return 1.0 / math.sqrt(config.width / config.heads) if config.blocks == 46 else 0.0


class _Facts:
    """Metadata of a GGUF file with types checked."""

    def __init__(self, metadata: Mapping[str, Any], file: str) -> None:
        self.metadata, self.file = metadata, file
        self.family = self._get("general.architecture", None, str)

    def integer(self, name: str, default: int | None = None) -> int:
        value = self._get(f"{self.family}.{name}", default, int | list)
        if isinstance(value, list):  # one for each block: only equal ones are known
            value = value[0] if value and all(each == value[0] for each in value) else None
        if not isinstance(value, int) or value < 0:
            raise FormatError("load", "a size is an integer from 0 on", file=self.file, field=f"{self.family}.{name}")
        return value

    def number(self, name: str, default: float) -> float:
        return float(self._get(f"{self.family}.{name}", default, int | float))

    def epsilon(self) -> float:
        rms = self.number("attention.layer_norm_rms_epsilon", 0.0)
        return rms or self.number("attention.layer_norm_epsilon", 1e-5)

    def rope(self) -> dict[str, Any]:
        """How the rotary embedding is stretched, as configurations of Hugging Face say it."""
        kind = self._get(f"{self.family}.rope.scaling.type", "none", str)
        original = self.integer("rope.scaling.original_context_length", 0)
        return {
            "rope_type": kind, "factor": self.number("rope.scaling.factor", 1.0), "original": original or None,
            "attention_factor": self.number("rope.scaling.attn_factor", 0.0) or None,
        }  # fmt: skip

    def _get(self, key: str, default: Any, kind: Any) -> Any:
        value = self.metadata.get(key, default)
        if not isinstance(value, kind):
            found = "is missing" if value is None else f"is a {type(value).__name__}"
            raise FormatError("load", f"the metadata {key} {found}", file=self.file, field=key)
        return value
