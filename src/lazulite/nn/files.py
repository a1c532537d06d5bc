"""Files of models under the names that tinygrad gives the functions: thin forms of what `formats` does.

Each takes a path, or a tensor that is the bytes of a file, such as ``Tensor(path)``.  From a path the
tensors are private: writing to one leaves the file alone.  From a tensor they are views of it: writing
to one writes there.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Mapping
from typing import Any

from lazulite.base.errors import FormatError
from lazulite.formats import archive, gguf, safetensors, torch
from lazulite.formats.source import Cursor, Source, bytes_of
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

File = Tensor | str | os.PathLike[str]


class TensorIO(Cursor):
    """A tensor of bytes as a file to read from.

    >>> TensorIO(Tensor(b"some text")).read(4)
    b'some'
    """

    def __init__(self, t: Tensor) -> None:
        super().__init__(bytes_of(t, "TensorIO"))


def safe_load(fn: File) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name.

    >>> safe_save({"a": Tensor([1, 2])}, "model.safetensors")
    >>> safe_load("model.safetensors")["a"].tolist()
    [1, 2]
    """
    return safetensors.read_source(_source(fn, "safe_load"))


def safe_load_metadata(t: File) -> tuple[Tensor, int, dict[str, Any]]:
    """The bytes of a safetensors file, where its elements begin, and its header.

    >>> safe_save({"a": Tensor([1, 2])}, "model.safetensors", {"made by": "hand"})
    >>> safe_load_metadata("model.safetensors")[2]["__metadata__"]
    {'made by': 'hand'}
    """
    source = _source(t, "safe_load_metadata")
    begin, header = safetensors.read_header(source)
    return t if isinstance(t, Tensor) else source.tensor(0, dtypes.uint8, (source.size,), "the file"), begin, header


def safe_save(
    tensors: Mapping[str, Tensor], fn: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a safetensors file, whole or not at all; metadata that are no texts are written as JSON.

    >>> safe_save({"a": Tensor([1, 2])}, "model.safetensors")
    """
    texts = {name: text if isinstance(text, str) else json.dumps(text) for name, text in (metadata or {}).items()}
    if tensors:
        Tensor.realize(*tensors.values())
    safetensors.write(tensors, fn, texts)


def torch_load(t: File) -> Any:
    """What a torch checkpoint holds: tensors and plain containers; whatever else it names is refused."""
    return torch.read_source(_source(t, "torch_load"))


def gguf_load(t: File) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The metadata of a GGUF file, and its tensors by name, those of quantised types as float32."""
    found = gguf.read_source(_source(t, "gguf_load"))
    return found.metadata, found.tensors()


def zip_extract(t: File) -> dict[str, Tensor]:
    """The files in a zip archive by name, as bytes; nothing is written anywhere."""
    source = _source(t, "zip_extract")
    found = {}
    for name, member in archive.members(source).items():
        if member.compressed:
            found[name] = Tensor(archive.contents(source, name, member))
        else:
            found[name] = source.tensor(member.begin, dtypes.uint8, (member.size,), name)
    return found


def tar_extract(t: File) -> dict[str, Tensor]:
    """The files in a tar archive by name, as bytes; nothing is written anywhere, and links are left out."""
    source = _source(t, "tar_extract")
    found: dict[str, Tensor] = {}
    reached = -1
    try:
        with tarfile.open(fileobj=Cursor(source.memory), mode="r:") as file:
            for member in file:
                if member.offset <= reached:  # sizes below 0 would lead back, for ever
                    source.fail("its header is not behind that of the member before", member.name, reached)
                reached = member.offset
                if member.isreg() and not member.issparse():
                    place = member.offset_data, dtypes.uint8, (member.size,), member.name
                    found[member.name] = source.tensor(*place)
    except FormatError:
        raise
    except (tarfile.TarError, ValueError, EOFError, OSError, RecursionError) as error:
        source.fail(f"it is no tar archive: {error}", "the archive")
    return found


def _source(file: File, function: str) -> Source:
    return Source.of(file, function) if isinstance(file, Tensor) else Source(file, function)
