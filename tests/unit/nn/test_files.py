import io
import json
import struct
import tarfile
import zipfile

import pytest

from contract.format import refusal
from lazulite import DTypeError, FormatError, Tensor, dtypes
from lazulite.nn import state
from support.checkpoints import Global, Persistent, pickled
from support.model_files import archive, checkpoint, listed, pair, text
from support.model_files import gguf as made

FILES = {"a": b"12345", "dir/b": b"x" * 100}


def tar(members=FILES, extra=()):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as file:
        for entry in extra:
            file.addfile(entry)
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            file.addfile(entry, io.BytesIO(data))
    return target.getvalue()


def link(name, target):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


def contents(found):
    return {name: bytes(tensor.data()) for name, tensor in found.items()}


def both(data, tmp_path):
    """A file by its path, and as a tensor over it."""
    path = tmp_path / "file"
    path.write_bytes(data)
    return path, str(path), Tensor(path), Tensor(data)


def test_safetensors_go_out_and_in(tmp_path):
    path = tmp_path / "file"
    state.safe_save({"a": Tensor([1.5, 2.5]), "b": Tensor([[1], [2]])}, str(path), {"step": 3, "note": "x"})
    for file in (path, str(path), Tensor(path)):
        assert {"a": [1.5, 2.5], "b": [[1], [2]]} == {n: t.tolist() for n, t in state.safe_load(file).items()}
        held, begin, header = state.safe_load_metadata(file)
        assert {"step": "3", "note": "x"} == header["__metadata__"]
        assert (path.stat().st_size, dtypes.uint8) == (held.numel(), held.dtype)
        assert [1, 2] == held[begin + header["b"]["data_offsets"][0] :][:8].bitcast("int32").tolist()


def test_tensors_over_a_tensor_are_views_of_it(tmp_path):
    """A41: what is written to a tensor that was loaded from `Tensor(path)` is in the file; by a path it is not."""
    path = tmp_path / "file"
    state.safe_save({"a": Tensor([1, 2])}, path)
    private = state.safe_load(path)["a"]
    private.assign(private + 1).realize()
    through = state.safe_load(Tensor(path))["a"]
    assert [1, 2] == through.tolist()
    through.assign(through * 5).realize()
    assert [5, 10] == state.safe_load(path)["a"].tolist() and [2, 3] == private.tolist()


def test_checkpoints_and_gguf_files_are_read(tmp_path):
    value = {"w": Global("torch._utils", "_rebuild_tensor_v2")(
        Persistent(("storage", Global("torch", "FloatStorage"), "0", "cpu", 4)), 0, (2, 2), (1, 2), False, {}
    )}  # fmt: skip
    for file in both(checkpoint(pickled(value), {"0": struct.pack("<4f", 1, 2, 3, 4)}), tmp_path):
        assert [[1, 3], [2, 4]] == state.torch_load(file)["w"].tolist()
    gguf = made((pair("k", 8, text("v")),), (listed("a", (4,), 0, 0),), struct.pack("<4f", 1, 2, 3, 4))
    for file in both(gguf, tmp_path):
        metadata, tensors = state.gguf_load(file)
        assert ({"k": "v"}, [1, 2, 3, 4]) == (metadata, tensors["a"].tolist())


def test_archives_give_their_files_as_bytes(tmp_path):
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for file in both(archive(list(FILES.items()), compression), tmp_path):
            assert FILES == contents(state.zip_extract(file))
    for file in both(tar(extra=[link("out", "/etc/passwd")]), tmp_path):
        assert FILES == contents(state.tar_extract(file))


def test_a_tar_archive_that_leads_back_to_its_begin_is_refused(tmp_path):
    """A size below 0 made readers go round for ever."""
    data = bytearray(tar())
    data[124:136] = b"\xff" * 10 + struct.pack(">h", -1024)
    field = data[:512]
    field[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(field)
    path = tmp_path / "file"
    for broken in (bytes(data), tar()[:600], b"x" * 512, b"not a tar"):
        path.write_bytes(broken)
        assert refusal(state.tar_extract, path) is not None


def test_a_size_beyond_the_end_is_refused(tmp_path):
    data = bytearray(tar({"a": b"1"}))
    data[124:136] = b"77777777777\0"
    field = data[:512]
    field[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(field)
    path = tmp_path / "file"
    path.write_bytes(data)
    assert refusal(state.tar_extract, path) is not None


def test_a_tensor_is_a_file_to_read_from():
    file = state.TensorIO(Tensor(json.dumps({"a": 1}).encode()))
    assert file.readable() and file.seekable() and {"a": 1} == json.load(file)
    assert 4 == file.seek(4) and b": " == file.read(2)
    for wrong in (Tensor([1]), Tensor([[1]], dtype="uint8")):
        with pytest.raises(DTypeError, match="vector of uint8"):
            state.TensorIO(wrong)


def test_errors_name_the_function(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"nonsense of no format")
    for name in ("safe_load", "safe_load_metadata", "torch_load", "gguf_load", "zip_extract", "tar_extract"):
        for file in (path, Tensor(path)):
            with pytest.raises(FormatError) as caught:
                getattr(state, name)(file)
            assert name == caught.value.function and caught.value.file and caught.value.field
    with pytest.raises(AttributeError, match="nothing"):
        state.nothing  # noqa: B018
