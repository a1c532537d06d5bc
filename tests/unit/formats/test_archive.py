import io
import struct
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.format import refusal
from lazulite import FormatError
from lazulite.formats import archive
from lazulite.formats.source import Source
from support.model_files import archive as made


def unpacked(data):
    source = Source.over(memoryview(bytearray(data)), "file.zip")
    return {name: bytes(archive.contents(source, name, member)) for name, member in archive.members(source).items()}


def refused(data, tmp_path, text):
    path = tmp_path / "file.zip"
    path.write_bytes(data)
    error = refusal(unpacked_file, path)
    assert error is not None and text in error.message, error


def unpacked_file(path):
    source = Source(path)
    return {name: archive.contents(source, name, member) for name, member in archive.members(source).items()}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_come_back(compression):
    parts = {"a": b"", "dir/b": b"text" * 100, "dir/c": bytes(range(256))}
    assert parts == unpacked(made([*parts.items(), ("dir/", b"")], compression))
    assert {} == unpacked(made([]))


def test_members_with_sizes_of_64_bits_come_back():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file, file.open("a", "w", force_zip64=True) as member:
        member.write(b"text")
    assert {"a": b"text"} == unpacked(target.getvalue())


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "..\\up", "C:\\b", "a/.."])
def test_names_that_lead_out_are_refused(name, tmp_path):
    refused(made([("data", b"1"), (name, b"2")]), tmp_path, "plain relative path")


def test_a_member_twice_is_refused(tmp_path):
    refused(made([("a", b"1"), ("a", b"2")]), tmp_path, "twice")


def test_other_compressions_and_encryption_are_refused(tmp_path):
    refused(made([("a", b"1" * 99)], zipfile.ZIP_LZMA), tmp_path, "deflate")
    data = bytearray(made([("a", b"1")]))
    for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(header) + flags] |= 1
    refused(bytes(data), tmp_path, "encrypted")


def in_directory(data, offset, form, value):
    """The archive with a field of the last entry of its directory replaced."""
    changed = bytearray(data)
    struct.pack_into(form, changed, data.rindex(b"PK\1\2") + offset, value)
    return bytes(changed)


def test_a_declared_size_is_neither_allocated_nor_believed(tmp_path):
    """Both a bomb that declares little and a size that nothing stands behind."""
    bomb = made([("a", bytes(1 << 24))], zipfile.ZIP_DEFLATED)
    refused(in_directory(bomb, 24, "<I", 1000), tmp_path, "is not what the archive says")
    refused(in_directory(bomb, 24, "<I", 0xFFFFFFF0), tmp_path, "inflate to")
    small = made([("a", b"12345678")])
    changed = in_directory(in_directory(small, 24, "<I", 1 << 30), 20, "<I", 1 << 30)
    refused(changed, tmp_path, "would take bytes")


def test_what_does_not_fit_its_checksum_is_refused(tmp_path):
    data = made([("a", b"1" * 100)], zipfile.ZIP_DEFLATED)
    refused(in_directory(data, 16, "<I", zlib.crc32(b"other")), tmp_path, "is not what")


def test_members_that_share_bytes_are_refused(tmp_path):
    data = made([("a", b"1" * 50), ("b", b"2")])
    refused(in_directory(data, 42, "<I", 0), tmp_path, "shares bytes")


@given(st.data())
def test_a_damaged_archive_is_read_or_refused(data):
    whole = made([("a", b"12345"), ("dir/b", b"x" * 64)], data.draw(st.sampled_from([0, 8])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole = whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 4)) :]
    try:
        unpacked(whole)
    except FormatError as error:
        assert error.field and error.file == "file.zip"
