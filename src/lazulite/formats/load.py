"""`load`: what is in a model file, whatever its format.

The format is told by the first bytes, never by the name.  A folder, or the index of a model that is
spread over several files, gives the tensors of all of them.  Nothing that a file contains is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lazulite.base.errors import FormatError
from lazulite.formats import archive, gguf, npy, safetensors, torch
from lazulite.formats.source import Source
from lazulite.tensor.tensor import Tensor

WHOLE, INDEX = "model.safetensors", ".safetensors.index.json"
"""How the files of a folder are called: one with everything, and what lists several."""
_LONGEST_INDEX = 100_000_000
_PICKLE = b"\x80"
_NEWEST_ONNX = 64
"""No version of ONNX's representation comes near; an ONNX file begins with its version and the field after it."""
_ONNX_FIELDS = b"\x12\x1a\x22\x28\x32\x3a\x42"


def load(path: str | os.PathLike[str], device: str | None = None) -> Any:
    """What a model file holds: tensors by name, from safetensors, GGUF, NPZ, torch checkpoints, and folders of them.

    An NPY file gives one tensor, a checkpoint whatever it holds, an ONNX file an `OnnxRunner`.  Elements are
    read when they are needed, those of quantised GGUF tensors as float32.  FormatError, naming the file, the
    field and the offset, where a file is damaged or of no known format.

    >>> from lazulite.nn.state import safe_save
    >>> safe_save({"weight": Tensor([1.0, 2.0])}, "model.safetensors")
    >>> load("model.safetensors")["weight"].tolist()
    [1.0, 2.0]
    """
    files = model_files(Path(path))
    if len(files) > 1:
        return _joined(files, device)
    source = Source(files[0])
    found = _READERS.get(format_of(source))
    if found is None:
        source.fail(
            "no format begins like this", "the first bytes",
            hint="a safetensors, GGUF, ONNX, NPY or NPZ file, or a checkpoint of torch",
        )  # fmt: skip
    return found(source, device)


def format_of(source: Source) -> str:
    """The format that the first bytes tell: safetensors, gguf, npz, npy, torch, index, onnx, or an empty text."""
    head = bytes(source.memory[:16])
    if head.startswith(gguf.MAGIC):
        return "gguf"
    if head.startswith(npy.MAGIC):
        return "npy"
    if head.startswith(archive.MAGICS):
        names = archive.members(source)
        return "npz" if all(name.endswith(npy.SUFFIX) for name in names) else "torch"
    if safetensors.begins_header(head[8:]) and source.integer(0, 8, "the first bytes") <= safetensors.LONGEST_HEADER:
        return "safetensors"
    if head.startswith(_PICKLE):
        return "torch"
    if head.lstrip().startswith(b"{"):
        return "index"
    if len(head) > 2 and head[0] == 8 and 0 < head[1] <= _NEWEST_ONNX and head[2] in _ONNX_FIELDS:
        return "onnx"
    return ""


def model_files(place: Path) -> list[Path]:
    """The file itself; of a folder its index, its model.safetensors, all safetensors files, or its one GGUF file."""
    if not place.is_dir():
        return [place]
    indices, files = sorted(place.glob("*" + INDEX)), sorted(place.glob("*.safetensors"))
    models = [path for path in sorted(place.glob("*.gguf")) if not gguf.is_later_part(path)]
    if len(indices) == 1:
        return indices
    if place / WHOLE in files:  # others are copies of it, or no models
        return [place / WHOLE]
    if files and not indices:
        return files
    if len(models) == 1 and not indices:
        return models
    names = ", ".join(path.name for path in (*indices, *files, *models)) or "none"
    raise FormatError(
        "load", "a folder holds one model, as safetensors or GGUF", file=str(place), field="the folder", offset=0,
        rule=f"What there is: {names:.200}", hint="name the file",
    )  # fmt: skip


def _joined(files: list[Path], device: str | None) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for path in files:
        source = Source(path)
        for name, tensor in safetensors.read_source(source, device).items():
            if name in found:
                source.fail("a tensor of another file of the folder has this name", name)
            found[name] = tensor
    return found


def _listed(source: Source, device: str | None) -> dict[str, Tensor]:
    """The tensors of an index, each from the file that it names, which stands beside it."""
    places = _weight_map(source)
    files = dict.fromkeys(places.values())
    held = {name: safetensors.read_source(Source(source.path.with_name(name)), device) for name in files}
    for name, file in places.items():
        if name not in held[file]:
            source.fail(f"the file {file} has no such tensor", name)
    return {name: held[file][name] for name, file in places.items()}


def _weight_map(source: Source) -> Mapping[str, str]:
    """The checked list of an index: the file of each tensor."""
    if source.size > _LONGEST_INDEX:
        source.fail(f"an index of {source.size} bytes is longer than {_LONGEST_INDEX}", "weight_map")
    try:
        index = json.loads(bytes(source.memory))
        places = index["weight_map"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        source.fail(f"it is no index of a model: {error}"[:200], "weight_map")
    if not isinstance(places, dict):
        source.fail("it has to be files by names of tensors", "weight_map")
    for name, file in places.items():
        if not isinstance(file, str) or file in ("", ".", "..") or os.path.basename(file) != file or "\0" in file:
            source.fail(f"{file!r:.60} is no plain name of a file in the same folder", name)
    return places


def _onnx(source: Source, device: str | None) -> Any:
    """A model of operators, which is run instead of read."""
    from lazulite.formats.onnx.runner import OnnxRunner  # brings NumPy along, which no other format needs

    return OnnxRunner(source.path, device)


_READERS: dict[str, Callable[[Source, str | None], Any]] = {
    "safetensors": safetensors.read_source,
    "gguf": lambda source, device: gguf.read_source(source).tensors(device),
    "npz": npy.read_archive,
    "npy": npy.read_source,
    "torch": torch.read_source,
    "index": _listed,
    "onnx": _onnx,
}
