"""GGUF files, versions 2 and 3: metadata by key, and tensors, most of them quantised.

`read` gives a `Gguf`: `metadata` as Python values and `tensors` by name, with NumPy's order of axes.
A quantised tensor is a lazy expression over its bytes, which stay in the file until they are read
(`formats.quants`).  Every count, length, type and offset is held against the file before anything is
made of it.  The format is ggml's: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterator
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
_PLAIN: dict[int, DType] = {
    0: dtypes.float32, 1: dtypes.float16, 24: dtypes.int8, 25: dtypes.int16, 26: dtypes.int32, 27: dtypes.int64,
    28: dtypes.float64, 30: dtypes.bfloat16,
}  # fmt: skip
"""Types of tensors that are not quantised."""
_MOST_AXES = 4
_LONGEST_KEY = 1 << 16
_LEAST_ENTRY = 12
"""Bytes that an entry of the metadata or of the list of tensors takes at least."""
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
    def type_name(self) -> str:
        return self.kind.name

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
    first = _Reader(Source(path)).read()
    parts = first.metadata.get("split.count", 0)
    if type(parts) is int and parts > 1:
        for other in _other_parts(Path(path), parts):
            part = _Reader(Source(other)).read()
            for name, entry in part.entries.items():
                if name in first.entries:
                    entry.source.fail("a tensor occurs in two parts", name)
                first.entries[name] = entry
    return first


def _other_parts(path: Path, count: int) -> Iterator[Path]:
    found = _PART.fullmatch(path.name)
    if found is None or int(found[3]) != count or int(found[2]) != 1:
        Source(path).fail(
            f"a file of {count} parts is opened by the first, whose name ends in -00001-of-{count:05}.gguf",
            "split.count",
        )
    return (path.with_name(f"{found[1]}-{number:05}-of-{count:05}.gguf") for number in range(2, count + 1))


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
        tensors = self.count("the number of tensors")
        pairs = self.count("the number of metadata entries")
        result = Gguf()
        for _ in range(pairs):
            key = self.key("a key of the metadata", result.metadata)
            result.metadata[key] = self.value(self.number("I", key), key)
        listed: dict[str, tuple[DType | Quant, tuple[int, ...], int]] = {}
        for _ in range(tensors):
            name = self.key("the name of a tensor", listed)
            listed[name] = self.listed(name)
        alignment = self.alignment(result.metadata)
        begin = -(-self.at // alignment) * alignment
        for name, (kind, shape, offset) in listed.items():
            if offset % alignment:
                source.fail(f"{offset} is no multiple of the alignment {alignment}", name, begin + offset)
            entry = Entry(source, kind, shape, begin + offset)
            source.require(entry.offset, entry.nbytes, name)
            result.entries[name] = entry
        return result

    # --- numbers and texts ------------------------------------------------------------------------

    def number(self, code: str, what: str) -> Any:
        size = struct.calcsize("<" + code)
        self.source.require(self.at, size, what)
        (value,) = struct.unpack_from("<" + code, self.source.memory, self.at)
        self.at += size
        return value

    def count(self, what: str, least: int = _LEAST_ENTRY) -> int:
        """A number of things of which each takes some bytes of what is left of the file."""
        at, count = self.at, int(self.number("Q", what))
        if count * least > self.source.size - self.at:
            self.source.fail(f"{count} of them do not fit into a file of {self.source.size} bytes", what, at)
        return count

    def text(self, what: str, longest: int | None = None) -> str:
        length = self.count(what, least=1)
        if longest is not None and length > longest:
            self.source.fail(f"a name of {length} bytes is longer than {longest}", what, self.at)
        data = self.source.read(self.at, length, what)
        self.at += length
        return data.decode("utf-8", errors="surrogateescape")

    def key(self, what: str, taken: Collection[str]) -> str:
        at = self.at
        key = self.text(what, _LONGEST_KEY)
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
            count = self.count(what, size)
            values = list(struct.unpack_from(f"<{count}{code}", self.source.memory, self.at))
            self.at += count * size
            return values
        if inner != _STRING:
            self.source.fail(f"a list of type {inner} is not read", what, self.at - 4)
        return [self.text(what) for _ in range(self.count(what, 8))]

    # --- tensors ------------------------------------------------------------------------------------

    def listed(self, name: str) -> tuple[DType | Quant, tuple[int, ...], int]:
        """An entry of the list: type, shape, and the offset from the end of the header on."""
        begin = self.at
        axes = self.number("I", name)
        if axes > _MOST_AXES:
            self.source.fail(f"{axes} axes are more than {_MOST_AXES}", name, begin)
        shape = tuple([self.number("Q", name) for _ in range(axes)][::-1])
        number = self.number("I", name)
        kind = _PLAIN.get(number) or QUANTS.get(number)
        if kind is None:
            self.source.fail(f"{number} is no type of tensors that is known", name, begin)
        if isinstance(kind, Quant) and (not shape or shape[-1] % kind.elements):
            self.source.fail(f"rows of {kind.name} consist of {kind.elements} elements, got {shape}", name, begin)
        return kind, shape, self.number("Q", name)

    def alignment(self, metadata: dict[str, Any]) -> int:
        given = metadata.get("general.alignment", 32)
        if type(given) is not int or not 8 <= given <= 1 << 20 or given & (given - 1):
            self.source.fail(f"an alignment is a power of two from 8 on, got {given!r:.40}", "general.alignment")
        return given
