"""GGUF files, written: metadata by key, and tensors that are not quantised or are packed already.

What a file holds stands in the order in which it is given; the file is version 3, and put in place whole
or not at all.  Quantising is not done here: a tensor is written in its own type, or as the blocks of a
quantised type that somebody packed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lazulite.base.errors import ArgumentError
from lazulite.base.replacing import replacing
from lazulite.formats.gguf import ALIGNMENT, MAGIC, MOST_AXES, PLAIN, is_alignment
from lazulite.formats.quants import Quant
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

_NUMBERS = {dtype: number for number, dtype in PLAIN.items()}
_FLOAT32, _BOOL, _STRING, _ARRAY, _FLOAT64 = 6, 7, 8, 9, 12
_INTEGERS = ((4, "I", 0, 1 << 32), (5, "i", -(1 << 31), 1 << 31), (10, "Q", 0, 1 << 64), (11, "q", -(1 << 63), 1 << 63))
"""Types of integers, the preferred first: number, letter of `struct`, and the range of values."""
_LISTED = (_INTEGERS[1], _INTEGERS[0], *_INTEGERS[2:])
"""The same for lists: other programs look for kinds of tokens and the like as signed numbers."""


class Packed(NamedTuple):
    """A tensor as the blocks of a quantised type: bytes with rows as the last axis."""

    kind: Quant
    data: Tensor


def write(
    tensors: Mapping[str, Tensor | Packed], path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None,
    function: str = "gguf.write",
) -> None:  # fmt: skip
    """Write a file; types of elements that GGUF does not have, and metadata that are no plain values, are refused."""
    facts = dict(metadata or {})
    alignment = facts.get("general.alignment", ALIGNMENT)
    if not is_alignment(alignment):
        raise ArgumentError(function, f"general.alignment is a power of two from 8 on, got {alignment!r:.40}")
    parts = {name: _described(name, tensor, function) for name, tensor in tensors.items()}
    head = MAGIC + struct.pack("<IQQ", 3, len(parts), len(facts))
    head += b"".join(_text(key) + _value(key, value, function) for key, value in facts.items())
    offset = 0
    for name, part in parts.items():
        head += _text(name) + struct.pack(
            f"<I{len(part.shape)}QIQ", len(part.shape), *part.shape[::-1], part.kind, offset
        )
        offset += -(-part.nbytes // alignment) * alignment
    with replacing(path) as file:
        file.write(head + bytes(-len(head) % alignment) * bool(parts))
        for tensor in tensors.values():
            data = (tensor.data if isinstance(tensor, Packed) else tensor).data()
            file.write(data)
            file.write(bytes(-data.nbytes % alignment))


class _Part(NamedTuple):
    kind: int
    shape: tuple[int, ...]
    nbytes: int


def _described(name: str, tensor: Tensor | Packed, function: str) -> _Part:
    if isinstance(tensor, Packed):
        kind, data = tensor
        row = data.shape[-1] // kind.nbytes * kind.elements
        part = _Part(kind.number, (*data.shape[:-1], row), data.nbytes())
    elif tensor.dtype in _NUMBERS:
        part = _Part(_NUMBERS[tensor.dtype], tensor.shape, tensor.nbytes())
    else:
        known = ", ".join(dtype.name for dtype in _NUMBERS)
        raise ArgumentError(
            function, f"{name} has dtype {tensor.dtype.name}, which GGUF does not have", rule=f"It has {known}.",
            hint="cast it",
        )  # fmt: skip
    if len(part.shape) > MOST_AXES:
        raise ArgumentError(function, f"{name} has {len(part.shape)} axes, more than {MOST_AXES}")
    return part


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def _value(key: str, value: Any, function: str) -> bytes:
    """The type and the bytes of a value of the metadata."""
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, bool | int | float):
        kind, letter = _number_type(key, [value], function)
        return struct.pack("<I" + letter, kind, value)
    if not isinstance(value, Sequence):
        raise ArgumentError(
            function, f"{key} is a {type(value).__name__}; metadata are numbers, texts and lists of them"
        )
    if value and all(isinstance(part, str) for part in value):
        return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_text, value))
    kind, letter = _number_type(key, value, function, _LISTED)
    return struct.pack(f"<IIQ{len(value)}{letter}", _ARRAY, kind, len(value), *value)


def _number_type(
    key: str, values: Sequence[Any], function: str, integers: Sequence[tuple[int, str, int, int]] = _INTEGERS
) -> tuple[int, str]:
    """The smallest type that holds numbers exactly, and its letter of `struct`."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return _BOOL, "?"
    if kinds <= {int}:
        for kind, letter, least, beyond in integers:
            if all(least <= value < beyond for value in values):
                return kind, letter
    if kinds == {float}:
        narrow = all(value != value or dtypes.float32.round(value) == value for value in values)
        return (_FLOAT32, "f") if narrow else (_FLOAT64, "d")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ArgumentError(function, f"{key} holds {names}, which have no type in common, or are too large for any")
