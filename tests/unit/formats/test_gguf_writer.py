import math

import pytest

from lazulite import ArgumentError, Tensor
from lazulite.formats import gguf, gguf_writer
from lazulite.formats.gguf_writer import Packed
from lazulite.formats.quants import QUANTS

METADATA = {
    "general.architecture": "tiny",
    "layers": 3,
    "below": -1,
    "wide": 1 << 40,
    "widest": (1 << 64) - 1,
    "low": -(1 << 40),
    "exact": 0.5,
    "double": 0.1,
    "not a number": math.inf,
    "yes": True,
    "words": ["a", "", "\u00e9"],
    "ints": [1, -2, 3],
    "floats": [0.5, -1.0],
    "doubles": [0.1],
    "flags": [True, False],
    "none": [],
    "raw": "\udcff",
}


def test_metadata_come_back(tmp_path):
    gguf_writer.write({}, tmp_path / "m.gguf", METADATA)
    assert METADATA == gguf.read(tmp_path / "m.gguf").metadata


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
def test_tensors_come_back_whatever_the_alignment(tmp_path, alignment):
    kinds = "float32 float16 bfloat16 float64 int8 int16 int32 int64".split()
    values = {kind: Tensor([[0, 1, 2], [3, 4, 5]], dtype=kind) for kind in kinds} | {
        "one": Tensor(2.5),
        "none": Tensor([]),
    }
    gguf_writer.write(values, tmp_path / "m.gguf", {"general.alignment": alignment} if alignment else None)
    found = gguf.read(tmp_path / "m.gguf").tensors()
    for name, value in values.items():
        assert (value.shape, value.dtype, value.tolist()) == (
            found[name].shape,
            found[name].dtype,
            found[name].tolist(),
        )


def test_blocks_are_written_as_they_are(tmp_path):
    packed = Tensor(list(range(34)) * 4, dtype="uint8").reshape(2, 68)
    gguf_writer.write({"w": Packed(QUANTS[8], packed)}, tmp_path / "m.gguf")
    found = gguf.read(tmp_path / "m.gguf").entries["w"]
    assert ("Q8_0", (2, 64), packed.tolist()) == (found.kind_name, found.shape, found.packed("w").tolist())


def test_the_package_reads_what_is_written(tmp_path):
    peer = pytest.importorskip("gguf")
    packed = Tensor([0, 0x3C, *range(32)] * 2, dtype="uint8").reshape(2, 34)
    values = {"a": Tensor([[1.0, 2.0, 3.0]] * 2), "w": Packed(QUANTS[8], packed), "h": Tensor([1.0], dtype="bfloat16")}
    gguf_writer.write(values, tmp_path / "m.gguf", METADATA | {"general.alignment": 64})
    reader = peer.GGUFReader(tmp_path / "m.gguf")
    found = {tensor.name: tensor for tensor in reader.tensors}
    assert [[1, 2, 3]] * 2 == found["a"].data.tolist() and [3, 2] == found["a"].shape.tolist()
    assert [list(range(32))] * 2 == peer.quants.dequantize(found["w"].data, found["w"].tensor_type).tolist()
    for key in ("layers", "below", "wide", "widest", "exact", "double", "words", "ints", "floats"):
        assert METADATA[key] == reader.fields[key].contents(), key


@pytest.mark.parametrize(
    "tensors, metadata, text",
    [
        ({"a": Tensor([True])}, {}, "dtype bool"),
        ({"a": Tensor([1], dtype="uint8")}, {}, "dtype uint8"),
        ({"a": Tensor.ones(1, 1, 1, 1, 1)}, {}, "5 axes"),
        ({}, {"k": None}, "NoneType"),
        ({}, {"k": {"a": 1}}, "dict"),
        ({}, {"k": [1, "a"]}, "no type in common"),
        ({}, {"k": [1, 2.0]}, "no type in common"),
        ({}, {"k": 1 << 64}, "too large"),
        ({}, {"k": [-1, (1 << 64) - 1]}, "too large"),
        ({}, {"k": [[1]]}, "list"),
        ({}, {"general.alignment": 3}, "power of two"),
        ({}, {"general.alignment": "32"}, "power of two"),
    ],
)
def test_what_has_no_place_in_a_file_is_refused_before_one_is_made(tensors, metadata, text, tmp_path):
    with pytest.raises(ArgumentError, match=text):
        gguf_writer.write(tensors, tmp_path / "m.gguf", metadata)
    assert [] == list(tmp_path.iterdir())
