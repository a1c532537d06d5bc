import struct

import pytest

from lazulite import ArgumentError, Tensor
from lazulite.formats.contents import contents
from lazulite.formats.safetensors import write
from support.checkpoints import pickled
from support.model_files import checkpoint, listed
from support.model_files import gguf as made


def test_quantised_tensors_are_blocks_and_elements(tmp_path):
    data = struct.pack("<2e", 0.5, 1.0) + bytes(range(16))
    (tmp_path / "m").write_bytes(made((), (listed("w", (1, 32), 3, 0),), data))
    found = contents(tmp_path / "m", "inspect")
    each = found.tensors["w"]
    assert ("GGUF", "Q4_1", (1, 32), 20) == (found.format, each.kind, each.shape, each.nbytes)
    assert list(data) == each.packed().data.flatten().tolist()
    assert [n * 0.5 + 1 for n in range(16)] + [1.0] * 16 == each.tensor().flatten().tolist()


def test_a_folder_is_one_file(tmp_path):
    write({"a": Tensor([1])}, tmp_path / "model-1.safetensors")
    write({"b": Tensor([2])}, tmp_path / "model-2.safetensors")
    found = contents(tmp_path, "inspect")
    assert ("safetensors", ["a", "b"]) == (found.format, list(found.tensors))


def test_containers_that_hold_themselves_end(tmp_path):
    (tmp_path / "m").write_bytes(checkpoint(b"\x80\x02]q\0h\0aI5\na."))
    assert {"1": 5} == dict(contents(tmp_path / "m", "inspect").metadata)
    (tmp_path / "m").write_bytes(checkpoint(pickled({"a": {"b": (1, [2])}, 3: None})))
    assert {"a.b.0": 1, "a.b.1.0": 2, "3": None} == dict(contents(tmp_path / "m", "inspect").metadata)


def test_networks_of_operators_are_not_taken_apart(tmp_path):
    (tmp_path / "m").write_bytes(b"\x08\x07\x12\x04test")
    with pytest.raises(ArgumentError, match="ONNX"):
        contents(tmp_path / "m", "inspect")
