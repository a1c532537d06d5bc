"""What is in a model file of any format, as it is stored: metadata, and tensors with their types and sizes.

Other than `load`, which gives the elements, this keeps quantised tensors as blocks and tells what takes how
much room.  A tensor is made when it is asked for, and again when it is asked for again, so that whoever
goes through them one by one holds one at a time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lazulite.formats import gguf, safetensors
from lazulite.formats.gguf_writer import Packed
from lazulite.formats.load import format_of, load, model_files
from lazulite.formats.quants import Quant
from lazulite.formats.source import Source
from lazulite.runtime.registry import Device
from lazulite.tensor.tensor import Tensor

if TYPE_CHECKING:
    from lazulite.formats.onnx.external import ExternalFiles
    from lazulite.formats.onnx.proto import TensorData


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
        return _of_onnx(source)
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


def _of_onnx(source: Source) -> Contents:
    """The initializers of a model, and in the place of metadata what it takes, gives and consists of."""
    from lazulite.formats.onnx.external import ExternalFiles
    from lazulite.formats.onnx.proto import Graph, Model
    from lazulite.formats.onnx.runner import described
    from lazulite.formats.onnx.wire import Part, decode

    model = decode(Model, Part(source, 0, source.size), "model")
    graph, files = model.graph or Graph(), ExternalFiles(source, source.path.parent)
    metadata: dict[str, Any] = {"producer": model.producer_name, "representation": model.ir_version}
    metadata |= {f"operators of {each.domain or 'ai.onnx'}": each.version for each in model.opset_import}
    tensors = {data.name: _of_initializer(data, source, files) for data in graph.initializer}
    metadata |= {f"input {info.name}": described(info) for info in graph.input if info.name not in tensors}
    metadata |= {f"output {info.name}": described(info) for info in graph.output}
    counts = Counter(node.op_type for node in graph.node).most_common()
    return Contents("ONNX", metadata | {"nodes": ", ".join(f"{count} {name}" for name, count in counts)}, tensors)


def _of_initializer(data: TensorData, source: Source, files: ExternalFiles) -> Stored:
    from lazulite.formats.onnx.proto import NAMES
    from lazulite.formats.onnx.values import BITS, lifted, read_tensor

    def tensor() -> Tensor:
        return lifted(read_tensor(data, source, files, Device.DEFAULT, data.name), Device.DEFAULT)

    name = NAMES[data.data_type] if 0 < data.data_type < len(NAMES) else f"type {data.data_type}"
    return Stored(name, tuple(data.dims), (prod(data.dims) * BITS.get(name, 0) + 7) // 8, tensor)


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
