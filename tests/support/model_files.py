"""Model files made byte by byte, right or wrong, independently of the code that writes them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

PLACES = {"U8": 1, "I32": 4, "F32": 4}


def safetensors(header: str | bytes | Mapping[str, Any], data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file with this header; `length` is what it says of its length."""
    text = json.dumps(header) if isinstance(header, Mapping) else header
    text = text if isinstance(text, bytes) else text.encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def described(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    """An entry of the header of a safetensors file."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


# --- GGUF ----------------------------------------------------------------------------------------


def text(value: str | bytes, length: int | None = None) -> bytes:
    """A text of a GGUF file; `length` is what it says of its length."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data) if length is None else length) + data


def pair(key: str | bytes, kind: int, value: bytes) -> bytes:
    """A key, a type and a value of the metadata."""
    return text(key) + struct.pack("<I", kind) + value


def values(kind: int, count: int, data: bytes = b"") -> bytes:
    """A list of the metadata: the type of its values, how many there should be, and the values."""
    return struct.pack("<IQ", kind, count) + data


def listed(name: str | bytes, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    """A tensor in the list of a GGUF file; the shape in NumPy's order."""
    sizes = b"".join(struct.pack("<Q", size) for size in reversed(shape))
    return text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, offset)


def gguf(
    pairs: tuple[bytes, ...] = (), tensors: tuple[bytes, ...] = (), data: bytes = b"", *, version: int = 3,
    counts: tuple[int, int] | None = None, magic: bytes = b"GGUF", alignment: int = 32,
) -> bytes:  # fmt: skip
    """A GGUF file; `counts` is what it says of the numbers of its tensors and pairs."""
    said = (len(tensors), len(pairs)) if counts is None else counts
    head = magic + struct.pack("<IQQ", version, *said) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) * bool(tensors) + data


# --- archives ------------------------------------------------------------------------------------


def archive(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive; names may repeat."""
    import warnings

    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, compression)
    return target.getvalue()


def checkpoint(pickled: bytes, storages: Mapping[str, bytes] | None = None) -> bytes:
    """A torch checkpoint with this pickle and these storages."""
    parts = [("model/data/" + key, data) for key, data in (storages or {}).items()]
    return archive([("model/data.pkl", pickled), ("model/byteorder", b"little"), *parts, ("model/version", b"3\n")])
