"""Protobuf messages, read from a checked `Source` and written: dataclasses whose fields say their number and kind.

The wire format is that of https://protobuf.dev/programming-guides/encoding: each field is a number, a
wire type and a payload.  Every payload is held against the end of the message that contains it, a varint
has at most ten bytes, messages nest at most `DEEPEST` deep, and groups are refused; so the work is
linear in the size of the file whatever is in it.  Large payloads are not copied: they stay `Part`s of
the source, and `encode` gives them as they are.  A field that no dataclass names is skipped.
"""

from __future__ import annotations

import array
import dataclasses
import struct
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from lazulite.formats.source import Source

M = TypeVar("M")

DEEPEST = 100
"""Messages inside messages, as the reference implementation limits them."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_WIDTH = {_EIGHT: 8, _FOUR: 4}
_LONGEST_VARINT = 10
_WHOLE = 0
"""No field of a file has this number."""
_SIGN, _WRAP = 1 << 63, 1 << 64


class Part(NamedTuple):
    """Bytes of a source that were not copied."""

    source: Source
    begin: int
    length: int

    def read(self, field: str) -> bytes:
        return self.source.read(self.begin, self.length, field)

    @classmethod
    def of(cls, data: bytes | memoryview, name: str) -> Part:
        """Bytes in memory, as what a file called `name` would hold."""
        return cls(Source.over(memoryview(data), name), 0, len(data))


TEXT, BYTES, INT, FLOAT, DOUBLE = "text", "bytes", "int", "float", "double"
_WIRE_TYPES = {TEXT: _LENGTH, BYTES: _LENGTH, INT: _VARINT, FLOAT: _FOUR, DOUBLE: _EIGHT}
_CODES = {FLOAT: "f", DOUBLE: "d"}
_EMPTY: dict[str, Any] = {TEXT: "", INT: 0, FLOAT: 0.0, DOUBLE: 0.0}


class _Field(NamedTuple):
    name: str
    kind: str | Callable[[], type[Any]]
    """One of the kinds above, or a function that gives the dataclass of a message (it may be defined later)."""
    many: bool
    optional: bool
    """Whether a number that is zero differs from an absent one."""


def one(number: int, kind: str | Callable[[], type[Any]], optional: bool = False) -> Any:
    """A field that occurs once; where it is absent its kind's empty value, None for messages, bytes and `optional`."""
    empty = _EMPTY.get(kind) if isinstance(kind, str) and not optional else None
    return dataclasses.field(default=empty, metadata=_facts(number, kind, optional=optional))


def whole() -> Any:
    """A field that is the message itself, undecoded."""
    return dataclasses.field(default=None, metadata=_facts(_WHOLE, BYTES))


def many(number: int, kind: str | Callable[[], type[Any]]) -> Any:
    """A field that occurs any number of times: a list."""
    return dataclasses.field(default_factory=list, metadata=_facts(number, kind, many=True))


def _facts(
    number: int, kind: str | Callable[[], type[Any]], *, many: bool = False, optional: bool = False
) -> dict[str, Any]:
    return {"number": number, "kind": kind, "many": many, "optional": optional}


def decode(message: type[M], part: Part, field: str, depth: int = 0) -> M:
    """The message in a part of a source; `field` is how errors name it."""
    source = part.source
    if depth > DEEPEST:
        source.fail(f"messages nest deeper than {DEEPEST}", field, part.begin)
    result, known = message(), _fields(cast(Hashable, message))
    if _WHOLE in known:
        setattr(result, known[_WHOLE].name, part)
    for number, wire, begin, length in _payloads(part, field):
        entry = known.get(number)
        if entry is None:
            continue
        inside = f"{field}.{entry.name}"
        if not isinstance(entry.kind, str):
            if wire != _LENGTH:
                source.fail("a message has a length", inside, begin)
            child = decode(entry.kind(), Part(source, begin, length), inside, depth + 1)
            _put(result, entry, child, source, inside, begin)
        elif entry.many and wire == _LENGTH and entry.kind in (INT, FLOAT, DOUBLE):
            getattr(result, entry.name).extend(_packed(entry.kind, Part(source, begin, length), inside))
        else:
            if wire != _WIRE_TYPES[entry.kind]:
                source.fail(f"{entry.kind} does not have wire type {wire}", inside, begin)
            _put(result, entry, _single(entry.kind, Part(source, begin, length), inside), source, inside, begin)
    return result


def _put(result: Any, entry: _Field, value: Any, source: Source, field: str, offset: int) -> None:
    if entry.many:
        getattr(result, entry.name).append(value)
    elif not isinstance(entry.kind, str) and getattr(result, entry.name) is not None:
        source.fail("the message occurs twice", field, offset)
    else:
        setattr(result, entry.name, value)


@cache
def _fields(message: Hashable) -> dict[int, _Field]:
    return {
        each.metadata["number"]: _Field(each.name, *[each.metadata[fact] for fact in ("kind", "many", "optional")])
        for each in dataclasses.fields(message)  # type: ignore[arg-type]
    }


def _payloads(part: Part, field: str) -> Iterator[tuple[int, int, int, int]]:
    """The number, wire type, first byte and length of each field of a message."""
    source, at, end = part.source, part.begin, part.begin + part.length
    source.require(part.begin, part.length, field)
    while at < end:
        key, at = _varint(source, at, end, field)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            _, after = _varint(source, at, end, field)
            length = after - at
        elif wire == _LENGTH:
            length, at = _varint(source, at, end, field)
        elif wire in _WIDTH:
            length = _WIDTH[wire]
        else:
            source.fail(f"wire type {wire} is not known: is this an ONNX file?", field, at)
        if number == 0 or length > end - at:
            source.fail(f"field {number} of {length} bytes does not fit the {end - at} that are left", field, at)
        yield number, wire, at, length
        at += length


def _varint(source: Source, at: int, end: int, field: str) -> tuple[int, int]:
    """An unsigned number of up to 64 bits and the offset after it."""
    memory, value, shift = source.memory, 0, 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = memory[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value % _WRAP, place + 1
        shift += 7
    return source.fail("a number does not end", field, at)


def _signed(value: int) -> int:
    return value - _WRAP if value >= _SIGN else value


def _single(kind: str, part: Part, field: str) -> Any:
    source, begin, length = part
    if kind == BYTES:
        return part
    if kind == INT:
        return _signed(_varint(source, begin, begin + length, field)[0])
    data = source.read(begin, length, field)
    if kind == TEXT:
        try:
            return data.decode()
        except UnicodeDecodeError:
            source.fail("the text is not UTF-8", field, begin)
    return struct.unpack(f"<{_CODES[kind]}", data)[0]


def _packed(kind: str, part: Part, field: str) -> list[Any]:
    source, at, length = part
    if kind == INT:
        values, end = [], at + length
        while at < end:
            value, at = _varint(source, at, end, field)
            values.append(_signed(value))
        return values
    numbers = array.array(_CODES[kind])
    if length % numbers.itemsize:
        source.fail(f"{length} bytes are no whole number of elements", field, at)
    numbers.frombytes(source.read(at, length, field))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


# --- writing -------------------------------------------------------------------------------------


def encode(message: Any) -> list[bytes | memoryview]:
    """A message as bytes in pieces, which `decode` reads back; fields that hold nothing are left out."""
    pieces: list[bytes | memoryview] = []
    for number, entry in _fields(cast(Hashable, type(message))).items():
        value = getattr(message, entry.name)
        if number == _WHOLE or value is None or value in ([], "") or (value == 0 and not entry.optional):
            continue
        if entry.many and entry.kind in (INT, FLOAT, DOUBLE):
            pieces += _delimited(number, [_number(str(entry.kind), each) for each in value])
            continue
        for each in value if entry.many else [value]:
            if entry.kind in (INT, FLOAT, DOUBLE):
                pieces.append(_unsigned(number << 3 | _WIRE_TYPES[str(entry.kind)]) + _number(str(entry.kind), each))
            else:
                pieces += _delimited(number, _payload(each))
    return pieces


def _payload(value: Any) -> list[bytes | memoryview]:
    """The contents of a text, of bytes, or of a message."""
    if isinstance(value, str):
        return [value.encode()]
    if isinstance(value, Part):
        return [value.source.memory[value.begin : value.begin + value.length]]
    return encode(value)


def _delimited(number: int, payload: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    return [_unsigned(number << 3 | _LENGTH) + _unsigned(sum(len(piece) for piece in payload)), *payload]


def _number(kind: str, value: Any) -> bytes:
    return _unsigned(int(value) % _WRAP) if kind == INT else struct.pack(f"<{_CODES[kind]}", value)


def _unsigned(value: int) -> bytes:
    """A varint."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)
