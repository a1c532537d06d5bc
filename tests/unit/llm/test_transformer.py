"""The public class: from files, generating, conversations."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lazulite import ArgumentError, FormatError
from lazulite.llm import Transformer
from support.language_models import SPECIAL, metadata, tiny, write_gguf


def test_a_file_gives_the_model_that_was_written(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf")
    loaded = Transformer.load(tmp_path / "tiny.gguf", context=64)
    prompt = loaded.tokenizer.encode("the other")

    assert list(tiny().generate(prompt, 8)) == list(loaded.generate(prompt, 8))
    assert ("tiny", 64) == (loaded.name, loaded.stepper.positions)


def test_equal_seeds_give_equal_texts() -> None:
    model = tiny()
    one, same, other = [list(model.generate([1, 2], 10, temperature=2.0, seed=seed)) for seed in (5, 5, 6)]

    assert one == same != other


def test_the_end_token_is_not_part_of_the_text() -> None:
    model = tiny()
    first = next(iter(model.generate([1, 2, 3], 1)))

    assert [] == list(model.generate([1, 2, 3], 5, ends=[first]))


def test_an_iterator_that_is_left_frees_its_slot() -> None:
    model = tiny()
    tokens = model.generate([1, 2, 3], 50)
    assert 2 == len(list(islice(tokens, 2)))
    tokens.close()  # type: ignore[attr-defined]

    assert 3 == len(list(model.generate([4, 5], 3)))


def test_two_iterators_take_turns() -> None:
    model = tiny(slots=2)
    pairs = list(zip(model.generate([1, 2, 3], 5), model.generate([9, 8], 5), strict=True))

    assert pairs == list(zip(tiny().generate([1, 2, 3], 5), tiny().generate([9, 8], 5), strict=True))


def test_a_conversation_is_laid_out_by_the_template() -> None:
    model = tiny()
    tokens = model.chat_tokens([{"role": "user", "content": "hi"}])

    assert f"{SPECIAL[1]}user\nhi{SPECIAL[2]}\n{SPECIAL[1]}assistant\n" == model.tokenizer.decode(tokens, special=True)


@pytest.mark.parametrize(("facts", "message"), [({"context": 10**6}, "a context lies"), ({"slots": 0}, "one slot")])
def test_impossible_sizes_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tiny(**facts)


def test_a_family_that_is_not_known_is_refused() -> None:
    from lazulite.llm.config import from_gguf

    with pytest.raises(FormatError, match="'mystery' are not known"):
        from_gguf({key.replace("llama.", "mystery."): value for key, value in metadata().items()}
                  | {"general.architecture": "mystery"}, "x")  # fmt: skip


@pytest.mark.parametrize("key", ["llama.block_count", "llama.embedding_length"])
def test_metadata_that_is_missing_is_named(key: str) -> None:
    from lazulite.llm.config import from_gguf

    facts = metadata()
    del facts[key]
    with pytest.raises(FormatError, match="is missing") as refused:
        from_gguf(facts, "x.gguf")

    assert (key, "x.gguf") == (refused.value.field, refused.value.file)
