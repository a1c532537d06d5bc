"""`lazulite convert IN OUT`: a model file in another format.

What is read is told by its content, what is written by the suffix of OUT: `.safetensors`, `.npz` or `.gguf`.
Tensors go through memory one by one.  Blocks of quantised types stay as they are in GGUF, and become float32
elsewhere; `--dtype` casts floats.  Metadata are kept as far as the format has a place for them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.base.terminal import say, size_text
from lazulite.formats import gguf_writer, npy, safetensors
from lazulite.formats.contents import Contents, Stored, contents
from lazulite.formats.gguf_writer import Packed
from lazulite.ir.dtype import FLOATS, DType, by_name
from lazulite.tensor.tensor import Tensor

_SPLIT = "split."
"""What the keys of GGUF begin with that tell of the parts of a file: the result is one."""


class Lazily(Mapping[str, Any]):
    """Tensors by name, each made when it is asked for."""

    def __init__(self, tensors: Mapping[str, Stored], make: Callable[[Stored], Any]) -> None:
        self._tensors, self._make = tensors, make

    def __getitem__(self, name: str) -> Any:
        return self._make(self._tensors[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def convert(options: argparse.Namespace) -> None:
    """Write the tensors of one file to another one."""
    target = Path(options.target)
    write = _WRITERS.get(target.suffix)
    if write is None:
        raise ArgumentError("convert", f"no format is called {target.suffix!r}", hint=" or ".join(_WRITERS))
    found = _below(contents(options.source, "convert"), options.below)
    if not found.tensors:
        raise ArgumentError(
            "convert", f"{options.source} holds no tensors" + f" below {options.below!r}" * bool(options.below)
        )
    write(found, target, _float_type(options.dtype))
    say(f"{target}: {len(found.tensors)} tensors, {size_text(target.stat().st_size)}")


def _below(found: Contents, name: str) -> Contents:
    """Only the tensors below a name, which is taken off."""
    start = f"{name}." if name else ""
    tensors = {key.removeprefix(start): each for key, each in found.tensors.items() if key.startswith(start)}
    return Contents(found.format, found.metadata, tensors)


def _float_type(name: str) -> DType | None:
    """The type that floats are cast to; None keeps theirs."""
    if not name:
        return None
    try:
        chosen = by_name(name)
    except KeyError:
        chosen = None
    if chosen not in FLOATS:
        known = ", ".join(sorted(dtype.name for dtype in FLOATS))
        raise ArgumentError("convert", f"{name!r:.40} is no type of floats", rule=f"The types are {known}.")
    return chosen


def _elements(each: Stored, dtype: DType | None) -> Tensor:
    tensor = each.tensor()
    return tensor.cast(dtype) if dtype is not None and tensor.dtype.is_float else tensor


def _to_safetensors(found: Contents, target: Path, dtype: DType | None) -> None:
    metadata = {
        str(key): value if isinstance(value, str) else json.dumps(value, default=str)
        for key, value in found.metadata.items()
    }
    safetensors.write(Lazily(found.tensors, lambda each: _elements(each, dtype)), target, metadata, "convert")


def _to_npz(found: Contents, target: Path, dtype: DType | None) -> None:
    if found.metadata:
        say("NPZ has no place for metadata: they are left out")
    npy.write_archive(Lazily(found.tensors, lambda each: _elements(each, dtype)), target)


def _to_gguf(found: Contents, target: Path, dtype: DType | None) -> None:
    def part(each: Stored) -> Tensor | Packed:
        return _elements(each, dtype) if dtype is not None or each.packed is None else each.packed()

    kept = {str(key): value for key, value in found.metadata.items() if not str(key).startswith(_SPLIT)}
    gguf_writer.write(Lazily(found.tensors, part), target, kept, "convert")


_WRITERS = {".safetensors": _to_safetensors, ".npz": _to_npz, ".gguf": _to_gguf}
