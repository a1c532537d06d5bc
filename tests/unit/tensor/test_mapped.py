import os

import pytest

from lazulite import FormatError, ShapeError, Tensor, dtypes


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(8)))
    return path


def test_a_path_is_the_bytes_of_the_file(path):
    """A41: `Tensor(path)` is the file, and only what is needed of it is read."""
    tensor = Tensor(path)
    assert (dtypes.uint8, (8,)) == (tensor.dtype, tensor.shape)
    assert [3, 4] == tensor[3:5].tolist() and 28 == tensor.sum().item()


def test_writing_reaches_the_file(path):
    """A41: a write to the tensor or to a view of it is in the file; what was read before keeps its values."""
    tensor = Tensor(path)
    before = tensor + 0
    tensor[2:4].assign(Tensor([9, 9], dtype="uint8")).realize()
    tensor[0] = 77
    tensor.realize()
    assert bytes([77, 1, 9, 9, 4, 5, 6, 7]) == path.read_bytes()
    assert list(range(8)) == before.tolist()


@pytest.mark.parametrize("look", [False, True])
def test_a_view_writes_to_the_file_by_itself(path, look):
    """A41: nobody has to hold the tensor of the whole file, whether the view was looked at or not."""
    part = Tensor(path)[2:6][1:3]
    if look:
        assert [3, 4] == part.tolist()
    part.assign(part * 2).realize()
    assert bytes([0, 1, 2, 6, 8, 5, 6, 7]) == path.read_bytes()


def test_what_others_write_is_seen(path):
    tensor = Tensor(path)
    with path.open("r+b") as file:
        file.write(b"\x63")
    assert 99 == tensor[0].item()


def test_a_dtype_takes_the_bytes_as_other_elements(path):
    assert [0x03020100, 0x07060504] == Tensor(path, dtype="int32").tolist()
    path.write_bytes(bytes(7))
    with pytest.raises(ShapeError, match="7 bytes, which are no whole number of int32"):
        Tensor(path, dtype="int32")


def test_a_large_file_costs_what_is_looked_at(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 33)
    assert [0, 0] == Tensor(path)[(1 << 33) - 2 :].tolist()


def test_a_file_that_may_not_be_written_is_not(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    tensor = Tensor(path)
    tensor.assign(tensor + 1).realize()
    assert list(range(1, 9)) == tensor.tolist() and bytes(range(8)) == path.read_bytes()


def test_other_devices_and_empty_files_get_a_copy(path, tmp_path):
    assert list(range(8)) == Tensor(path, device="PYTHON").tolist()
    (tmp_path / "empty").touch()
    assert (0,) == Tensor(tmp_path / "empty").shape


def test_only_files_are_mapped(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tensor(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    os.chmod(tmp_path / "pipe", 0o444)
    with pytest.raises(FormatError, match="regular"):
        Tensor(tmp_path / "pipe")
