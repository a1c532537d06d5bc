"""torch checkpoints, read as data: tensors, numbers, texts, lists, tuples and dictionaries.

Both forms are known: the archive (a zip file with `data.pkl` and one member for each storage) that
`torch.save` writes since 1.6, and the row of pickles before it.  The pickle is run by `formats.opcodes`,
so a file can name nothing that runs.  Members are stored, not compressed, and are used where they are.
Tensors with strides, and several over one storage, mean what they mean in torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, cast

from lazulite.formats import archive
from lazulite.formats.opcodes import Builder, RefusedError, interpret, key
from lazulite.formats.source import Cursor, Source
from lazulite.formats.strides import is_whole, strided
from lazulite.ir.dtype import DType, by_name, dtypes
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
PICKLE = "data.pkl"
"""The member of an archive that says what the others are."""
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001


@dataclass
class _Storage:
    """The elements that tensors of a checkpoint share."""

    dtype: DType
    count: int
    open: Callable[[tuple[int, ...]], Tensor]
    """All of them as a tensor of some shape."""
    base: Tensor | None = None

    @property
    def elements(self) -> Tensor:
        """All of them, of rank 1."""
        self.base = self.open((self.count,)) if self.base is None else self.base
        return self.base.reshape(self.count)

    def tensor(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
        """Some of them: a storage that is one tensor, as most are, is used as it is; others are views of the first."""
        if is_whole(self.count, offset, shape, strides) and self.base is None:
            self.base = self.open(shape)
            return self.base
        return strided(self.elements, offset, shape, strides)


def read(path: str | os.PathLike[str], device: str | None = None) -> Any:
    """What a checkpoint holds; FormatError where it is damaged or names anything but plain values and tensors."""
    return read_source(Source(path), device)


def read_source(source: Source, device: str | None = None) -> Any:
    """As `read`, of a file that is open."""
    if source.starts_with(archive.MAGICS[0]):
        return _Archive(source, device).read()
    return _Legacy(source, device).read()


# --- the archive ---------------------------------------------------------------------------------


class _Archive:
    """A zip file of `torch.save`."""

    def __init__(self, source: Source, device: str | None) -> None:
        self.source, self.device = source, device
        self.storages: dict[str, _Storage] = {}
        self.members = archive.members(source)
        roots = [name.removesuffix(PICKLE) for name in self.members if name.endswith("/" + PICKLE)]
        if len(roots) != 1:
            source.fail(f"an archive of torch has one member {PICKLE} in a folder", "the archive")
        self.root = roots[0]

    def read(self) -> Any:
        if self.root + "byteorder" in self.members:
            begin, length = self.place("byteorder")
            if self.source.read(begin, length, "byteorder").strip() != b"little":
                self.source.fail("only little-endian numbers are read", "byteorder", begin)
        begin, length = self.place(PICKLE)
        return _pickled(self.source, begin, begin + length, PICKLE, self.storage)[0]

    def place(self, name: str) -> tuple[int, int]:
        """Where the bytes of a member begin, and how many there are."""
        member = self.members.get(self.root + name)
        if member is None:
            self.source.fail("the archive has no such member", name)
        if member.compressed:
            self.source.fail("members have to be stored as they are, not compressed", name, member.begin)
        return member.begin, member.stored

    def storage(self, identifier: Any) -> _Storage:
        dtype, key, count = _described(identifier)
        if key not in self.storages:
            name = f"data/{key}"
            begin, length = self.place(name)
            if count * dtype.itemsize != length:
                self.source.fail(f"{length} bytes do not hold {count} elements of {dtype.name}", name, begin)
            opened = partial(self.source.tensor, begin, dtype, field=name, device=self.device)
            self.storages[key] = _Storage(dtype, count, opened)
        known = self.storages[key]
        if (known.dtype, known.count) != (dtype, count):
            self.source.fail("a storage is described in two ways", key)
        return known


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
        _, at = self.pickled(begin, "the value", self.storage)
        keys, at = self.pickled(at, "the keys of the storages")
        if (
            type(keys) is not list
            or any(type(name) is not str for name in keys)
            or sorted(keys) != sorted(self.storages)
        ):
            self.source.fail("they are not those of the value", "the keys of the storages", at)
        for name in keys:
            storage = self.storages[name]
            if self.source.integer(at, 8, name) != storage.count:
                self.source.fail(f"its length is not {storage.count}", name, at)
            self.places[name] = at + 8
            at += 8 + storage.count * storage.dtype.itemsize
        self.source.require(0, at, "the last storage")
        self.storages.clear()
        return self.pickled(begin, "the value", self.storage)[0]

    def pickled(self, begin: int, what: str, persistent: Callable[[Any], Any] | None = None) -> tuple[Any, int]:
        return _pickled(self.source, begin, self.source.size, what, persistent)

    def _facts(self) -> int:
        """Check the first three pickles; where the value begins."""
        magic, at = self.pickled(0, "the magic number")
        if magic != _LEGACY_MAGIC:
            self.source.fail("this is no checkpoint of torch", "the magic number", 0)
        protocol, at = self.pickled(at, "the protocol")
        system, at = self.pickled(at, "the system")
        if protocol != _LEGACY_PROTOCOL or type(system) is not dict or system.get("little_endian") is not True:
            self.source.fail(f"only protocol {_LEGACY_PROTOCOL} with little-endian numbers is read", "the system", at)
        return at

    def storage(self, identifier: Any) -> _Storage:
        dtype, key, count = _described(identifier)
        self.source.require(0, count * dtype.itemsize, key)
        known = self.storages.setdefault(key, _Storage(dtype, count, partial(self._elements, key, dtype)))
        if (known.dtype, known.count) != (dtype, count):
            self.source.fail("a storage is described in two ways", key)
        return known

    def _elements(self, key: str, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        if key not in self.places:  # the first pass: nothing reads what it makes
            return Tensor.full(shape, 0, dtype=dtype, device=self.device)
        return self.source.tensor(self.places[key], dtype, shape, key, self.device)


# --- what the pickle names -----------------------------------------------------------------------


def _pickled(
    source: Source, begin: int, end: int, what: str, persistent: Callable[[Any], Any] | None
) -> tuple[Any, int]:
    """The value of a pickle that begins at a place of the file, and where it ends, which is before `end`."""
    cursor = Cursor(source.memory[begin:end])
    try:
        return interpret(cast("IO[bytes]", cursor), _TABLE, persistent), begin + cursor.tell()
    except RefusedError as refused:
        source.fail(refused.reason, what, begin + refused.offset)


def _described(identifier: Any) -> tuple[DType, str, int]:
    """Element type, key and number of elements of a storage that a pickle refers to."""
    kind, dtype, name, _, count, *_ = identifier
    if kind != "storage" or not isinstance(dtype, DType) or type(name) is not str:
        raise TypeError("a storage has a type and a key")
    if type(count) is not int or count < 0:
        raise ValueError("a storage has a number of elements")
    return dtype, name, count


def _tensor(storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> Tensor:
    """Elements of a storage: from an offset, with a number of elements between neighbours along each axis."""
    if not isinstance(storage, _Storage) or type(shape) is not tuple or type(strides) is not tuple:
        raise TypeError("a tensor is made of a storage, an offset, a shape and strides")
    return storage.tensor(offset, shape, strides)


def _tensor_of_type(
    storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], _wanted: Any, _hooks: Any, dtype: Any,
    *_: Any,
) -> Tensor:  # fmt: skip
    """As `_tensor`, of a storage of bytes."""
    if not isinstance(dtype, DType) or not isinstance(storage, _Storage) or storage.dtype is not dtypes.uint8:
        raise TypeError("a tensor over bytes needs a dtype")
    return strided(storage.elements.bitcast(dtype), offset, shape, strides)


def _dictionary(items: Any = ()) -> dict[Any, Any]:
    if type(items) not in (list, tuple):
        raise TypeError("an ordered dictionary is made of pairs")
    return {key(name): value for name, value in items}


def _set(items: Any = ()) -> set[Any]:
    if type(items) not in (list, tuple):
        raise TypeError("a set is made of a list")
    return set(map(key, items))


def _latin(text: str, encoding: str) -> bytes:
    """How protocol 2 spells bytes."""
    if encoding != "latin1" or type(text) is not str:
        raise ValueError(f"bytes are spelled as a text in latin1, not {encoding!r:.20}")
    return text.encode("latin1")


def _size(sizes: Any = ()) -> tuple[Any, ...]:
    if type(sizes) not in (list, tuple):
        raise TypeError("a size is made of a list")
    return tuple(sizes)


def _device_name(kind: str, index: int | None = None) -> str:
    return kind if index is None else f"{kind}:{int(index)}"


_REBUILT = Builder(_tensor)
_TABLE: Mapping[str, Any] = {
    **{f"torch.{kind}Storage": by_name(name) for kind, name in _STORAGES.items()},
    "torch.storage.UntypedStorage": dtypes.uint8,
    **{f"torch.{name}": by_name(ours) for name, ours in _DTYPES.items()},
    "torch._utils._rebuild_tensor": _REBUILT,
    "torch._utils._rebuild_tensor_v2": _REBUILT,
    "torch._utils._rebuild_tensor_v3": Builder(_tensor_of_type),
    "torch._utils._rebuild_parameter": Builder(lambda data, *_: data),
    "torch._utils._rebuild_parameter_with_state": Builder(lambda data, *_: data),
    "torch.Size": Builder(_size),
    "torch.device": Builder(_device_name),
    "builtins.set": Builder(_set),
    "__builtin__.set": Builder(_set),
    "collections.OrderedDict": Builder(_dictionary),
    "_codecs.encode": Builder(_latin),
}
"""Everything that a checkpoint may name."""
