"""What every file format promises.  A format's test is a subclass that reads it and has a sample.

`never` says what a format cannot do and why.  A damaged file is answered with one `FormatError` that names
the file, the field and the offset, or, where the damage is in what no reader looks at, with tensors; never
with another exception, with memory for what a number in the file claims, or with a hang.
"""

from __future__ import annotations

import tracemalloc

import pytest

from lazulite.base.errors import FormatError

HOSTILE = 0xFF, 0x7F, 0x80, 0x00
"""What bytes are replaced by: numbers become as large as possible, negative, or nothing."""
MOST_GROWTH = 50 << 20
LARGE = 1 << 30


def refusal(read, path):
    """The error with which a damaged file is refused, in bounded memory; None where it is read."""
    tracemalloc.start()
    try:
        read(path)
    except FormatError as error:
        assert str(path) in error.file and error.field and error.offset is not None, error
        return error
    finally:
        growth = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert growth < MOST_GROWTH, f"{growth >> 20} MB were taken to find out"
    return None


class FormatContract:
    """Inherit it, and give `read` and a `sample`."""

    suffix = ""
    header = 0
    """How many bytes of the sample are attacked: all that say what the others are."""
    never: dict[str, str] = {}

    def read(self, path):
        """The tensors of a file by name."""
        raise NotImplementedError

    def sample(self) -> bytes:
        """A small valid file with the tensors of `expected`."""
        raise NotImplementedError

    def expected(self):
        """The contents of the sample: nested lists by name."""
        return {"a": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], "b": [-1, 7]}

    def write(self, tensors, path):
        """Write a file; where `never` has no "write"."""
        raise NotImplementedError

    def large(self, path):
        """Make a sparse file of `LARGE` bytes or more, with one tensor "large" of zeros but for its last byte."""
        raise NotImplementedError

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / f"file{self.suffix}"

    def test_the_sample_is_read(self, path):
        path.write_bytes(self.sample())
        assert self.expected() == {name: tensor.tolist() for name, tensor in self.read(path).items()}

    def test_what_is_written_is_read_back(self, path, tmp_path):
        if "write" in self.never:
            pytest.skip(f"never: {self.never['write']}")
        path.write_bytes(self.sample())
        copy = tmp_path / f"copy{self.suffix}"
        self.write(self.read(path), copy)
        assert self.expected() == {name: tensor.tolist() for name, tensor in self.read(copy).items()}

    def test_a_file_that_ends_anywhere_is_refused(self, path):
        whole = self.sample()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            with pytest.raises(FormatError) as caught:
                self.read(path)
            assert str(path) == caught.value.file and caught.value.field, length

    @pytest.mark.parametrize("width", [1, 4, 8])
    @pytest.mark.parametrize("byte", HOSTILE)
    def test_numbers_in_the_file_are_never_believed(self, path, width, byte):
        whole = self.sample()
        for begin in range(0, self.header, 1 if width == 1 else width // 2):
            path.write_bytes(whole[:begin] + bytes([byte]) * width + whole[begin + width :])
            refusal(self.read, path)

    def test_a_large_file_is_read_where_it_is_needed(self, path):
        if "large" in self.never:
            pytest.skip(f"never: {self.never['large']}")
        self.large(path)
        assert path.stat().st_size >= LARGE
        tracemalloc.start()
        tensor = self.read(path)["large"]
        assert tensor[-8:].tolist()[-1] != 0 and tensor[:8].tolist() == [0] * 8
        growth = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert growth < MOST_GROWTH

    def test_writing_to_a_tensor_leaves_the_file_alone(self, path):
        path.write_bytes(self.sample())
        tensor = self.read(path)["b"]
        tensor.assign(tensor + 1).realize()
        assert [0, 8] == tensor.tolist()
        assert self.sample() == path.read_bytes()

    def test_what_is_no_file_of_this_format_is_refused(self, path):
        for data in (b"", b"\n", b"not a model at all" * 9, bytes(1000), b"\xff" * 1000):
            path.write_bytes(data)
            assert refusal(self.read, path) is not None
