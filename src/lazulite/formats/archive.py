"""Zip archives as places in a file: which members there are, and where the bytes of each stand.

Nothing is ever unpacked to disk.  The list of members is read by the standard library's `zipfile` and
then held against the file: names are plain relative paths and occur once, members lie in the file and
do not overlap.  A compressed member is inflated in memory, up to the size that it declares, and all of
them together up to a limit that a legitimate file hardly meets.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import NamedTuple

from lazulite.base.terminal import size_text
from lazulite.formats.source import Cursor, Source

MAGICS = b"PK\3\4", b"PK\5\6"
"""How an archive begins: with a member, or, when it has none, with the end of the list."""
MOST_INFLATED = 1 << 28, 16
"""Compressed members may be as large as this many bytes, or as this many times the file, whichever is more."""
_LOCAL_HEADER = 30
"""Bytes of the fixed part of a member's own header."""
_ENCRYPTED = 1


class Member(NamedTuple):
    """A file in an archive: the place of its bytes, how many there are, and how many they stand for."""

    begin: int
    stored: int
    size: int
    checksum: int
    compressed: bool


def members(source: Source) -> dict[str, Member]:
    """Every member by name, folders left out; FormatError where the archive contradicts itself."""
    try:
        with zipfile.ZipFile(Cursor(source.memory)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, struct.error, ValueError, OSError, NotImplementedError, EOFError) as error:
        source.fail(f"it is no zip archive: {error}", "the archive")
    found: dict[str, Member] = {}
    for entry in entries:
        name = entry.filename
        if name in found:
            source.fail("a member occurs twice", name, entry.header_offset)
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            source.fail("its name is no plain relative path", name, entry.header_offset)
        member = _member(source, entry)
        if not name.endswith("/"):
            found[name] = member
    _require_apart(source, found)
    return found


def contents(source: Source, name: str, member: Member) -> bytearray:
    """The bytes that a member stands for."""
    data = source.memory[member.begin : member.begin + member.stored]
    if not member.compressed:
        return bytearray(data)
    try:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        result = bytearray(inflater.decompress(data, member.size + 1))
    except zlib.error as error:
        source.fail(f"it cannot be inflated: {error}", name, member.begin)
    if len(result) != member.size or zlib.crc32(result) != member.checksum:
        source.fail("what it inflates to is not what the archive says", name, member.begin)
    return result


def _member(source: Source, entry: zipfile.ZipInfo) -> Member:
    """The place of a member, by its own header."""
    name, at = entry.filename, entry.header_offset
    if entry.flag_bits & _ENCRYPTED:
        source.fail("it is encrypted", name, at)
    compressed = entry.compress_type == zipfile.ZIP_DEFLATED
    if not compressed and (entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size):
        source.fail("members are stored, or compressed by 'deflate'", name, at)
    header = source.read(at, _LOCAL_HEADER, name)
    if not header.startswith(MAGICS[0]):
        source.fail("its header is not where the list of members says", name, at)
    begin = at + _LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    source.require(begin, entry.compress_size, name)
    return Member(begin, entry.compress_size, entry.file_size, entry.CRC, compressed)


def _require_apart(source: Source, found: dict[str, Member]) -> None:
    """Raise where members share bytes, or inflate to more than the limit."""
    reached = 0
    for name, member in sorted(found.items(), key=lambda item: item[1].begin):
        if member.begin < reached:
            source.fail("it shares bytes with another member", name, member.begin)
        reached = member.begin + member.stored
    inflated, most = (
        sum(m.size for m in found.values() if m.compressed),
        max(MOST_INFLATED[0], MOST_INFLATED[1] * source.size),
    )
    if inflated > most:
        source.fail(
            f"its members inflate to {size_text(inflated)}, more than {size_text(most)}", "the archive",
            hint="store it without compression",
        )  # fmt: skip
