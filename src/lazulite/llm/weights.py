"""The weights of a language model by GGUF's names, whatever file they come from.

Hugging Face folders name the same tensors otherwise, and a few families store them otherwise: the
tables here say how, so that `model` knows one set of names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lazulite.base.errors import FormatError
from lazulite.formats import gguf
from lazulite.formats.load import load
from lazulite.formats.quants import Quant
from lazulite.llm.config import Config, from_gguf, from_hugging_face
from lazulite.llm.packed import Packer
from lazulite.llm.quantised import Quantised, quantised
from lazulite.tensor.tensor import Tensor

_BLOCK = re.compile(r"(?:model\.layers|transformer\.h|h)\.(\d+)\.(.+)")
_OUTSIDE = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight", "wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight",
    "ln_f.weight": "output_norm.weight", "ln_f.bias": "output_norm.bias", "lm_head.bias": "output.bias",
    "model.final_layernorm.weight": "output_norm.weight", "model.final_layernorm.bias": "output_norm.bias",
}  # fmt: skip
_INSIDE = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.dense": "attn_output", "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
}  # fmt: skip
_GEMMA = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
_EXPERT = re.compile(r"(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)\.weight")
_EXPERT_PARTS = {"w1": "ffn_gate", "w3": "ffn_up", "w2": "ffn_down", "gate_proj": "ffn_gate", "up_proj": "ffn_up",
                 "down_proj": "ffn_down"}  # fmt: skip
_IGNORED = re.compile(r".*(rotary_emb\.inv_freq|\.attn\.bias|\.attn\.masked_bias)")


@dataclass(frozen=True)
class Contents:
    """What a GGUF file holds of a model."""

    config: Config
    weights: dict[str, Tensor | Quantised]
    metadata: Mapping[str, Any]


def from_gguf_file(path: Path) -> Contents:
    """A model in a GGUF file; quantised matrices stay as they are."""
    file = gguf.read(path)
    picked, pack = "token_embd.weight" if "output.weight" in file.entries else "", Packer()
    weights = {name: _weight(name, entry, None if name == picked else pack) for name, entry in file.entries.items()}
    return Contents(from_gguf(file.metadata, str(path)), weights, file.metadata)


def _weight(name: str, entry: gguf.Entry, pack: Packer | None) -> Tensor | Quantised:
    if not isinstance(entry.kind, Quant) or len(entry.shape) < 2:
        return entry.tensor(name)
    return quantised(entry.kind, entry.packed(name), entry.shape, pack)


def from_folder(folder: Path) -> tuple[Config, dict[str, Tensor]]:
    """The configuration and the weights of a Hugging Face folder with safetensors files."""
    facts = _json(folder / "config.json")
    if isinstance(facts.get("text_config"), dict):  # the language model of one that sees, too
        facts = facts["text_config"]
    config = from_hugging_face(facts, str(folder / "config.json"))
    return config, renamed(load(folder), config)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError("load", f"it is not JSON: {error}", file=str(path)) from None
    if not isinstance(found, dict):
        raise FormatError("load", "it has to be an object", file=str(path))
    return found


def renamed(given: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
    """Weights named as Hugging Face does under GGUF's names; FormatError for a name that is not known."""
    found: dict[str, Tensor] = {}
    experts: dict[str, dict[int, Tensor]] = {}
    store = _STORED.get(config.family, _as_it_is)
    for name, tensor in given.items():
        short = name.removeprefix("transformer.").removeprefix("language_model.")
        block = _BLOCK.fullmatch(short)
        if _IGNORED.fullmatch(name):
            continue
        if block is None:
            if short not in _OUTSIDE:
                raise FormatError("load", f"a weight of {config.family} has no name {name}", field=name)
            target = _OUTSIDE[short]
        elif expert := _EXPERT.fullmatch(block[2]):
            part = f"blk.{block[1]}.{_EXPERT_PARTS[expert[2]]}_exps.weight"
            experts.setdefault(part, {})[int(expert[1])] = tensor
            continue
        else:
            target = _inside(block[1], block[2], config, name)
        found[target] = store(target, tensor)
    for name, parts in experts.items():
        found[name] = Tensor.stack(*[parts[number] for number in range(len(parts))])
    return found


def _inside(block: str, name: str, config: Config, full: str) -> str:
    """The name of a weight of a block."""
    part, _, kind = name.rpartition(".")
    table = _INSIDE | _GEMMA if config.family.startswith("gemma") else _INSIDE
    if part not in table:
        raise FormatError("load", f"a weight of {config.family} has no name {full}", field=full)
    return f"blk.{block}.{table[part]}.{kind}"


def _as_it_is(name: str, tensor: Tensor) -> Tensor:
    return tensor


def _one_more(name: str, tensor: Tensor) -> Tensor:
    """Gemma's norms multiply by one more than the weight."""
    return tensor.float() + 1.0 if name.endswith("norm.weight") else tensor


def _turned(name: str, tensor: Tensor) -> Tensor:
    """GPT-2 stores the matrices of its blocks transposed."""
    return tensor.transpose() if name.startswith("blk.") and tensor.ndim == 2 else tensor


_STORED: Mapping[str, Callable[[str, Tensor], Tensor]] = {"gemma2": _one_more, "gemma3": _one_more, "gpt2": _turned}
