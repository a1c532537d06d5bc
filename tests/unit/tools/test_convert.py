import struct

import pytest

from lazulite import Tensor, load
from lazulite.formats import gguf, gguf_writer, npy, safetensors
from lazulite.formats.gguf_writer import Packed
from lazulite.formats.quants import QUANTS
from lazulite.nn.state import safe_save
from lazulite.tools import cli
from support.checkpoints import Global, Persistent, pickled
from support.model_files import checkpoint

VALUES = {"a": [[1.0, 2.0], [3.0, 4.0]], "n": [1, -7]}


@pytest.fixture
def sources(tmp_path):
    """The same tensors in every format that is read."""
    tensors = {name: Tensor(value) for name, value in VALUES.items()}
    safe_save(tensors, tmp_path / "in.safetensors", {"made": "by hand"})
    npy.write_archive(tensors, tmp_path / "in.npz")
    gguf_writer.write(tensors, tmp_path / "in.gguf", {"made": "by hand", "layers": 3})
    (tmp_path / "in.pt").write_bytes(checkpointed())
    return tmp_path


def checkpointed():
    def tensor(key, kind, shape, strides):
        storage = Persistent(("storage", Global("torch", kind), key, "cpu", 4 if key == "0" else 2))
        return Global("torch._utils", "_rebuild_tensor_v2")(storage, 0, shape, strides, False, {})

    value = {"a": tensor("0", "FloatStorage", (2, 2), (1, 2)), "n": tensor("1", "IntStorage", (2,), (1,))}
    return checkpoint(pickled(value), {"0": struct.pack("<4f", 1, 3, 2, 4), "1": struct.pack("<2i", 1, -7)})


def converted(source, target, *options):
    assert 0 == cli.main(["convert", str(source), str(target), *options])
    return {name: tensor.tolist() for name, tensor in load(target).items()}


@pytest.mark.parametrize("source", ["in.safetensors", "in.npz", "in.gguf", "in.pt"])
@pytest.mark.parametrize("target", ["out.safetensors", "out.npz", "out.gguf"])
def test_every_format_becomes_every_other(sources, source, target):
    assert VALUES == converted(sources / source, sources / target)


def test_metadata_go_where_there_is_a_place_for_them(sources, capsys):
    converted(sources / "in.gguf", sources / "out.safetensors")
    assert {"made": "by hand", "layers": "3"} == safetensors.read_metadata(sources / "out.safetensors")
    converted(sources / "in.safetensors", sources / "out.gguf")
    assert {"made": "by hand"} == gguf.read(sources / "out.gguf").metadata
    capsys.readouterr()
    converted(sources / "in.gguf", sources / "out.npz")
    assert "no place for metadata" in capsys.readouterr().err


def test_blocks_stay_blocks_in_gguf_and_become_floats_elsewhere(tmp_path):
    blocks = Packed(QUANTS[8], Tensor([0, 0x3C, *range(32)] * 2, dtype="uint8").reshape(2, 34))
    gguf_writer.write({"w": blocks}, tmp_path / "in.gguf", {"split.count": 0, "split.no": 0, "k": 1})
    expected = {"w": [[float(n) for n in range(32)]] * 2}
    assert expected == converted(tmp_path / "in.gguf", tmp_path / "out.gguf")
    found = gguf.read(tmp_path / "out.gguf")
    assert ("Q8_0", {"k": 1}) == (found.entries["w"].kind_name, found.metadata)
    assert expected == converted(tmp_path / "in.gguf", tmp_path / "out.safetensors")
    assert expected == converted(tmp_path / "in.gguf", tmp_path / "half.gguf", "--dtype", "float16")
    assert "F16" == gguf.read(tmp_path / "half.gguf").entries["w"].kind_name


def test_floats_are_cast_and_integers_left(sources):
    assert VALUES == converted(sources / "in.npz", sources / "out.safetensors", "--dtype", "bfloat16")
    found = safetensors.read(sources / "out.safetensors")
    assert ("bfloat16", "int32") == (found["a"].dtype.name, found["n"].dtype.name)


def test_a_part_of_a_checkpoint_is_taken(tmp_path):
    value = {"model": {"w": [[1.0]]}, "other": [2.0]}
    npy.write_archive({"model.w": Tensor(value["model"]["w"]), "other": Tensor(value["other"])}, tmp_path / "in.npz")
    assert {"w": [[1.0]]} == converted(tmp_path / "in.npz", tmp_path / "out.safetensors", "--below", "model")


@pytest.mark.parametrize(
    "target, options, text",
    [
        ("out.pt", [], "no format is called '.pt'"), ("out", [], "no format"),
        ("out.npz", ["--dtype", "int8"], "no type of floats"),
        ("out.npz", ["--dtype", "f33"], "no type of floats"), ("out.npz", ["--below", "x"], "no tensors below 'x'"),
    ],
)  # fmt: skip
def test_mistakes_are_user_errors_and_leave_no_file(sources, target, options, text, capsys):
    before = sorted(sources.iterdir())
    assert 1 == cli.main(["convert", str(sources / "in.npz"), str(sources / target), *options])
    assert text in capsys.readouterr().err and before == sorted(sources.iterdir())


def test_a_type_that_the_format_lacks_is_named(tmp_path, capsys):
    npy.write_archive({"flags": Tensor([True])}, tmp_path / "in.npz")
    assert 1 == cli.main(["convert", str(tmp_path / "in.npz"), str(tmp_path / "out.gguf")])
    assert "flags has dtype bool, which GGUF does not have" in capsys.readouterr().err
