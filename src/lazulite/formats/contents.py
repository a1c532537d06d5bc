"""What is in a model file of any format, as it is stored: metadata, and tensors with their types and sizes.

Other than `load`, which gives the elements, this keeps quantised tensors as blocks and tells what takes how
much room.  A tensor is made when it is asked for, and again when it is asked for again, so that whoever
goes through them one by one holds one at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.formats import gguf, safetensors
from lazulite.formats.gguf_writer import Packed
from lazulite.formats.load import format_of, load, model_files
from lazulite.formats.quants import Quant
from lazulite.formats.source import Source
from lazulite.tensor.tensor import Tensor


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: the name of its type, its shape, its bytes there, and how to get it."""

    kind: str
    shape: tuple[int, ...]
    nbytes: int
    tensor: Callable[[], Tensor]
    packed: Callable[[], Packed] | None = None
    """How to get the blocks of a quantised one."""


@dataclass(frozen=True)
class Contents:
    """All of a file: the name of its format, metadata by key, tensors by name."""

    format: str
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Stored]


def contents(path: str | os.PathLike[str], function: str) -> Contents:
    """What is in a file or folder; values of a checkpoint have dotted names, a single array is called "array"."""
    files = model_files(Path(path))
    source = Source(files[0], function)
    kind = format_of(source)
    if kind == "onnx":
        raise ArgumentError(function, f"{path} is an ONNX model, which is run, not taken apart")
    if kind == "gguf":
        return _of_gguf(source)
    metadata = safetensors.source_metadata(source) if kind == "safetensors" and len(files) == 1 else {}
    found = dict(_flat(load(path), "array" if kind == "npy" else ""))
    tensors = {name: value for name, value in found.items() if isinstance(value, Tensor)}
    others = {name: value for name, value in found.items() if not isinstance(value, Tensor)}
    return Contents(
        kind.replace("index", "safetensors"), metadata or others, {n: _stored(t) for n, t in tensors.items()}
    )


def _stored(tensor: Tensor) -> Stored:
    return Stored(tensor.dtype.name, tensor.shape, tensor.nbytes(), tensor.contiguous)


def _of_gguf(source: Source) -> Contents:
    found = gguf.read_source(source)
    tensors = {name: _of_entry(name, entry) for name, entry in found.entries.items()}
    return Contents("GGUF", found.metadata, tensors)


def _of_entry(name: str, entry: gguf.Entry) -> Stored:
    kind = entry.kind
    packed = partial(_packed, kind, entry, name) if isinstance(kind, Quant) else None
    return Stored(entry.kind_name, entry.shape, entry.nbytes, partial(entry.tensor, name), packed)


def _packed(kind: Quant, entry: gguf.Entry, name: str) -> Packed:
    return Packed(kind, entry.packed(name))


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every tensor and plain value in nested containers, with the path to it."""
    pending, entered = [(name, value)], set[int]()
    while pending:
        path, part = pending.pop()
        inner = part.items() if isinstance(part, dict) else enumerate(part) if type(part) in (list, tuple) else None
        if inner is None:
            yield path, part
        elif id(part) not in entered:
            entered.add(id(part))
            pending += reversed([(f"{path}.{key}" if path else str(key), each) for key, each in inner])
