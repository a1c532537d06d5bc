"""Models of every family give the scores of transformers, for prompts, single tokens and several slots."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazulite import FormatError, Tensor
from lazulite.llm import weights
from lazulite.llm.config import from_gguf
from lazulite.llm.model import Model
from lazulite.llm.steps import CHUNK, Stepper
from lazulite.llm.stretching import Rope, stretched
from support.language_models import metadata, tiny
from support.language_models import weights as tiny_weights

SIZES = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
HEAD = {"head_dim": 8}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64, "rope_theta": 10000.0}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}
LONG = {"rope_type": "longrope", "short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [2.0] * 4, "rope_theta": 10000.0,
        "original_max_position_embeddings": 64}  # fmt: skip
EXPERTS = {"num_experts_per_tok": 2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", HEAD),
    "llama, linear": (
        "LlamaConfig",
        HEAD | {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
    ),
    "llama, llama3": ("LlamaConfig", HEAD | {"rope_parameters": LLAMA3}),
    "llama, yarn": ("LlamaConfig", HEAD | {"rope_parameters": YARN}),
    "phi3, longrope": (
        "Phi3Config",
        {"pad_token_id": 0, "original_max_position_embeddings": 64, "rope_parameters": LONG},
    ),
    "mistral": ("MistralConfig", HEAD | {"sliding_window": 5}),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", HEAD),
    "gemma2": ("Gemma2Config", HEAD | {"sliding_window": 5, "query_pre_attn_scalar": 8}),
    "gemma3": ("Gemma3TextConfig", HEAD | {"sliding_window": 5, "query_pre_attn_scalar": 8, "num_hidden_layers": 7}),
    "phi": ("PhiConfig", {"partial_rotary_factor": 0.5}),
    "phi3": ("Phi3Config", {"pad_token_id": 0}),
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),
    "mixtral": ("MixtralConfig", HEAD | EXPERTS | {"num_local_experts": 4}),
    "olmoe": ("OlmoeConfig", EXPERTS | {"num_experts": 4}),
    "qwen3_moe": ("Qwen3MoeConfig", HEAD | EXPERTS | {"num_experts": 4, "moe_intermediate_size": 16}),
}


@pytest.fixture
def transformers() -> Any:
    pytest.importorskip("torch")
    return pytest.importorskip("transformers")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_the_scores_of_transformers(family: str, transformers: Any, tmp_path: Path) -> None:
    """A folder as transformers writes it, read and run: a prompt, then one token, within 1e-5 of scores of about 4."""
    import torch

    torch.manual_seed(0)
    kind, facts = FAMILIES[family]
    sizes = {} if family == "gpt2" else SIZES
    config = getattr(transformers, kind)(**{**sizes, "vocab_size": 96, **facts})
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.2) if weight.dim() > 1 else weight.data.add_(torch.randn_like(weight) * 0.1)
    model.save_pretrained(tmp_path)
    tokens = [int(token) for token in np.random.default_rng(0).integers(1, 96, 13)]
    with torch.no_grad():
        expected = model(torch.tensor([tokens])).logits[0].numpy()

    ours, found = weights.from_folder(tmp_path)
    stepper = Stepper(Model(ours, found, 64 + CHUNK), 1, 64)

    np.testing.assert_allclose(stepper.prompt(0, 0, tokens[:-1]), expected[-2], atol=1e-5)
    np.testing.assert_allclose(stepper.single(0, 12, tokens[-1]), expected[-1], atol=1e-5)


def test_the_shares_of_chosen_experts_add_up_to_one() -> None:
    """B137: scores of 1, 2, 3 and 4, of which two are chosen: softmax over the two."""
    facts = metadata(**{"llama.expert_count": 4, "llama.expert_used_count": 2})
    tables = {
        "ffn_gate_inp": [[1.0], [2.0], [3.0], [4.0]], "ffn_gate_exps": [[[1.0]]] * 4, "ffn_up_exps": [[[1.0]]] * 4,
        "ffn_down_exps": [[[0.0]], [[10.0]], [[100.0]], [[1000.0]]],
    }  # fmt: skip
    found = tiny_weights() | {f"blk.0.{name}.weight": Tensor(table) for name, table in tables.items()}
    model = Model(from_gguf(facts, "tiny"), found, 64)
    silu = 1 / (1 + math.exp(-1))

    assert model._experts("blk.0.", Tensor([[[1.0]]])).item() == pytest.approx(silu * (731.0586 + 26.89414), rel=1e-6)


def test_a_rotary_embedding_that_is_not_known_is_refused() -> None:
    with pytest.raises(FormatError, match="'spiral' is not known") as refused:
        stretched(Rope(10000.0, 4), {"rope_type": "spiral"}, 64, "config.json")
    with pytest.raises(FormatError, match="badly described"):
        stretched(Rope(10000.0, 4), {"rope_type": "llama3", "factor": 2.0}, 64, "config.json")

    assert ("config.json", "rope_type") == (refused.value.file, refused.value.field)


def test_several_slots_at_once_give_what_each_gives_alone() -> None:
    texts = [[1, 2, 3, 4], [9, 8], [5, 5, 5, 5, 5, 5]]
    alone = tiny().stepper
    expected = []
    for text in texts:
        alone.prompt(0, 0, text)
        expected.append(alone.single(0, len(text), 7))
    together = tiny(slots=3).stepper
    for slot, text in enumerate(texts):
        together.prompt(slot, 0, text)

    found = together.every([len(text) for text in texts], [7, 7, 7])

    np.testing.assert_allclose(found, np.array(expected), atol=1e-5)


def test_a_prompt_in_parts_is_the_prompt_in_one() -> None:
    text = [int(token) for token in np.random.default_rng(1).integers(0, 256, 60)]
    whole, parts = tiny().stepper, tiny().stepper
    expected = whole.prompt(0, 0, text)
    parts.prompt(0, 0, text[:37])

    np.testing.assert_allclose(parts.prompt(0, 37, text[37:]), expected, atol=1e-5)


def test_every_length_uses_the_programs_of_the_first() -> None:
    stepper = tiny().stepper
    for position in range(20):
        stepper.single(0, position, 3)

    assert "1 captured" in repr(stepper._single)


def test_an_embedding_has_length_one_and_knows_the_text() -> None:
    stepper = tiny().stepper
    one, same, other = stepper.embedding([1, 2, 3]), stepper.embedding([1, 2, 3]), stepper.embedding([3, 2, 1])

    assert 1.0 == pytest.approx(float(np.square(one).sum()))
    assert one == same != other


def test_a_weight_that_is_missing_is_named() -> None:
    found = tiny_weights()
    del found["blk.1.attn_norm.weight"]

    with pytest.raises(FormatError, match=r"blk\.1\.attn_norm\.weight"):
        Model(tiny().config, found, 16)
