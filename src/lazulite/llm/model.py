"""The forward pass of a language model, with a cache of keys and values.

`Model` applies what its weights and its `Config` ask for: a bias that is there is added, a norm that is
there is applied, joined matrices are taken apart.  So one definition serves all families.  Weights are
named as in GGUF files.  A step takes the tokens of some sequences at their next positions, writes their
keys and values into the cache and gives hidden states; `logits` makes scores of those that are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lazulite.base.errors import FormatError
from lazulite.llm.cache import Cache, Places
from lazulite.llm.config import Config
from lazulite.llm.quantised import Quantised
from lazulite.llm.rope import angles, turned
from lazulite.llm.stretching import Rope
from lazulite.tensor.tensor import Tensor


class Model:
    """A model with its weights; `positions` is the longest text that it is asked for."""

    def __init__(self, config: Config, weights: Mapping[str, Tensor | Quantised], positions: int) -> None:
        self.config = config
        self.weights = {name: weight for name, weight in weights.items() if isinstance(weight, Tensor)}
        self.matrices = {name: weight for name, weight in weights.items() if isinstance(weight, Quantised)}
        factors = self.weights.get("rope_freqs.weight", self.weights.get("rope_factors_short.weight"))
        self.angles: dict[Rope, tuple[Tensor, Tensor]] = {}
        for block in range(config.blocks):
            rope = config.rope_of(block)
            if rope is not None and rope not in self.angles:
                cosines, sines = angles(rope, positions, factors)
                self.angles[rope] = cosines.realize(sines), sines
        self._require("token_embd.weight", "output_norm.weight")
        for block in range(config.blocks):
            self._require(f"blk.{block}.attn_norm.weight", f"blk.{block}.attn_output.weight")

    def _require(self, *names: str) -> None:
        for name in names:
            if not self._has(name):
                raise FormatError("load", f"a model of the family {self.config.family} has a weight {name}", field=name)

    def _has(self, name: str) -> bool:
        return name in self.weights or name in self.matrices

    def _any(self, name: str) -> Tensor | Quantised:
        return self.matrices[name] if name in self.matrices else self.weights[name]

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self._any("token_embd.weight").shape[0])

    # --- the whole ------------------------------------------------------------------------------

    def hidden(self, tokens: Tensor, places: Places, cache: Cache) -> Tensor:
        """The hidden states (rows, time, width) after all blocks, for tokens (rows, time) at their places."""
        x = self._any("token_embd.weight")[tokens] * self.config.embedding_scale
        if "position_embd.weight" in self.weights:
            x = x + places.pick(self.weights["position_embd.weight"])
        for number in range(self.config.blocks):
            x = self._block(number, x, places, cache)
        return self._norm(x, "output_norm")

    def logits(self, hidden: Tensor) -> Tensor:
        """The score of each token of the vocabulary as the next one."""
        matrix = "output" if self._has("output.weight") else "token_embd"
        scores = self._linear(hidden, matrix)
        cap = self.config.logit_cap
        return (scores * (1.0 / cap)).tanh() * cap if cap else scores

    def _block(self, number: int, x: Tensor, places: Places, cache: Cache) -> Tensor:
        prefix = f"blk.{number}."
        normed = self._norm(x, prefix + "attn_norm")
        attended = self._attention(number, normed, places, cache)
        if self.config.parallel:
            return x + attended + self._feed_forward(prefix, normed)
        x = x + self._norm_if_there(attended, prefix + "post_attention_norm")
        out = self._feed_forward(prefix, self._norm(x, prefix + "ffn_norm"))
        return x + self._norm_if_there(out, prefix + "post_ffw_norm")

    # --- attention ------------------------------------------------------------------------------

    def _attention(self, number: int, x: Tensor, places: Places, cache: Cache) -> Tensor:
        config, prefix = self.config, f"blk.{number}."
        queries, keys, values = self._heads(prefix, x)
        rope = config.rope_of(number)
        if rope is not None:
            cosines, sines = [places.pick(table).unsqueeze(-3) for table in self.angles[rope]]
            queries = turned(queries, cosines, sines, rope.adjacent)
            keys = turned(keys, cosines, sines, rope.adjacent)
        past_keys, past_values = cache.extended(number, keys, values, places)
        groups, (rows, _, time, width) = config.heads // config.kv_heads, queries.shape
        queries = queries.reshape(rows, config.kv_heads, groups, time, width)
        scores = (queries @ past_keys.unsqueeze(2).transpose(-1, -2)) * config.scale
        if config.attention_cap:
            scores = (scores * (1.0 / config.attention_cap)).tanh() * config.attention_cap
        seen = places.seen(config.window_of(number))
        if seen is not None:
            scores = seen.where(scores, -float("inf"))
        mixed = (scores.softmax(-1) @ past_values.unsqueeze(2)).reshape(rows, config.heads, time, width)
        return self._linear(mixed.transpose(1, 2).reshape(rows, time, config.heads * width), prefix + "attn_output")

    def _heads(self, prefix: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (rows, heads, time, head_width) each."""
        config = self.config
        sizes = [config.heads, config.kv_heads, config.kv_heads]
        if self._has(prefix + "attn_qkv.weight"):
            joined = self._linear(x, prefix + "attn_qkv")
            parts = list(joined.split([size * config.head_width for size in sizes], dim=-1))
        else:
            parts = [self._linear(x, prefix + name) for name in ("attn_q", "attn_k", "attn_v")]
        shaped = [
            self._heads_of(part, size, prefix + name)
            for part, size, name in zip(parts, sizes, ("attn_q_norm", "attn_k_norm", "no_norm"), strict=True)
        ]
        return shaped[0], shaped[1], shaped[2]

    def _heads_of(self, x: Tensor, heads: int, norm: str) -> Tensor:
        """x (rows, time, heads * head_width) by heads, after a norm of each head or of all together."""
        weight, width = self.weights.get(norm + ".weight"), self.config.head_width
        if weight is not None and weight.shape[0] != width:
            x, weight = self._norm(x, norm), None
        x = x.reshape(*x.shape[:2], heads, width)
        return (x if weight is None else self._norm(x, norm)).transpose(1, 2)

    # --- the feed-forward network -----------------------------------------------------------------

    def _feed_forward(self, prefix: str, x: Tensor) -> Tensor:
        if self._has(prefix + "ffn_gate_inp.weight"):
            return self._experts(prefix, x)
        up = self._linear(x, prefix + "ffn_up")
        if self._has(prefix + "ffn_gate.weight"):
            hidden = self._activated(self._linear(x, prefix + "ffn_gate")) * up
        elif up.shape[-1] == 2 * self._any(prefix + "ffn_down.weight").shape[-1]:  # gate and values in one matrix
            gate, values = up.chunk(2, dim=-1)
            hidden = self._activated(gate) * values
        else:
            hidden = self._activated(up)
        return self._linear(hidden, prefix + "ffn_down")

    def _experts(self, prefix: str, x: Tensor) -> Tensor:
        """A weighted sum of the networks that a row of scores chooses for each token."""
        config = self.config
        chances = self._linear(x, prefix + "ffn_gate_inp").softmax(-1)
        numbers = Tensor.arange(config.experts)
        parts, shares = [], []
        for _ in range(config.experts_used):  # few of few: looking for the greatest is cheaper than sorting
            expert = chances.argmax(-1)
            shares.append(chances.max(-1, keepdim=True))
            chances = (numbers == expert.unsqueeze(-1)).where(-1.0, chances)
            gate, up = [self._of_expert(x, prefix + name, expert) for name in ("ffn_gate_exps", "ffn_up_exps")]
            parts.append(self._of_expert(self._activated(gate) * up, prefix + "ffn_down_exps", expert))
        total = _sum(shares) if config.normalise_experts else 1.0
        return _sum([part * (share / total) for part, share in zip(parts, shares, strict=True)])

    def _of_expert(self, x: Tensor, name: str, expert: Tensor) -> Tensor:
        """x (rows, time, in) times the matrix of each token's expert."""
        matrices = self._any(name + ".weight")[expert]  # (rows, time, out, in)
        return (matrices * x.unsqueeze(-2)).sum(-1)

    def _activated(self, x: Tensor) -> Tensor:
        return x.silu() if self.config.activation == "silu" else x.gelu(approximate="tanh")

    # --- parts ------------------------------------------------------------------------------------

    def _linear(self, x: Tensor, name: str) -> Tensor:
        bias, matrix = self.weights.get(name + ".bias"), self.matrices.get(name + ".weight")
        if matrix is None:
            return x.linear(self.weights[name + ".weight"].transpose(), bias)
        products = matrix.times(x)
        return products if bias is None else products + bias

    def _norm_if_there(self, x: Tensor, name: str) -> Tensor:
        return self._norm(x, name) if name + ".weight" in self.weights else x

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[name + ".weight"], self.weights.get(name + ".bias")
        if not self.config.rms:
            x = x - x.mean(-1, keepdim=True)
        scaled = x * (x.square().mean(-1, keepdim=True) + self.config.epsilon).rsqrt() * weight
        return scaled if bias is None else scaled + bias


def _sum(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
