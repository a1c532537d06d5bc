"""A tiny language model with random weights and a vocabulary of bytes, as GGUF files describe one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazulite import Tensor
from lazulite.llm.config import from_gguf
from lazulite.llm.tokenizer import from_gguf as tokenizer_from_gguf
from lazulite.llm.transformer import Transformer

WIDTH, HEADS, KV_HEADS, HIDDEN, BLOCKS = 32, 4, 2, 48, 2
SPECIAL = ("<|begin|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_symbols() -> list[str]:
    """The character that stands for each byte in vocabularies of byte-level pairs."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    symbols = {byte: chr(byte) for byte in shown} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}
    return [symbols[byte] for byte in range(256)]


def metadata(**facts: Any) -> dict[str, Any]:
    """What a file of the model says about it; `facts` replace entries."""
    tokens = [*byte_symbols(), "th", "the", *SPECIAL]
    return {
        "general.architecture": "llama", "general.name": "tiny", "llama.block_count": BLOCKS,
        "llama.embedding_length": WIDTH, "llama.feed_forward_length": HIDDEN, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS, "llama.context_length": 1024,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": ["t h", "th e"],
        "tokenizer.ggml.token_type": [1] * 258 + [3] * 3, "tokenizer.ggml.bos_token_id": 258,
        "tokenizer.ggml.eos_token_id": 260, "tokenizer.chat_template": TEMPLATE, **facts,
    }  # fmt: skip


def weights(seed: int = 0) -> dict[str, Tensor]:
    """Random weights by GGUF's names."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Tensor:
        return Tensor(random.normal(0, 0.3, (rows, columns)).astype(np.float32))

    def norm() -> Tensor:
        return Tensor(random.uniform(0.5, 1.5, WIDTH).astype(np.float32))

    found = {"token_embd.weight": matrix(261, WIDTH), "output_norm.weight": norm()}
    width = WIDTH // HEADS
    shapes = {
        "attn_q": (WIDTH, WIDTH), "attn_k": (KV_HEADS * width, WIDTH), "attn_v": (KV_HEADS * width, WIDTH),
        "attn_output": (WIDTH, WIDTH), "ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH),
        "ffn_down": (WIDTH, HIDDEN),
    }  # fmt: skip
    for block in range(BLOCKS):
        found |= {f"blk.{block}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}
        found |= {f"blk.{block}.{name}.weight": norm() for name in ("attn_norm", "ffn_norm")}
    return found


def tiny(slots: int = 1, context: int = 128, seed: int = 0) -> Transformer:
    """The model, ready to generate."""
    facts = metadata()
    return Transformer(
        from_gguf(facts, "tiny"), weights(seed), tokenizer_from_gguf(facts, "tiny"), context, slots, "tiny"
    )


def write_gguf(path: Path) -> None:
    """The tiny model as a file, written by the format's own package."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(str(path), "llama")
    for key, value in metadata().items():
        if isinstance(value, str):
            writer.add_string(key, value) if key != "general.architecture" else None
        elif isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
    for name, tensor in weights().items():
        writer.add_tensor(name, np.ascontiguousarray(tensor.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
