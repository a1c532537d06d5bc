"""The words of the text form: `tokenize` cuts a line up, `TokenReader` takes the pieces one by one.

Errors are `FormatError`s that say what was expected; the caller adds the line.
"""

from __future__ import annotations

import json
import re

from lazulite.base.errors import FormatError
from lazulite.ir.dtype import DType, by_name
from lazulite.ir.dtype import names as dtype_names

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0x[0-9a-fA-F]+|\d+\.(?!\.)\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>'[^']*'|\"[^\"]*\")|(?P<symbol>//|<<|>>|<=|>=|==|!=|\.\.|[-+*/%&|^~<>=()\[\],.:]))"
)


def quoted(data: object) -> str:
    """Plain data as one token: JSON in a string without line ends or comment signs."""
    text = json.dumps(data, separators=(",", ":"))
    return "'" + text.replace("'", "\\u0027").replace("#", "\\u0023") + "'"


def tokenize(text: str) -> list[str]:
    """The tokens of one line."""
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise FormatError("parse", f"unexpected character {text[at:].lstrip()[0]!r}")
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


class TokenReader:
    """A place in the tokens of one line."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise FormatError("parse", f"expected {token!r}, got {self.peek() or 'the end of the line'!r}")

    def word(self, what: str) -> str:
        token = self.peek()
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            raise FormatError("parse", f"expected {what}, got {token or 'the end of the line'!r}")
        self.at += 1
        return token

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        token = self.peek()
        if not token.isdigit():
            raise FormatError("parse", f"expected an integer, got {token or 'the end of the line'!r}")
        self.at += 1
        return sign * int(token)

    def dtype(self) -> DType:
        name = self.word("a type")
        if name not in dtype_names():
            raise FormatError("parse", f"no type is called {name!r}")
        return by_name(name)

    def end(self) -> None:
        if self.peek():
            raise FormatError("parse", f"unexpected {self.peek()!r}")

    def take(self) -> str:
        """The next token, whatever it is."""
        token = self.peek()
        self.at += 1
        return token

    def followed_by(self, *tokens: str) -> bool:
        """Whether the token after the next is one of these; an empty one is the end of the line."""
        return (self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else "") in tokens
