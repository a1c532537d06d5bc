"""Chat templates: texts in model files that lay out a conversation, rendered in a sandbox.

A template comes with the model, so it is as little trusted as the rest of the file.  Jinja's immutable
sandbox keeps it from attributes of objects; here also numbers and texts stay small, and a template that
takes too long or writes too much is stopped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import FrameType
from typing import Any

from lazulite.base.errors import ArgumentError

LONGEST = 4 << 20
"""Characters that a template may write beyond what is in the messages, and that a value in it may have."""
SECONDS = 2.0
_WIDENING = frozenset({"center", "ljust", "rjust", "zfill", "format", "format_map", "expandtabs", "join", "replace"})
"""Methods of texts that could make a long one of a short one."""
_FILTERS = ("format", "center", "wordwrap", "filesizeformat", "xmlattr", "urlize", "pprint", "random")
"""Filters that no conversation needs."""

Message = Mapping[str, Any]


def render(
    template: str, messages: Sequence[Message], *, names: Mapping[str, str], answer: bool = True, **facts: Any
) -> str:
    """The text of a conversation, up to where the answer begins.

    `names` are the texts of special tokens, `facts` whatever else the template may ask for, such as `tools`.
    ArgumentError where the template refuses the messages, is broken or does not stay within its limits.
    """
    environment = _environment()
    size = len(template) + sum(len(str(message)) for message in messages)
    try:
        compiled = environment.from_string(template)
        pieces, written = [], 0
        with _Deadline(SECONDS):
            for piece in compiled.generate(messages=messages, add_generation_prompt=answer, **{**names, **facts}):
                written += len(piece)
                if written > LONGEST + 8 * size:
                    raise ArgumentError("chat", f"the template writes more than {written} characters")
                pieces.append(piece)
    except ArgumentError:
        raise
    except Exception as error:  # whatever a template does wrong, the caller hears of it in one way
        raise ArgumentError("chat", f"the chat template fails: {type(error).__name__}: {error}"[:500]) from None
    return "".join(pieces)


def _environment() -> Any:
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ArgumentError(
            "chat", "chat templates need the package jinja2, which is not installed", hint="pip install lazulite[llm]"
        ) from None

    class Sandbox(ImmutableSandboxedEnvironment):  # type: ignore[misc, unused-ignore]
        """Jinja's sandbox with small values."""

        intercepted_binops = frozenset({"*", "**", "%"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
                raise ValueError(f"{operator} is for numbers, and powers are not needed")
            return super().call_binop(context, operator, left, right)

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            wide = isinstance(obj, str) and attr in _WIDENING - {"join", "replace"}
            return not wide and bool(super().is_safe_attribute(obj, attr, value))

    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    for name in _FILTERS:
        environment.filters.pop(name, None)
    environment.globals.pop("lipsum", None)
    environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    environment.filters["tojson"] = _as_json
    return environment


def _refuse(message: str) -> None:
    raise ArgumentError("chat", f"the chat template refuses the messages: {message}"[:500])


def _as_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **_: Any) -> str:
    """JSON as transformers writes it into templates: without HTML escapes."""
    import json

    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


class _Deadline:
    """Stops the Python code of a template in this thread after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.before: Any = None

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if time.monotonic() > self.end:
            raise TimeoutError("the template takes too long")
        return self._trace
