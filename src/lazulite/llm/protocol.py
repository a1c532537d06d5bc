"""Requests in OpenAI's form: every field checked for type and range before anything is done.

The form is that of https://platform.openai.com/docs/api-reference (chat completions, completions,
embeddings), with `top_k`, `min_p` and `repetition_penalty` beside its fields.  Fields that are not known are
ignored, as clients of all kinds send some.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.llm.sampling import Sampling

MOST_MESSAGES = 1024
MOST_CHOICES = 8
MOST_STOPS = 16
MOST_LIKELY = 20
MOST_BIASES = 1024
MOST_TEXTS = 64
ROLES = ("system", "developer", "user", "assistant", "tool")


class InvalidError(Exception):
    """A request that cannot be served as it is: what is wrong, in which field, and the status of the response."""

    def __init__(
        self, message: str, field: str | None = None, status: int = 400, kind: str = "invalid_request_error"
    ) -> None:
        super().__init__(message)
        self.message, self.field, self.status, self.kind = message, field, status, kind

    def body(self) -> dict[str, Any]:
        """The response's body, in OpenAI's form."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.field, "code": None}}


@dataclass(frozen=True)
class Wanted:
    """What a request for a text asks for."""

    sampling: Sampling
    most: int | None
    choices: int
    stops: Sequence[str]
    stream: bool
    usage: bool
    """Whether the last piece of a stream tells of usage."""
    likely: int | None
    """How many of the likeliest tokens to report; None: no chances."""
    echo: bool = False


def parsed(body: bytes) -> dict[str, Any]:
    """The object in a request's body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise InvalidError("the body has to be an object")
    return found


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a conversation, their contents as texts."""
    given = body.get("messages")
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_MESSAGES:
        raise InvalidError(f"messages are a list of 1 to {MOST_MESSAGES}", "messages")
    found = []
    for number, message in enumerate(given):
        field = f"messages[{number}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise InvalidError(f"a message has a role, one of {', '.join(ROLES)}", field)
        found.append({**message, "content": _content(message.get("content"), f"{field}.content")})
    return found


def _content(content: Any, field: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else None
    if parts is None or not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        raise InvalidError("the content is a text, or a list of parts with texts", field)
    return "".join(part["text"] for part in parts)


def prompts_of(body: Mapping[str, Any], field: str) -> list[str | list[int]]:
    """One or several texts, or rows of tokens, in a field."""
    given = body.get(field)
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and 1 <= len(given):
        if _are_tokens(given):
            return [given]
        if len(given) <= MOST_TEXTS and all(isinstance(each, str) or _are_tokens(each) for each in given):
            return given
    raise InvalidError(f"{field} is a text, a list of tokens, or a list of at most {MOST_TEXTS} of these", field)


def _are_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(each) is int and each >= 0 for each in value)


def wanted(body: Mapping[str, Any], *, chat: bool) -> Wanted:
    """How the text of an answer is wanted."""
    read = _Reader(body)
    form = body.get("response_format")
    if form is not None and (not isinstance(form, dict) or form.get("type") not in (None, "text")):
        raise InvalidError("only the response format 'text' is served", "response_format")
    most = read.integer("max_completion_tokens", None, 1) if chat else None
    if most is None:
        most = read.integer("max_tokens", None if chat else 16, 1)
    stops = body.get("stop")
    stops = [stops] if isinstance(stops, str) else [] if stops is None else stops
    if not isinstance(stops, list) or len(stops) > MOST_STOPS or not all(isinstance(stop, str) for stop in stops):
        raise InvalidError(f"stop is a text or a list of at most {MOST_STOPS} texts", "stop")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise InvalidError("stream_options is an object", "stream_options")
    return Wanted(
        _sampling(read, body), most, read.integer("n", 1, 1, MOST_CHOICES) or 1, stops, read.flag("stream"),
        options.get("include_usage") is True, _likely(read, chat), read.flag("echo") and not chat,
    )  # fmt: skip


def _likely(read: _Reader, chat: bool) -> int | None:
    if not chat:
        return read.integer("logprobs", None, 0, MOST_LIKELY)
    top = read.integer("top_logprobs", 0, 0, MOST_LIKELY)
    return top if read.flag("logprobs") else None


def _sampling(read: _Reader, body: Mapping[str, Any]) -> Sampling:
    given = body.get("logit_bias") or {}
    if not isinstance(given, dict) or len(given) > MOST_BIASES:
        raise InvalidError(f"logit_bias is an object of at most {MOST_BIASES} tokens", "logit_bias")
    bias: dict[int, float] = {}
    for token, value in given.items():
        if not (token.isascii() and token.isdecimal() and len(token) < 10) or not _is_number(value):
            raise InvalidError("logit_bias maps tokens to numbers", "logit_bias")
        bias[int(token)] = max(-100.0, min(100.0, float(value)))
    try:
        return Sampling(
            read.number("temperature", 1.0), read.integer("top_k", 0, 0) or 0, read.number("top_p", 1.0),
            read.number("min_p", 0.0), read.number("repetition_penalty", 1.0), read.number("presence_penalty", 0.0),
            read.number("frequency_penalty", 0.0), bias, read.integer("seed", None, -(1 << 63), (1 << 63) - 1),
        )  # fmt: skip
    except ArgumentError as error:
        raise InvalidError(error.message, None) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class _Reader:
    """Fields of a body by type."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body

    def number(self, field: str, default: float) -> float:
        value = self.body.get(field)
        if value is None:
            return default
        if not _is_number(value):
            raise InvalidError(f"{field} is a number", field)
        return float(value)

    def integer(self, field: str, default: int | None, low: int, high: int = 1 << 31) -> int | None:
        value = self.body.get(field)
        if value is None:
            return default
        if type(value) is not int or not low <= value <= high:
            raise InvalidError(f"{field} is an integer from {low} to {high}", field)
        return value

    def flag(self, field: str) -> bool:
        value = self.body.get(field)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise InvalidError(f"{field} is true or false", field)
        return value
