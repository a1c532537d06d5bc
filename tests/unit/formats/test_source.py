import os

import pytest

from lazulite import FormatError, dtypes
from lazulite.formats.source import Cursor, Source


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(16)))
    return path


def test_a_tensor_shares_the_mapping_and_writing_to_it_leaves_the_file(path):
    source = Source(path)
    tensor = source.tensor(4, dtypes.int32, (2,), "t")
    source.memory[4] = 255
    assert [0x070605FF, 0x0B0A0908] == tensor.tolist()
    tensor.assign(tensor * 0).realize()
    assert bytes(8) == source.memory[4:12] and bytes(range(16)) == path.read_bytes()


def test_elements_at_odd_places_are_put_together_when_they_are_read(path):
    source = Source(path)
    tensor = source.tensor(1, dtypes.int16, (2,), "t")
    source.memory[1] = 255
    assert [0x02FF, 0x0403] == tensor.tolist()
    tensor.assign(tensor * 0).realize()
    assert [0, 0] == tensor.tolist() and bytes(range(16)) == path.read_bytes()


def test_memory_that_cannot_be_written_is_copied():
    source = Source.over(memoryview(bytes(range(4))), "there")
    tensor = source.tensor(0, dtypes.uint8, (4,), "t")
    tensor.assign(tensor + 1).realize()
    assert [1, 2, 3, 4] == tensor.tolist() and bytes(range(4)) == source.memory


@pytest.mark.parametrize("begin, length", [(0, 17), (16, 1), (-1, 2), (4, -4), (1 << 63, 1 << 63), (0, 1 << 200)])
def test_what_does_not_lie_in_the_file_is_refused_with_its_place(path, begin, length):
    with pytest.raises(FormatError, match="of a file of 16 bytes") as caught:
        Source(path, "read").read(begin, length, "the thing")
    error = caught.value
    assert ("read", str(path), "the thing", begin) == (error.function, error.file, error.field, error.offset)


def test_a_product_of_sizes_never_wraps(path):
    source = Source(path)
    assert (
        0 == source.elements((0, 1 << 63), "t") and 6 == source.elements((2, 3), "t") and 1 == source.elements((), "t")
    )
    for shape in ((1 << 32, 1 << 32), (1 << 63, 4, 0), (0, 1 << 64), (2,) * 64):
        with pytest.raises(FormatError, match="64 bits"):
            source.elements(shape, "t")


def test_only_regular_files_are_opened(tmp_path):
    """A pipe would block for ever, and a device has no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FormatError, match="regular"):
            Source(path)
    with pytest.raises(FileNotFoundError):
        Source(tmp_path / "nothing")


def test_an_empty_file_is_a_source(tmp_path):
    path = tmp_path / "empty"
    path.touch()
    source = Source(path)
    assert 0 == source.size and not source.starts_with(b"x") and (0,) == source.tensor(0, dtypes.int8, (0,), "t").shape


def test_a_cursor_reads_as_a_file_does():
    data = b"first\n" + b"x" * 1000 + b"\nlast"
    cursor = Cursor(memoryview(data))
    assert b"first\n" == cursor.readline() and b"x" * 1000 + b"\n" == cursor.readline() and b"last" == cursor.readline()
    assert b"" == cursor.readline() == cursor.read(5) and len(data) == cursor.tell()
    assert 2 == cursor.seek(2) and b"rs" == cursor.read(2) and b"t" == cursor.readline(1) and 5 == cursor.tell()
    assert len(data) - 4 == cursor.seek(-4, os.SEEK_END) and b"last" == cursor.read()
    buffer = bytearray(9)
    cursor.seek(0)
    assert 9 == cursor.readinto(buffer) and data[:9] == buffer and 10 == cursor.seek(1, os.SEEK_CUR)
    assert data[10:] == cursor.read(1 << 62)  # no memory for more than there is
    with pytest.raises(OSError, match="place"):
        cursor.seek(-1)
