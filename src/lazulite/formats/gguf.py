"""GGUF files, versions 2 and 3: metadata by key, and tensors, most of them quantised.

`read` gives a `Gguf`: `metadata` as Python values and `tensors` by name, with NumPy's order of axes.
A quantised tensor is a lazy expression over its bytes, which stay in the file until they are read
(`formats.quants`).  Every count, length, type and offset is held against the file before anything is
made of it, and against the limits below.  The format is ggml's:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from lazulite.formats.quants import QUANTS, Quant
from lazulite.formats.source import Source
from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.tensor import Tensor

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of metadata by number, as `struct` calls them."""
PLAIN: dict[int, DType] = {
    0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16, 26: dtypes.int32, 27: dtypes.int64,
    28: dtypes.float64, 30: dtypes.bfloat16,
}  # fmt: skip
"""Types of tensors that are not quantised."""
PLAIN_NAMES = {kind: f"{kind.kind[0]}{kind.bits}".upper() for kind in PLAIN.values()} | {dtypes.bfloat16: "BF16"}
"""What GGUF files call them."""
MOST_AXES = 4
MOST_PAIRS, MOST_TENSORS = 1 << 16, 1 << 17
MOST_VALUES = 1 << 24
"""In a list of the metadata; a list in a list is not read."""
LONGEST_KEY, LONGEST_TEXT = 1 << 16, 1 << 26
LARGEST_ALIGNMENT = 1 << 20
_LEAST_ALIGNMENT, ALIGNMENT = 8, 32
"""In bytes: the smallest that there may be, and what holds where a file does not say."""
_LEAST_ENTRY = 13
"""Bytes that an entry of the metadata or of the list of tensors takes at least."""
_PREFIX = struct.Struct("<Q")
"""What stands before a text: its length."""
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: its type, its shape, and where its bytes are."""

    source: Source
    kind: DType | Quant
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        if isinstance(self.kind, Quant):
            return prod(self.shape) // self.kind.elements * self.kind.nbytes
        return prod(self.shape) * self.kind.itemsize

    @property
    def kind_name(self) -> str:
        """The type, as GGUF files call it."""
        return self.kind.name if isinstance(self.kind, Quant) else PLAIN_NAMES[self.kind]

    def tensor(self, name: str, device: str | None = None) -> Tensor:
        """The elements; those of a quantised type as float32, unpacked where they are used."""
        if isinstance(self.kind, DType):
            return self.source.tensor(self.offset, self.kind, self.shape, name, device)
        return self.kind.dequantize(self.packed(name, device), self.shape)

    def packed(self, name: str, device: str | None = None) -> Tensor:
        """The bytes of a quantised tensor, with its rows as the last axis."""
        assert isinstance(self.kind, Quant)
        row = self.shape[-1] // self.kind.elements * self.kind.nbytes
        return self.source.tensor(self.offset, dtypes.uint8, (*self.shape[:-1], row), name, device)


@dataclass
class Gguf:
    """What a file holds."""

    metadata: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def tensors(self, device: str | None = None) -> dict[str, Tensor]:
        """Every tensor by name."""
        return {name: entry.tensor(name, device) for name, entry in self.entries.items()}


def read(path: str | os.PathLike[str]) -> Gguf:
    """The contents of a file, and of all of its parts where it is the first part of a split one."""
    return read_source(Source(path))


def read_source(source: Source) -> Gguf:
    """As `read`, of a file that is open."""
    first = _Reader(source).read()
    parts = first.metadata.get("split.count", 0)
    if type(parts) is int and parts > 1:
        for other in _other_parts(source, parts):
            part = _Reader(Source(other, source.function)).read()
            for name, entry in part.entries.items():
                if name in first.entries:
                    entry.source.fail("a tensor occurs in two parts", name)
                first.entries[name] = entry
    return first


def _other_parts(source: Source, count: int) -> Iterator[Path]:
    found = _PART.fullmatch(source.path.name)
    if found is None or int(found[3]) != count or int(found[2]) != 1:
        source.fail(
            f"a file of {count} parts is opened by the first, whose name ends in -00001-of-{count:05}.gguf",
            "split.count",
        )
    return (source.path.with_name(f"{found[1]}-{number:05}-of-{count:05}.gguf") for number in range(2, count + 1))


def _require_apart(entries: Mapping[str, Entry]) -> None:
    """Raise where two tensors share bytes: a write to one would change the other."""
    reached = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].offset):
        if entry.nbytes and entry.offset < reached:
            entry.source.fail("it shares bytes with another tensor", name, entry.offset)
        reached = max(reached, entry.offset + entry.nbytes)


def is_later_part(path: Path) -> bool:
    """Whether the name is that of a part of a split file which is not its first."""
    found = _PART.fullmatch(path.name)
    return found is not None and int(found[2]) != 1


class _Reader:
    """Reads one file from front to back; `at` is the place."""

    def __init__(self, source: Source) -> None:
        self.source, self.at = source, 0

    def read(self) -> Gguf:
        source = self.source
        if source.read(0, 4, "the magic number") != MAGIC:
            source.fail("this is no GGUF file", "the magic number", 0)
        self.at = 4
        version = self.number("I", "the version")
        if version not in _VERSIONS:
            source.fail(f"version {version} is not read, only {_VERSIONS}", "the version", 4)
        tensors = self.count("the number of tensors", MOST_TENSORS)
        pairs = self.count("the number of metadata entries", MOST_PAIRS)
        result, alignment = Gguf(), ALIGNMENT
        for _ in range(pairs):
            key = self.key("a key of the metadata", result.metadata)
            kind, begin = self.number("I", key), self.at
            result.metadata[key] = value = self.value(kind, key)
            if key == "general.alignment":
                alignment = self.alignment(value, begin)
        listed: dict[str, tuple[DType | Quant, tuple[int, ...], int]] = {}
        for _ in range(tensors):
            name = self.key("the name of a tensor", listed)
            listed[name] = self.listed(name)
        begin = -(-self.at // alignment) * alignment
        for name, (kind, shape, offset) in listed.items():
            if offset % alignment:
                source.fail(f"{offset} is no multiple of the alignment {alignment}", name, begin + offset)
            entry = Entry(source, kind, shape, begin + offset)
            source.require(entry.offset, entry.nbytes, name)
            result.entries[name] = entry
        _require_apart(result.entries)
        return result

    # --- numbers and texts ------------------------------------------------------------------------

    def number(self, code: str, what: str) -> Any:
        size = struct.calcsize("<" + code)
        self.source.require(self.at, size, what)
        (value,) = struct.unpack_from("<" + code, self.source.memory, self.at)
        self.at += size
        return value

    def count(self, what: str, most: int, least: int = _LEAST_ENTRY) -> int:
        """A number of things of which each takes at least some bytes of what is left of the file."""
        at, count = self.at, int(self.number("Q", what))
        if count > most or count * least > self.source.size - self.at:
            self.source.fail(
                f"{count} are more than a file of {self.source.size} bytes holds, or than {most}", what, at
            )
        return count

    def text(self, what: str, longest: int = LONGEST_TEXT) -> str:
        length = self.count(what, longest, 1)
        self.at += length
        return str(self.source.memory[self.at - length : self.at], "utf-8", "surrogateescape")

    def texts(self, what: str) -> list[str]:
        """A list of texts: a vocabulary has very many, so this does without the steps of `text`."""
        count = self.count(what, MOST_VALUES, _PREFIX.size)
        memory, at, result = self.source.memory, self.at, list[str]()
        for _ in range(count):
            begin = at + _PREFIX.size
            if begin > self.source.size:
                self.source.require(at, _PREFIX.size, what)
            end = begin + _PREFIX.unpack_from(memory, at)[0]
            if end - begin > LONGEST_TEXT or end > self.source.size:
                self.source.fail(f"a text of {end - begin} bytes does not fit into the file", what, at)
            result.append(str(memory[begin:end], "utf-8", "surrogateescape"))
            at = end
        self.at = at
        return result

    def key(self, what: str, taken: Collection[str]) -> str:
        at = self.at
        key = self.text(what, LONGEST_KEY)
        if key in taken:
            self.source.fail("it occurs twice", key, at)
        return key

    def value(self, kind: int, what: str) -> Any:
        """One value of the metadata, or a list of values of one type."""
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind], what)
        if kind == _STRING:
            return self.text(what)
        if kind != _ARRAY:
            self.source.fail(f"{kind} is no type of metadata", what, self.at - 4)
        inner = self.number("I", what)
        if inner in _NUMBERS:
            code = _NUMBERS[inner]
            size = struct.calcsize(code)
            count = self.count(what, MOST_VALUES, size)
            values = list(struct.unpack_from(f"<{count}{code}", self.source.memory, self.at))
            self.at += count * size
            return values
        if inner != _STRING:
            self.source.fail(f"a list of type {inner} is not read", what, self.at - 4)
        return self.texts(what)

    # --- tensors ------------------------------------------------------------------------------------

    def listed(self, name: str) -> tuple[DType | Quant, tuple[int, ...], int]:
        """An entry of the list: type, shape, and the offset from the end of the header on."""
        begin = self.at
        axes = self.number("I", name)
        if axes > MOST_AXES:
            self.source.fail(f"{axes} axes are more than {MOST_AXES}", name, begin)
        shape = tuple([self.number("Q", name) for _ in range(axes)][::-1])
        self.source.elements(shape, name, begin)
        number = self.number("I", name)
        kind = PLAIN.get(number) or QUANTS.get(number)
        if kind is None:
            self.source.fail(f"{number} is no type of tensors that is known", name, begin)
        if isinstance(kind, Quant) and (not shape or shape[-1] % kind.elements):
            self.source.fail(f"rows of {kind.name} consist of {kind.elements} elements, got {shape}", name, begin)
        return kind, shape, self.number("Q", name)

    def alignment(self, given: Any, begin: int) -> int:
        """The bytes whose multiples tensors begin at."""
        if not is_alignment(given):
            self.source.fail(
                f"an alignment is a power of two from {_LEAST_ALIGNMENT} to {LARGEST_ALIGNMENT}, got {given!r:.40}",
                "general.alignment", begin,
            )  # fmt: skip
        return int(given)


def is_alignment(given: Any) -> bool:
    """Whether tensors may begin at multiples of this number of bytes."""
    return type(given) is int and _LEAST_ALIGNMENT <= given <= LARGEST_ALIGNMENT and given & (given - 1) == 0
