"""The JSON of answers: chat completions and completions, whole and in pieces, in OpenAI's form."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from lazulite.llm.answers import Chance, Choice, Piece
from lazulite.llm.tokenizer import Tokenizer


def usage(prompt: int, generated: int) -> dict[str, int]:
    """The numbers of tokens."""
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated}


class Form(ABC):
    """One answer: what all of its parts have in common, and the shape of each."""

    prefix: str
    kind: str
    piece_kind: str

    def __init__(self, tokenizer: Tokenizer, model: str) -> None:
        self.tokenizer, self.model = tokenizer, model
        self.number, self.created = f"{self.prefix}-{uuid.uuid4().hex}", int(time.time())

    def whole(self, choices: Sequence[Choice], prompt: int) -> dict[str, Any]:
        """The response for a whole answer."""
        shaped = [
            {"index": number, "finish_reason": choice.done or "length", "logprobs": self.chances(choice.chances),
             **self.content(choice.text)}
            for number, choice in enumerate(choices)
        ]  # fmt: skip
        total = usage(prompt, sum(choice.tokens for choice in choices))
        return {**self._head(self.kind), "choices": shaped, "usage": total}

    def piece(self, piece: Piece) -> dict[str, Any]:
        """A part of a streamed answer."""
        shaped = {
            "index": piece.choice, "finish_reason": piece.done or None, "logprobs": self.chances(piece.chances),
            **self.part(piece.text),
        }  # fmt: skip
        return {**self._head(self.piece_kind), "choices": [shaped]}

    def last(self, prompt: int, generated: int) -> dict[str, Any]:
        """The part of a streamed answer that tells how many tokens it took."""
        return {**self._head(self.piece_kind), "choices": [], "usage": usage(prompt, generated)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.number, "object": kind, "created": self.created, "model": self.model}

    def text_of(self, token: int) -> str:
        return self.tokenizer.decode([token], special=True)

    @abstractmethod
    def content(self, text: str) -> dict[str, Any]:
        """The text of a whole choice."""

    @abstractmethod
    def part(self, text: str) -> dict[str, Any]:
        """The text of a piece."""

    @abstractmethod
    def chances(self, chances: Sequence[Chance]) -> dict[str, Any] | None:
        """What is told of the chances of tokens."""


class ChatForm(Form):
    """A chat completion."""

    prefix, kind, piece_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def content(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text}}

    def part(self, text: str) -> dict[str, Any]:
        return {"delta": {"role": "assistant", "content": text}}

    def chances(self, chances: Sequence[Chance]) -> dict[str, Any] | None:
        if not chances:
            return None
        return {"content": [
            {**self._entry(each.token, each.log_chance), "top_logprobs": [self._entry(*top) for top in each.likely]}
            for each in chances
        ]}  # fmt: skip

    def _entry(self, token: int, chance: float) -> dict[str, Any]:
        text = self.text_of(token)
        return {"token": text, "logprob": chance, "bytes": list(text.encode("utf-8", errors="replace"))}


class CompletionForm(Form):
    """A completion."""

    prefix, kind, piece_kind = "cmpl", "text_completion", "text_completion"

    def content(self, text: str) -> dict[str, Any]:
        return {"text": text}

    part = content

    def chances(self, chances: Sequence[Chance]) -> dict[str, Any] | None:
        if not chances:
            return None
        return {
            "tokens": [self.text_of(each.token) for each in chances],
            "token_logprobs": [each.log_chance for each in chances],
            "top_logprobs": [{self.text_of(token): chance for token, chance in each.likely} for each in chances],
        }
