import json
import struct

import pytest

import lazulite
from lazulite import FormatError, Tensor, load
from lazulite.formats import npy, safetensors
from support.checkpoints import pickled
from support.model_files import archive, checkpoint, listed, pair
from support.model_files import gguf as made

GGUF = made((), (listed("a", (4,), 0, 0),), struct.pack("<4f", 1, 2, 3, 4))


def lists(found):
    return {name: tensor.tolist() for name, tensor in found.items()}


def test_the_format_is_told_by_the_content_not_the_name(tmp_path):
    values = {"a": Tensor([1.0, 2.0, 3.0, 4.0])}
    safetensors.write(values, tmp_path / "model.gguf")
    (tmp_path / "model.safetensors").write_bytes(GGUF)
    npy.write_archive(values, tmp_path / "model.pt")
    npy.write_archive({}, tmp_path / "empty.npz")
    npy.write(values["a"], tmp_path / "model.json")
    (tmp_path / "model.npz").write_bytes(checkpoint(pickled({"epoch": 3})))
    for name in ("model.gguf", "model.safetensors", "model.pt"):
        assert {"a": [1, 2, 3, 4]} == lists(load(tmp_path / name))
    assert [1, 2, 3, 4] == load(str(tmp_path / "model.json")).tolist()
    assert {"epoch": 3} == load(tmp_path / "model.npz") and {} == load(tmp_path / "empty.npz")


def test_elements_go_to_the_device_that_is_asked_for(tmp_path):
    (tmp_path / "m").write_bytes(GGUF)
    found = load(tmp_path / "m", device="PYTHON")["a"]
    assert ("PYTHON", [1, 2, 3, 4]) == (found.device, found.tolist())


def test_what_begins_like_no_format_is_refused(tmp_path):
    for data in (b"", b"\n", b"hello", bytes(64), b"\x08\x07\xff" + bytes(9), struct.pack("<Q", 1 << 40) + b"{}"):
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(FormatError, match="no format begins like this") as caught:
            load(tmp_path / "file")
        assert (str(tmp_path / "file"), "the first bytes", 0) == (
            caught.value.file,
            caught.value.field,
            caught.value.offset,
        )
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_an_archive_that_is_neither_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(archive([("word/document.xml", b"<x/>")]))
    with pytest.raises(FormatError, match=r"data\.pkl"):
        load(tmp_path / "file")


# --- folders -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    safetensors.write({"a": Tensor([1]), "b": Tensor([2])}, tmp_path / "model-00001-of-00002.safetensors")
    safetensors.write({"c": Tensor([3])}, tmp_path / "model-00002-of-00002.safetensors")
    return tmp_path


def index(folder, places):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder / "model.safetensors.index.json"


def test_a_folder_is_one_model(folder):
    assert {"a": [1], "b": [2], "c": [3]} == lists(load(folder))
    first, second = (f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
    path = index(folder, {"c": second, "a": first})
    assert {"c": [3], "a": [1]} == lists(load(folder)) == lists(load(path))


@pytest.mark.parametrize("name", ["../other.safetensors", "/etc/passwd", "", ".", "..", "a/b", 5, None, "a\0b"])
def test_an_index_names_only_files_beside_it(folder, name):
    with pytest.raises(FormatError, match="plain name") as caught:
        load(index(folder, {"w": name}))
    assert "w" == caught.value.field


@pytest.mark.parametrize("text", ["{", "{}", '{"weight_map": []}', '{"weight_map"', '{"a":' * 2000, "{\xff"])
def test_a_broken_index_is_refused(folder, text):
    path = folder / "model.safetensors.index.json"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(FormatError, match=r"index|files by names"):
        load(path)


def test_an_index_of_tensors_that_are_not_there_is_refused(folder):
    with pytest.raises(FormatError, match="no such tensor"):
        load(index(folder, {"z": "model-00002-of-00002.safetensors"}))
    with pytest.raises(FileNotFoundError):
        load(index(folder, {"z": "missing.safetensors"}))


def test_a_folder_of_a_split_gguf_file_is_read_by_its_first_part(tmp_path):
    count = pair("split.count", 2, struct.pack("<H", 2))
    for number, name in enumerate("ab", 1):
        data = made((count,), (listed(name, (1,), 0, 0),), struct.pack("<f", number))
        (tmp_path / f"m-0000{number}-of-00002.gguf").write_bytes(data)
    assert {"a": [1], "b": [2]} == lists(load(tmp_path))


def test_a_folder_of_no_or_several_models_is_refused(tmp_path, folder):
    with pytest.raises(FormatError, match="one model"):
        load(tmp_path / "..")
    safetensors.write({"all": Tensor([9])}, folder / "model.safetensors")
    assert {"all": [9]} == lists(load(folder))
    (folder / "model.safetensors").unlink()
    (folder / "other.safetensors").write_bytes((folder / "model-00002-of-00002.safetensors").read_bytes())
    with pytest.raises(FormatError, match="another file"):
        load(folder)


def test_importing_the_package_imports_no_format():
    import subprocess
    import sys

    code = "import sys; from lazulite import Tensor, nn; print([m for m in sys.modules if 'formats' in m])"
    assert (
        "[]" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    )
    assert "load" in lazulite.__all__
