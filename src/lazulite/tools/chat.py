"""`lazulite llm`: a question answered on stdout, or a conversation in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from lazulite.base.terminal import say
from lazulite.llm.sampling import Sampling
from lazulite.llm.transformer import Transformer
from lazulite.tools.progress import shown


def answer_once(
    model: str, prompt: str, *, most: int, temperature: float, seed: int | None, system: str, context: int | None
) -> None:
    """Write the answer to one question to stdout, as it comes."""
    with shown(f"reading {model}"):
        transformer = Transformer.load(model, context)
    pieces = _answer(transformer, _messages(system, [prompt]), most, Sampling(temperature, seed=seed))
    with shown("reading the question"):
        print(next(pieces, ""), end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


def converse(model: str, *, most: int, temperature: float, seed: int | None, system: str, context: int | None) -> None:
    """A conversation: questions from stdin, answers on stdout, Ctrl-C ends an answer, Ctrl-D the conversation."""
    with shown(f"reading {model}"):
        transformer = Transformer.load(model, context)
    say(f"{transformer.name}: {transformer.config.family}, {transformer.stepper.positions} tokens of context")
    say("Ctrl-C ends an answer, Ctrl-D the conversation, /new begins another one.")
    messages = _messages(system, [])
    for question in _questions():
        if question == "/new":
            messages = _messages(system, [])
            continue
        messages.append({"role": "user", "content": question})
        begin, count, text = time.monotonic(), 0, ""
        with closing(_answer(transformer, messages, most, Sampling(temperature, seed=seed))) as pieces:
            try:
                for piece in pieces:
                    print(piece, end="", flush=True)
                    text, count = text + piece, count + 1
            except KeyboardInterrupt:
                pass
        print()
        messages.append({"role": "assistant", "content": text})
        say(f"{count / max(time.monotonic() - begin, 1e-9):.1f} tokens a second")


def _messages(system: str, questions: Sequence[str]) -> list[dict[str, str]]:
    begin = [{"role": "system", "content": system}] if system else []
    return begin + [{"role": "user", "content": question} for question in questions]


def _questions() -> Iterator[str]:
    """Lines that the user writes, until the input ends."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        except KeyboardInterrupt:  # nothing is being answered: begin the line again
            print()
            continue
        if line.strip():
            yield line.strip()


def _answer(
    transformer: Transformer, messages: Sequence[Mapping[str, Any]], most: int, sampling: Sampling
) -> Generator[str, None, None]:
    """The text of an answer as its tokens come."""
    decoder = transformer.tokenizer.stream()
    with closing(transformer.steps(transformer.chat_tokens(messages), most, sampling)) as steps:
        for step in steps:
            if step.done != "stop":
                yield decoder.add(step.token)
    yield decoder.rest()
