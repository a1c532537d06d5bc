"""torch checkpoints, read as data: tensors, numbers, texts, lists, tuples and dictionaries.

Both forms are known: the archive (a zip file with `data.pkl` and one member for each storage) that
`torch.save` writes since 1.6, and the row of pickles before it.  The pickle is run by `formats.opcodes`,
so a file can name nothing that runs.  Members are stored, not compressed, and are used where they are.
Tensors with strides, and several over one storage, mean what they mean in torch.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lazulite.formats.opcodes import Builder, RefusedError, interpret
from lazulite.formats.source import Source
from lazulite.formats.strides import strided
from lazulite.ir.dtype import DType, by_name, dtypes, names
from lazulite.tensor.tensor import Tensor

_STORAGES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "Untyped": "uint8",
}  # fmt: skip
_DTYPES = {
    **{name: name for name in (
        "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
        "uint64", "bool")},
    "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2", "float8_e4m3fnuz": "fp8e4m3fnuz",
    "float8_e5m2fnuz": "fp8e5m2fnuz",
}  # fmt: skip
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_LOCAL_HEADER = 30
"""Bytes of the fixed part of a zip member's own header."""


@dataclass
class _Storage:
    """The elements that tensors of a checkpoint share."""

    dtype: DType
    count: int
    open: Callable[[], Tensor]
    _opened: list[Tensor] = field(default_factory=list)

    @property
    def elements(self) -> Tensor:
        """All of them, of rank 1."""
        if not self._opened:
            self._opened.append(self.open())
        return self._opened[0]


def read(path: str | os.PathLike[str], device: str | None = None) -> Any:
    """What a checkpoint holds; FormatError where it is damaged or names anything but plain values and tensors."""
    source = Source(path)
    if source.starts_with(b"PK\3\4"):
        return _Archive(source, device).read()
    return _Legacy(source, device).read()


# --- the archive ---------------------------------------------------------------------------------


class _Archive:
    """A zip file of `torch.save`."""

    def __init__(self, source: Source, device: str | None) -> None:
        self.source, self.device = source, device
        self.storages: dict[str, _Storage] = {}
        self.members = _members(source)
        roots = [name.removesuffix("data.pkl") for name in self.members if name.endswith("/data.pkl")]
        if len(roots) != 1:
            source.fail("an archive of torch has one member data.pkl in a folder", "the archive")
        self.root = roots[0]

    def read(self) -> Any:
        order = self.members.get(self.root + "byteorder")
        if order is not None and self.source.read(*order, "byteorder").strip() != b"little":
            self.source.fail("only little-endian numbers are read", "byteorder", order[0])
        begin, length = self.members[self.root + "data.pkl"]
        value, end = _pickled(self.source, begin, "data.pkl", self.storage)
        if end > begin + length:
            self.source.fail("it goes on after its member", "data.pkl", begin)
        return value

    def storage(self, identifier: Any) -> _Storage:
        dtype, key, count = _described(identifier)
        if key not in self.storages:
            name = f"{self.root}data/{key}"
            if name not in self.members:
                self.source.fail("the archive has no such member", name)
            begin, length = self.members[name]
            if count * dtype.itemsize != length:
                self.source.fail(f"{length} bytes do not hold {count} elements of {dtype.name}", name, begin)
            self.storages[key] = _Storage(
                dtype, count, partial(self.source.tensor, begin, dtype, (count,), name, self.device)
            )
        known = self.storages[key]
        if (known.dtype, known.count) != (dtype, count):
            self.source.fail("a storage is described in two ways", key)
        return known


def _members(source: Source) -> dict[str, tuple[int, int]]:
    """Where the bytes of each member begin, and how many there are."""
    try:
        with zipfile.ZipFile(source.path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError) as error:
        source.fail(f"it is no zip archive: {error}", "the archive")
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        name = entry.filename
        if name in found:
            source.fail("a member occurs twice", name, entry.header_offset)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            source.fail("members have to be stored as they are, not compressed", name, entry.header_offset)
        header = source.read(entry.header_offset, _LOCAL_HEADER, name)
        if not header.startswith(b"PK\3\4"):
            source.fail("its header is not where the directory says", name, entry.header_offset)
        names_length = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        begin = entry.header_offset + _LOCAL_HEADER + names_length
        source.require(begin, entry.file_size, name)
        found[name] = begin, entry.file_size
    return found


# --- the row of pickles --------------------------------------------------------------------------


class _Legacy:
    """A file of `torch.save` before 1.6: three pickles of facts, the value, the keys of the storages, the elements."""

    def __init__(self, source: Source, device: str | None) -> None:
        self.source, self.device = source, device
        self.storages: dict[str, _Storage] = {}
        self.places: dict[str, int] = {}

    def read(self) -> Any:
        begin = self._facts()
        # The value stands before the elements: the first pass learns which there are, the second has their places.
        _, at = _pickled(self.source, begin, "the value", self.storage)
        keys, at = _pickled(self.source, at, "the keys of the storages", None)
        if type(keys) is not list or sorted(map(str, keys)) != sorted(self.storages):
            self.source.fail("they are not those of the value", "the keys of the storages", at)
        for key in keys:
            storage = self.storages[key]
            if self.source.integer(at, 8, key) != storage.count:
                self.source.fail(f"its length is not {storage.count}", key, at)
            self.places[key] = at + 8
            at += 8 + storage.count * storage.dtype.itemsize
        self.source.require(0, at, "the last storage")
        self.storages.clear()
        return _pickled(self.source, begin, "the value", self.storage)[0]

    def _facts(self) -> int:
        """Check the first three pickles; where the value begins."""
        magic, at = _pickled(self.source, 0, "the magic number", None)
        if magic != _LEGACY_MAGIC:
            self.source.fail("this is no checkpoint of torch", "the magic number", 0)
        protocol, at = _pickled(self.source, at, "the protocol", None)
        system, at = _pickled(self.source, at, "the system", None)
        if protocol != _LEGACY_PROTOCOL or type(system) is not dict or system.get("little_endian") is not True:
            self.source.fail(f"only protocol {_LEGACY_PROTOCOL} with little-endian numbers is read", "the system", at)
        return at

    def storage(self, identifier: Any) -> _Storage:
        dtype, key, count = _described(identifier)
        self.source.require(0, count * dtype.itemsize, key)
        known = self.storages.setdefault(key, _Storage(dtype, count, partial(self._elements, key, dtype, count)))
        if (known.dtype, known.count) != (dtype, count):
            self.source.fail("a storage is described in two ways", key)
        return known

    def _elements(self, key: str, dtype: DType, count: int) -> Tensor:
        if key not in self.places:  # the first pass: nothing reads what it makes
            return Tensor.full((count,), 0, dtype=dtype, device=self.device)
        return self.source.tensor(self.places[key], dtype, (count,), key, self.device)


# --- what the pickle names -----------------------------------------------------------------------


def _pickled(source: Source, begin: int, what: str, persistent: Callable[[Any], Any] | None) -> tuple[Any, int]:
    """The value of a pickle in the file, and where it ends."""
    stream = source.stream(begin)
    try:
        return interpret(stream, _TABLE, persistent), stream.tell()
    except RefusedError as refused:
        source.fail(refused.reason, what, refused.offset)


def _described(identifier: Any) -> tuple[DType, str, int]:
    """Element type, key and number of elements of a storage that a pickle refers to."""
    kind, dtype, key, _, count, *_ = identifier
    if kind != "storage" or not isinstance(dtype, DType) or type(key) is not str or type(count) is not int or count < 0:
        raise ValueError(f"no storage is described by {identifier!r:.60}")
    return dtype, key, count


def _tensor(storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Tensor:
    """Elements of a storage: from an offset, with a number of elements between neighbours along each axis."""
    if not isinstance(storage, _Storage) or type(shape) is not tuple or type(strides) is not tuple:
        raise TypeError("a tensor is made of a storage, an offset, a shape and strides")
    return strided(storage.elements, offset, shape, strides)


def _tensor_of_type(
    storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], _wanted: Any, _hooks: Any, dtype: Any,
    *_: Any,
) -> Tensor:  # fmt: skip
    """As `_tensor`, of a storage of bytes."""
    if not isinstance(dtype, DType) or not isinstance(storage, _Storage) or storage.dtype is not dtypes.uint8:
        raise TypeError("a tensor over bytes needs a dtype")
    return strided(storage.elements.bitcast(dtype), offset, shape, strides)


def _dictionary(items: Any = ()) -> dict[Any, Any]:
    if type(items) not in (list, tuple) or not all(type(key) is str for key, _ in items):
        raise TypeError("an ordered dictionary is made of pairs")
    return dict(items)


def _latin(text: str, encoding: str) -> bytes:
    """How protocol 2 spells bytes."""
    if encoding != "latin1":
        raise ValueError(f"bytes are spelled in latin1, not {encoding!r:.20}")
    return text.encode("latin1")


def _device_name(kind: str, index: int | None = None) -> str:
    return kind if index is None else f"{kind}:{int(index)}"


_REBUILT = Builder(_tensor)
_TABLE: Mapping[str, Any] = {
    **{f"torch.{kind}Storage": by_name(name) for kind, name in _STORAGES.items()},
    "torch.storage.UntypedStorage": dtypes.uint8,
    **{f"torch.{name}": by_name(ours) for name, ours in _DTYPES.items() if ours in names()},
    "torch._utils._rebuild_tensor": _REBUILT,
    "torch._utils._rebuild_tensor_v2": _REBUILT,
    "torch._utils._rebuild_tensor_v3": Builder(_tensor_of_type),
    "torch._utils._rebuild_parameter": Builder(lambda data, *_: data),
    "torch._utils._rebuild_parameter_with_state": Builder(lambda data, *_: data),
    "torch.Size": Builder(tuple),
    "torch.device": Builder(_device_name),
    "collections.OrderedDict": Builder(_dictionary),
    "_codecs.encode": Builder(_latin),
}
"""Everything that a checkpoint may name."""
