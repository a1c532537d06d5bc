"""Random opcodes as the pickle of a checkpoint, and random damage to files of every format.

Whatever comes: tensors and plain values, or one `FormatError` that names the file; nothing is run and no
other exception leaves.
"""

from __future__ import annotations

import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import FormatError, Tensor, dtypes, load
from lazulite.formats import gguf_writer, npy, safetensors
from lazulite.nn.state import torch_load
from support.checkpoints import Global, Persistent, opcodes, pickled
from support.model_files import checkpoint

FLOATS = struct.pack("<4f", 1, 2, 3, 4)
REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
STORAGE = Persistent(("storage", Global("torch", "FloatStorage"), "0", "cpu", 4))
NAMES = [
    ("torch", "FloatStorage"), ("torch", "float16"), ("torch", "Size"), ("torch", "device"), ("_codecs", "encode"),
    ("collections", "OrderedDict"), ("builtins", "set"), ("torch._utils", "_rebuild_parameter"), ("os", "system"),
    ("builtins", "eval"), ("torch._utils", "_rebuild_tensor_v3"), ("torch", "_utils"), ("", ""),
]  # fmt: skip
OPCODES = [bytes([code]) for code in b"(0123NR)]}.abdehijlopqrstu\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94"]
WHOLE = [REBUILD, STORAGE, 0, 1, 7, -1, 1 << 40, "0", "latin1", "a", b"x", (2,), (1,), (2, 2), 0.5, None, True, {}, []]

step = (
    st.sampled_from(OPCODES)
    | st.sampled_from(WHOLE).map(opcodes)
    | st.sampled_from(NAMES).map(lambda name: opcodes(Global(*name)))
    | st.binary(max_size=3)
    | st.builds(lambda number: b"K" + bytes([number]), st.integers(0, 255))
    | st.builds(lambda code, number: code + bytes([number]), st.sampled_from([b"h", b"q"]), st.integers(0, 4))
    | st.just(opcodes(REBUILD(STORAGE, 0, (2, 2), (2, 1), False, {})))
)


def plain(value) -> bool:
    """Whether a value is made of tensors and plain containers only."""
    pending, entered = [value], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, dict | list | tuple | set | frozenset):
            if id(part) not in entered:
                entered.add(id(part))
                pending += [*part, *part.values()] if isinstance(part, dict) else part
        elif not isinstance(part, Tensor | str | bytes | int | float | type(None) | type(dtypes.int8)) and not hidden(
            part
        ):
            return False
    return True


def hidden(part) -> bool:
    """What stands for a storage or a permitted global while it has not been called."""
    return type(part).__name__ in ("_Storage", "Builder")


@given(st.lists(step, max_size=25), st.sampled_from([2, 4]))
def test_random_opcodes_make_plain_values_or_are_refused(steps, protocol):
    data = bytes([0x80, protocol]) + b"".join(steps) + pickle.STOP
    try:
        assert plain(torch_load(Tensor(checkpoint(data, {"0": FLOATS}))))
    except FormatError as error:
        assert error.field and error.file


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    tensors = {"a": Tensor([[1.0, 2.0], [3.0, 4.0]]), "b": Tensor([7, -7])}
    safetensors.write(tensors, folder / "s", {"k": "v"})
    npy.write_archive(tensors, folder / "z")
    npy.write(tensors["a"], folder / "n")
    gguf_writer.write(tensors, folder / "g", {"k": ["a", "b"], "n": [1, 2]})
    value = {"a": REBUILD(STORAGE, 0, (2, 2), (2, 1), False, {}), "epoch": 3}
    (folder / "t").write_bytes(checkpoint(pickled(value), {"0": FLOATS}))
    return {path.name: path.read_bytes() for path in folder.iterdir()}, folder / "damaged"


@given(st.data())
def test_damaged_files_of_every_format_are_read_or_refused(samples, data):
    contents, path = samples
    whole = contents[data.draw(st.sampled_from(sorted(contents)))]
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(whole)))
        piece = data.draw(st.binary(max_size=8) | st.sampled_from([b"\xff" * 8, bytes(8), b"\x80" + b"\xff" * 3]))
        whole = whole[:at] + piece + whole[at + data.draw(st.sampled_from([len(piece), len(piece), 0, 1])) :]
    path.write_bytes(whole)
    try:
        assert plain(load(path))
    except FormatError as error:
        assert str(path) in error.file and error.field and error.offset is not None
