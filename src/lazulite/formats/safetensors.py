"""safetensors files: a JSON header with type, shape and place of each tensor, then the elements.

The format is that of https://github.com/huggingface/safetensors: eight bytes with the length of the
header, the header, and a buffer in which the tensors stand without gaps or overlaps.  `read` checks all
of it before it makes the first tensor, and decides on a file as the format's own library does, but for
three things that it refuses: a name that occurs twice, a tensor described by a list instead of an
object, and element types that have no dtype here.  `write` puts a file in place whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from lazulite.base.errors import ArgumentError
from lazulite.base.replacing import replacing
from lazulite.formats.source import Source
from lazulite.ir.dtype import DType
from lazulite.ir.dtype import by_name as dtype_named
from lazulite.tensor.tensor import Tensor

LONGEST_HEADER = 100_000_000
"""Bytes, as the format limits it."""
_METADATA = "__metadata__"
_PREFIX = 8
_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "fp8e4m3", "F8_E5M2": "fp8e5m2",
}  # fmt: skip
_CODES = {name: code for code, name in _NAMES.items()}


class _Part(NamedTuple):
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int


def read(path: str | os.PathLike[str], device: str | None = None) -> dict[str, Tensor]:
    """The tensors of a file by name, in the order of the header; elements are read when they are needed."""
    return read_source(Source(path), device)


def read_source(source: Source, device: str | None = None) -> dict[str, Tensor]:
    """As `read`, of a file that is open."""
    start, header = read_header(source)
    parts = {name: _part(source, name, entry) for name, entry in header.items() if name != _METADATA}
    _require_full_cover(source, start, parts)
    return {
        name: source.tensor(start + part.begin, part.dtype, part.shape, name, device) for name, part in parts.items()
    }


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The free texts of a file by name."""
    return source_metadata(Source(path))


def source_metadata(source: Source) -> dict[str, str]:
    """As `read_metadata`, of a file that is open."""
    return dict(read_header(source)[1].get(_METADATA) or {})


def write(
    tensors: Mapping[str, Tensor], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None,
    function: str = "safe_save",
) -> None:  # fmt: skip
    """Write tensors, asked for one by one, and free texts; the largest elements stand first, so each is aligned."""
    texts = dict(metadata or {})
    if _METADATA in tensors or not all(type(text) is str for pair in texts.items() for text in pair):
        raise ArgumentError(function, f"metadata are texts by name, and no tensor is called {_METADATA}")
    kinds = {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}
    for name, (dtype, _) in kinds.items():
        if dtype.name not in _CODES:
            raise ArgumentError(function, f"{name} has dtype {dtype.name}, which safetensors does not have")
    order = sorted(kinds, key=lambda name: (-kinds[name][0].itemsize, name))
    header: dict[str, Any] = {_METADATA: texts} if texts else {}
    begin = 0
    for name in order:
        dtype, shape = kinds[name]
        end = begin + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": _CODES[dtype.name], "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _PREFIX)
    with replacing(path) as file:
        file.write(len(text).to_bytes(_PREFIX, "little") + text)
        for name in order:
            file.write(tensors[name].data())


# --- checks --------------------------------------------------------------------------------------


def read_header(source: Source) -> tuple[int, dict[str, Any]]:
    """Where the buffer begins, and the header as a checked dictionary."""
    length = source.integer(0, _PREFIX, "the length of the header")
    if length > LONGEST_HEADER:
        source.fail(
            f"a header of {length} bytes is longer than {LONGEST_HEADER}: is this a safetensors file?",
            "the length of the header", 0,
        )  # fmt: skip
    text = source.read(_PREFIX, length, "the header")
    if not begins_header(text):
        source.fail("the header has to begin with '{': is this a safetensors file?", "the header", _PREFIX)
    try:
        header = _JSON.decode(text.decode())
        texts = header.get(_METADATA)
        "".join(header).encode()  # not every text of Python is one: half of a surrogate pair is none
    except (ValueError, RecursionError) as error:
        source.fail(f"the header is not JSON: {error}"[:200], "the header", _PREFIX)
    if texts is not None and not (isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())):
        source.fail("it has to be texts by name", _METADATA, _PREFIX)
    return _PREFIX + length, header


def begins_header(text: bytes) -> bool:
    """Whether these may be the first bytes of a header."""
    return text.lstrip(b" \n\r\t").startswith(b"{")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _integer(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text:.20} is no number")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_JSON = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_finite, parse_constant=_no_constant
)
"""Reads what the standard says and no more."""


def _part(source: Source, name: str, entry: Any) -> _Part:
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        source.fail("a tensor has a dtype, a shape and data_offsets", name, _PREFIX)
    known = _NAMES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if known is None:
        source.fail(f"the dtype {entry['dtype']!r:.40} is not known", name, _PREFIX)
    shape, places = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(places, list) or len(places) != 2:
        source.fail("the shape is a list, data_offsets a pair", name, _PREFIX)
    if any(type(number) is not int or number < 0 for number in (*shape, *places)):
        source.fail(f"sizes and offsets are integers from 0 on, got {shape!r:.60} and {places!r:.60}", name, _PREFIX)
    dtype = dtype_named(known)
    begin, end = places
    if end - begin != source.elements(shape, name, _PREFIX) * dtype.itemsize:
        source.fail(f"{end - begin} bytes cannot hold {dtype.name} elements of shape {shape!r:.60}", name, begin)
    return _Part(dtype, tuple(shape), begin, end)


def _require_full_cover(source: Source, start: int, parts: Mapping[str, _Part]) -> None:
    """Raise unless the tensors follow one another from the first byte of the buffer to the last."""
    reached = 0
    for name, part in sorted(parts.items(), key=lambda item: (item[1].begin, item[1].end)):
        if part.begin != reached:
            source.fail(f"it begins at byte {part.begin}, but the one before ends at {reached}", name, start + reached)
        reached = part.end
    if start + reached != source.size:
        source.fail(f"the tensors end at byte {start + reached}, the file at {source.size}", "the buffer", start)
