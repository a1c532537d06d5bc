"""Texts become the tokens of the reference tokenizers, and come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import ArgumentError, FormatError
from lazulite.llm.tokenizer import Tokenizer, from_folder, from_gguf
from support.language_models import byte_symbols, metadata

TEXTS = [
    "the theory of them", "Grüße aus Köln — naïve café", "日本語のテキスト", "Привет, мир!",
    "مرحبا بالعالم", "👩‍👩‍👧‍👦 emoji 🇫🇷",
    "tabs\tand\nnew\r\nlines  and   spaces ", "1234567890 3.14", "a" * 300, "e\u0301" * 50, "zero\u200bwidth",
]  # fmt: skip


@pytest.fixture(scope="module")
def bytes_only() -> Tokenizer:
    return from_gguf(metadata(), "tiny")


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_encoded_is_decoded_again(text: str, bytes_only: Tokenizer) -> None:
    assert text == bytes_only.decode(bytes_only.encode(text))


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_comes_back_whole_and_in_pieces(text: str) -> None:
    """Streaming never gives out a broken character, and in the end all of them."""
    tokenizer = from_gguf(metadata(), "tiny") if not _KEPT else _KEPT[0]
    _KEPT[:] = [tokenizer]
    tokens = tokenizer.encode(text, special=False)
    stream = tokenizer.stream()
    pieces = [stream.add(token) for token in tokens]

    assert text == tokenizer.decode(tokens) == "".join(pieces) + stream.rest()
    assert text.count("\ufffd") == "".join(pieces).count("\ufffd") + stream.rest().count("\ufffd")


_KEPT: list[Tokenizer] = []


def test_pairs_are_merged_in_order(bytes_only: Tokenizer) -> None:
    assert [257] == bytes_only.encode("the")
    assert [256, ord("x")] == [bytes_only.encode("thx")[0], 120]


def test_names_of_special_tokens_are_ordinary_text_for_strangers(bytes_only: Tokenizer) -> None:
    assert [260] == bytes_only.encode("<|im_end|>")
    assert 260 not in bytes_only.encode("<|im_end|>", special=False)
    assert "<|im_end|>" == bytes_only.decode(bytes_only.encode("<|im_end|>", special=False))


def test_of_special_tokens_that_begin_alike_the_longest_is_taken() -> None:
    """O17."""
    facts = metadata()
    tokens = [*facts["tokenizer.ggml.tokens"], "<|x|>", "<|x|>y"]
    kinds = [*facts["tokenizer.ggml.token_type"], 3, 3]
    tokenizer = from_gguf(metadata(**{"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds}), "tiny")

    assert [262] == tokenizer.encode("<|x|>y")
    assert [261, ord("z")] == [tokenizer.encode("<|x|>z")[0], 122]


def test_special_tokens_are_left_out_of_texts(bytes_only: Tokenizer) -> None:
    tokens = bytes_only.encode("hi<|im_end|>")

    assert ("hi", "hi<|im_end|>") == (bytes_only.decode(tokens), bytes_only.decode(tokens, special=True))


def test_a_lone_surrogate_is_replaced(bytes_only: Tokenizer) -> None:
    assert "?" == bytes_only.decode(bytes_only.encode("\ud800"))


def test_a_text_begins_with_the_token_that_the_file_asks_for() -> None:
    tokenizer = from_gguf(metadata(**{"tokenizer.ggml.add_bos_token": True}), "tiny")

    assert [258, 257] == tokenizer.encode("the")


def test_pieces_of_sentences_merge_by_score_and_fall_back_to_bytes() -> None:
    """The kind of Llama 2: a space is a low line, the pair of highest score is merged first."""
    tokens = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)], "\u2581", "a", "b", "ab", "\u2581ab"]
    scores = [0.0] * 259 + [-10.0, -11.0, -12.0, -1.0, -2.0]
    facts = metadata(**{
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * 5, "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
    })  # fmt: skip
    tokenizer = from_gguf(facts, "tiny")

    assert [1, 263, 263] == tokenizer.encode("ab ab")
    assert [1, 263, *[3 + byte for byte in "é".encode()]] == tokenizer.encode("abé")
    assert "ab abé" == tokenizer.decode(tokenizer.encode("ab abé"))


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"tokenizer.ggml.model": "other"}, "model"),
        ({"tokenizer.ggml.pre": "unheard-of"}, "pre"),
        ({"tokenizer.ggml.merges": ["t", "h"]}, "merges"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type"),
        ({"tokenizer.ggml.tokens": 5}, "tokens"),
        ({"tokenizer.ggml.eos_token_id": 10**6}, "eos_token_id"),
        ({"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": [1.0]}, "scores"),
    ],
    ids=str,
)
def test_a_vocabulary_that_contradicts_itself_is_refused_by_field(facts: dict[str, Any], field: str) -> None:
    with pytest.raises(FormatError) as refused:
        from_gguf(metadata(**facts), "file.gguf")

    assert ("file.gguf", f"tokenizer.ggml.{field}") == (refused.value.file, refused.value.field)


def test_a_text_is_needed(bytes_only: Tokenizer) -> None:
    with pytest.raises(ArgumentError, match="a text is needed"):
        bytes_only.encode(b"bytes")  # type: ignore[arg-type]


def test_a_folder_gives_the_tokenizer_that_it_holds(tmp_path: Path) -> None:
    inner = from_gguf(metadata(), "tiny").inner
    inner.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>", "chat_template": "T"}')
    tokenizer = from_folder(tmp_path)

    assert ([257], {260}, "T") == (tokenizer.encode("the"), tokenizer.ends, tokenizer.template)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")

    with pytest.raises(FormatError, match="no tokenizer"):
        from_folder(tmp_path)


def test_every_byte_has_a_symbol_of_its_own() -> None:
    assert 256 == len(set(byte_symbols()))
