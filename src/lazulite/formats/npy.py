"""NPY and NPZ files: NumPy's arrays, one or several by name.

The format is that of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.  The header
is a literal of Python, which is read as one and never evaluated; arrays of Python objects, which would be
pickles, are refused.  Elements are read where they stand if they are aligned, as in NPY files and in
what `write_archive` makes; those of a compressed NPZ are inflated when it is opened.
"""

from __future__ import annotations

import ast
import os
import zipfile
from collections.abc import Mapping
from typing import Any

from lazulite.base.replacing import replacing
from lazulite.formats import archive
from lazulite.formats.source import Source
from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.tensor import Tensor

MAGIC = b"\x93NUMPY"
SUFFIX = ".npy"
_LONGEST_HEADER = 10_000
"""Bytes; NumPy refuses longer ones, too."""
_ALIGNMENT = 64
_DESCRIPTIONS: dict[str, DType] = {
    "|b1": dtypes.bool, "|i1": dtypes.int8, "|u1": dtypes.uint8, "<i2": dtypes.int16, "<u2": dtypes.uint16,
    "<i4": dtypes.int32, "<u4": dtypes.uint32, "<i8": dtypes.int64, "<u8": dtypes.uint64, "<f2": dtypes.float16,
    "<f4": dtypes.float32, "<f8": dtypes.float64,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DESCRIPTIONS.items()}
_ZIP_HEADER, _EXTRA_HEADER = 30, 4
_PADDING = 0xD935
"""The number of the field that Android's tools pad members with."""


def read(path: str | os.PathLike[str], device: str | None = None) -> Tensor:
    """The array of an NPY file."""
    return read_source(Source(path), device)


def read_source(source: Source, device: str | None = None) -> Tensor:
    """As `read`, of a file that is open."""
    return _array(source, 0, source.size, "the array", device)


def read_archive(source: Source, device: str | None = None) -> dict[str, Tensor]:
    """The arrays of an NPZ file by name."""
    found = {}
    for name, member in archive.members(source).items():
        if not name.endswith(SUFFIX):
            source.fail(f"its members are arrays, with names that end in {SUFFIX}", name, member.begin)
        held, begin = source, member.begin
        if member.compressed:
            inflated = memoryview(archive.contents(source, name, member))
            held, begin = Source.over(inflated, f"{source.path}:{name}", source.function), 0
        found[name.removesuffix(SUFFIX)] = _array(held, begin, begin + member.size, name, device)
    return found


def write(tensor: Tensor, path: str | os.PathLike[str]) -> None:
    """Write an NPY file; bfloat16 and floats of 8 bits, which NumPy does not have, become float32."""
    with replacing(path) as file:
        for part in _parts(tensor):
            file.write(part)


def write_archive(tensors: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Write an NPZ file without compression, each array at a multiple of 64 bytes."""
    with replacing(path) as file, zipfile.ZipFile(file, "w") as target:
        for name, tensor in tensors.items():
            entry, parts = zipfile.ZipInfo(name + SUFFIX), _parts(tensor)
            wide = entry.file_size = sum(len(part) for part in parts)
            padding = -(file.tell() + _ZIP_HEADER + len(entry.filename.encode()) + _EXTRA_HEADER) % _ALIGNMENT
            entry.extra = _PADDING.to_bytes(2, "little") + padding.to_bytes(2, "little") + bytes(padding)
            with target.open(entry, "w", force_zip64=wide > zipfile.ZIP64_LIMIT // 2) as member:
                for part in parts:
                    member.write(part)


def _parts(tensor: Tensor) -> tuple[bytes, memoryview]:
    """The header and the elements of an NPY file."""
    held = tensor.float() if tensor.dtype not in _NAMES else tensor
    facts = {"descr": _NAMES[held.dtype], "fortran_order": False, "shape": held.shape}
    text = repr(facts).encode() + b"\n"
    before = len(MAGIC) + 4
    text = text[:-1] + b" " * (-(before + len(text)) % _ALIGNMENT) + b"\n"
    return MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text, held.data()


def _array(source: Source, begin: int, end: int, field: str, device: str | None) -> Tensor:
    """The array that stands between two places of a file."""
    if source.read(begin, len(MAGIC), field) != MAGIC:
        source.fail("this is no array of NumPy", field, begin)
    version = source.integer(begin + len(MAGIC), 1, field)
    if version not in (1, 2, 3):
        source.fail(f"version {version} is not read, only 1, 2 and 3", field, begin + len(MAGIC))
    at, width = begin + len(MAGIC) + 2, 2 if version == 1 else 4
    length = source.integer(at, width, field)
    if length > _LONGEST_HEADER:
        source.fail(f"a header of {length} bytes is longer than {_LONGEST_HEADER}", field, at)
    facts = _facts(source, at + width, source.read(at + width, length, field), field)
    dtype, shape = _DESCRIPTIONS[facts["descr"]], facts["shape"]
    first = at + width + length
    if first + source.elements(shape, field, at) * dtype.itemsize > end:
        source.fail(f"it ends before {dtype.name} elements of shape {shape!r:.60} do", field, first)
    if facts["fortran_order"] and len(shape) > 1:
        turned = source.tensor(first, dtype, shape[::-1], field, device)
        return turned.permute(tuple(range(len(shape)))[::-1])
    return source.tensor(first, dtype, shape, field, device)


def _facts(source: Source, at: int, text: bytes, field: str) -> dict[str, Any]:
    """The checked header: type, order and shape."""
    try:
        facts = ast.literal_eval(text.decode().strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        source.fail("its header is no dictionary of Python", field, at)
    if not isinstance(facts, dict) or facts.keys() != {"descr", "fortran_order", "shape"}:
        source.fail("its header has to tell the type, the order and the shape", field, at)
    described, shape = facts["descr"], facts["shape"]
    if described not in _NAMES.values():
        kinds = {"O": "Python objects", ">": "big-endian numbers"}
        what = next((kind for sign, kind in kinds.items() if sign in str(described)), f"elements {described!r:.40}")
        source.fail(f"arrays of {what} are not read", field, at)
    if type(facts["fortran_order"]) is not bool or type(shape) is not tuple:
        source.fail("the order is True or False, the shape a tuple", field, at)
    if any(type(size) is not int or size < 0 for size in shape):
        source.fail(f"sizes are integers from 0 on, got {shape!r:.60}", field, at)
    return facts
