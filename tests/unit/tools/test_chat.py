"""`lazulite llm`: the answer alone on stdout, conversations in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lazulite.tools.cli import main
from support.language_models import tiny, write_gguf


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_gguf(tmp_path / "tiny.gguf")
    return tmp_path / "tiny.gguf"


def expected(*questions: str, most: int) -> list[str]:
    """The answers of a conversation."""
    model, messages, answers = tiny(context=512), [], []
    for question in questions:
        messages.append({"role": "user", "content": question})
        answers.append(model.tokenizer.decode(list(model.generate(model.chat_tokens(messages), most))))
        messages.append({"role": "assistant", "content": answers[-1]})
    return answers


def test_the_answer_alone_goes_to_stdout(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["llm", str(file), "hello", "--max-tokens", "9", "--context", "512"])

    assert expected("hello", most=9)[0] + "\n" == capsys.readouterr().out


def test_a_seed_fixes_what_is_drawn(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for seed in ("1", "1", "2"):
        main(
            ["llm", str(file), "hello", "--max-tokens", "12", "--temperature", "2", "--seed", seed, "--context", "512"]
        )
        shown.append(capsys.readouterr().out)

    assert shown[0] == shown[1] != shown[2]


def test_a_conversation_remembers_until_a_new_one_begins(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    lines: Iterator[str] = iter(["hello", "more", "/new", "hello"])

    def read(prompt: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    assert 0 == main(["llm", str(file), "--max-tokens", "6", "--context", "512"])

    first, second = expected("hello", "more", most=6)
    assert f"{first}\n{second}\n{first}\n" == capsys.readouterr().out


def test_an_interruption_ends_the_answer_and_not_the_conversation(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    from lazulite.llm.tokenizer import TextStream

    lines, add, calls = iter(["hello", "hello"]), TextStream.add, iter(range(100))

    def interrupted(stream: TextStream, token: int) -> str:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return add(stream, token)

    def read(prompt: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr(TextStream, "add", interrupted)
    assert 0 == main(["llm", str(file), "--max-tokens", "6", "--context", "512"])

    assert 2 == capsys.readouterr().err.count("tokens a second")


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(["llm", "/nowhere/model.gguf", "hello"])

    assert "model.gguf" in capsys.readouterr().err
