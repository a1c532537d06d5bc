"""Loader of relocatable ELF objects for x86-64: bytes in, a callable kernel out.

The sections that a program needs are laid out in one private mapping in three parts (code, constants,
variables), relocations are applied, and then each part gets its final protection: code is never
writable once it can run.  Objects come from the own compiler, perhaps through a cache on disk, so
every offset and size is checked before use: whatever is not as it must be is a `FormatError`.
An object that refers to anything outside itself is refused, as kernels call nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lazulite.base.errors import DeviceError, FormatError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bit, little endian, version 1
_RELOCATABLE, _X86_64 = 1, 62

_SYMTAB, _RELA, _NOBITS, _REL = 2, 4, 8, 9
_WRITE, _ALLOC, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _FIRST_RESERVED = 0, 0xFFF1, 0xFF00
_NO_TYPE, _OBJECT, _FUNCTION, _SECTION_SYMBOL, _FILE = range(5)

_PAGE = mmap.PAGESIZE
_LARGEST_IMAGE = 1 << 30
_LARGEST_ALIGNMENT = 4096
_READ, _READ_WRITE, _READ_EXECUTE = 1, 3, 5  # PROT_READ | PROT_WRITE | PROT_EXEC

_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_KERNEL = ctypes.CFUNCTYPE(None)
_KERNEL_KEEPING_GIL = ctypes.PYFUNCTYPE(None)


@dataclass(slots=True)
class _Section:
    """One section header; `place` is where the section lies in the image, -1 if it is not part of it."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    place: int = -1

    @property
    def protection(self) -> int:
        if self.flags & _EXECUTE:
            return _READ_EXECUTE
        relocated_constant = self.name.startswith(".data.rel.ro")
        return _READ_WRITE if self.flags & _WRITE and not relocated_constant else _READ


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    kind: int
    section: int
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class _Relocation:
    """A word at `place` in the image that depends on the address of a symbol, given by number."""

    section: str
    place: int
    kind: int
    symbol: int
    addend: int


class Image:
    """A loaded object.  The memory lives as long as the image, and any function taken from it keeps it."""

    def __init__(self, memory: mmap.mmap, address: int, functions: dict[str, int]) -> None:
        self.address, self.functions = address, functions
        self._memory = memory

    def function(self, name: str, *, keep_gil: bool = False) -> Callable[..., None]:
        """The function as a ctypes callable that takes ctypes values and gives nothing.

        Keeping the interpreter's lock saves 0.04 us of a launch and stops all other threads meanwhile.
        """
        if name not in self.functions:
            raise FormatError("load", f"the object defines no function {name!r}", field=".symtab")
        function: Any = (_KERNEL_KEEPING_GIL if keep_gil else _KERNEL)(self.functions[name])
        function.image = self
        return function  # type: ignore[no-any-return]


def load_object(code: bytes) -> Image:
    """Lay out, relocate and protect an object; FormatError where it is not one or needs what is not there."""
    sections = _read_sections(code)
    symbols = _read_symbols(code, sections)
    parts, size = _lay_out(sections)
    relocations = list(_read_relocations(code, sections, symbols))
    table = size  # addresses for GOTPCREL, one word for each symbol that is reached through it
    through_table = sorted({r.symbol for r in relocations if r.kind in _THROUGH_TABLE})
    if through_table:
        size = _round_up(size + 8 * len(through_table), _PAGE)
        parts.append((table, size - table, _READ))
    memory = mmap.mmap(-1, max(size, _PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _fill(memory, code, sections)
    addresses = [_address_of(symbol, sections, address) for symbol in symbols]
    slots = {symbol: table + 8 * i for i, symbol in enumerate(through_table)}
    for symbol, slot in slots.items():
        struct.pack_into("<Q", memory, slot, addresses[symbol])
    for each in relocations:
        indirect = each.kind in _THROUGH_TABLE
        _relocate(memory, address, each, address + slots[each.symbol] if indirect else addresses[each.symbol])
    for begin, length, protection in parts:
        if _mprotect(address + begin, length, protection):
            raise DeviceError(
                "load",
                f"the system does not let a program be loaded: {os.strerror(ctypes.get_errno())}",
                rule="Memory has to become executable after it was written.",
            )
    functions = {s.name: a for s, a in zip(symbols, addresses, strict=True) if s.kind == _FUNCTION and a}
    return Image(memory, address, functions)


# --- reading -----------------------------------------------------------------------------------


def _part(code: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(code):
        raise FormatError("load", f"{what} reaches beyond the {len(code)} bytes", field=what, offset=offset)
    return code[offset : offset + size]


def _string(table: bytes, offset: int, what: str) -> str:
    end = table.find(b"\0", offset)
    if offset >= len(table) or end < 0:
        raise FormatError("load", f"a name of {what} is not in its table", field=what, offset=offset)
    return table[offset:end].decode("utf-8", "replace")


def _read_sections(code: bytes) -> list[_Section]:
    header = _HEADER.unpack(_part(code, 0, _HEADER.size, "the header"))
    if not header[0].startswith(_MAGIC) or header[1:3] != (_RELOCATABLE, _X86_64):
        raise FormatError("load", "not a relocatable ELF object for x86-64", field="the header", offset=0)
    table, entry, count, names = header[6], header[11], header[12], header[13]
    if entry != _SECTION.size or count == 0 or names >= count:
        raise FormatError("load", "the table of sections is damaged", field="the header", offset=0)
    rows = list(_SECTION.iter_unpack(_part(code, table, entry * count, "the table of sections")))
    strings = _part(code, rows[names][4], rows[names][5], "the names of sections")
    sections = []
    for name, kind, flags, _, offset, size, link, info, alignment, _ in rows:
        title = _string(strings, name, "a section")
        section = _Section(title, kind, flags, offset, size, link, info, max(alignment, 1))
        if kind != _NOBITS:
            _part(code, offset, size, section.name or "a section")
        if link >= count:
            raise FormatError("load", f"{section.name} refers to a section that is not there", field=section.name)
        sections.append(section)
    return sections


def _read_symbols(code: bytes, sections: list[_Section]) -> list[_Symbol]:
    tables = [section for section in sections if section.kind == _SYMTAB]
    if len(tables) != 1:
        raise FormatError("load", f"there must be one table of symbols, not {len(tables)}", field=".symtab")
    table = tables[0]
    strings = sections[table.link]
    names = _part(code, strings.offset, strings.size, ".strtab")
    symbols = [_Symbol("", _NO_TYPE, _ABSOLUTE, 0, 0)]  # the first entry stands for no symbol
    for name, info, _, section, value, size in list(_rows(_SYMBOL, code, table))[1:]:
        symbol = _Symbol(_string(names, name, ".symtab"), info & 15, section, value, size)
        _check_symbol(symbol, sections)
        symbols.append(symbol)
    return symbols


def _rows(record: struct.Struct, code: bytes, section: _Section) -> Iterable[tuple[Any, ...]]:
    if section.size % record.size:
        raise FormatError("load", f"{section.name} has no whole number of entries", field=section.name)
    return record.iter_unpack(_part(code, section.offset, section.size, section.name))


def _check_symbol(symbol: _Symbol, sections: list[_Section]) -> None:
    if symbol.kind > _FILE:
        raise FormatError("load", f"{symbol.name!r} is a kind of symbol that kernels do not have", field=".symtab")
    if symbol.section == _ABSOLUTE:
        return
    if symbol.section == _UNDEFINED or symbol.section >= _FIRST_RESERVED:
        raise FormatError(
            "load",
            f"{symbol.name!r} is not defined in the object",
            field=".symtab",
            rule="A kernel refers to nothing outside itself.",
        )
    if symbol.section >= len(sections) or symbol.value + symbol.size > sections[symbol.section].size:
        raise FormatError("load", f"{symbol.name!r} lies outside its section", field=".symtab")
    if symbol.kind == _FUNCTION and not sections[symbol.section].flags & _EXECUTE:
        raise FormatError("load", f"the function {symbol.name!r} does not lie in code", field=".symtab")


def _read_relocations(code: bytes, sections: list[_Section], symbols: list[_Symbol]) -> Iterable[_Relocation]:
    for section in sections:
        if section.kind == _REL:
            raise FormatError("load", "relocations without addends are not of x86-64", field=section.name)
        if section.kind != _RELA:
            continue
        if section.info >= len(sections):
            raise FormatError("load", f"{section.name} is for a section that is not there", field=section.name)
        patched = sections[section.info]
        if patched.place < 0:
            continue
        for offset, info, addend in _rows(_RELOCATION, code, section):
            kind, symbol = info & 0xFFFFFFFF, info >> 32
            if kind not in _WIDTH:
                raise FormatError("load", f"relocation of unknown type {kind}", field=section.name, offset=offset)
            if offset + _WIDTH[kind] > patched.size or patched.kind == _NOBITS:
                raise FormatError("load", "a relocation lies outside its section", field=section.name, offset=offset)
            if not 0 < symbol < len(symbols) or not _is_placed(symbols[symbol], sections):
                raise FormatError("load", "a relocation has no target", field=section.name, offset=offset)
            yield _Relocation(section.name, patched.place + offset, kind, symbol, addend)


# --- building ----------------------------------------------------------------------------------


def _round_up(value: int, multiple: int) -> int:
    return (value + multiple - 1) // multiple * multiple


def _lay_out(sections: list[_Section]) -> tuple[list[tuple[int, int, int]], int]:
    """Place the sections; the parts of the image as (begin, length, protection), and its size."""
    parts, end = [], 0
    for protection in (_READ_EXECUTE, _READ, _READ_WRITE):
        begin = end = _round_up(end, _PAGE)
        for section in sections:
            if not section.flags & _ALLOC or section.size == 0 or section.protection != protection:
                continue
            alignment = section.alignment
            if alignment & (alignment - 1) or alignment > _LARGEST_ALIGNMENT or section.flags & _THREAD_LOCAL:
                raise FormatError("load", f"{section.name} cannot be placed", field=section.name)
            section.place = _round_up(end, alignment)
            end = section.place + section.size
        if end > _LARGEST_IMAGE:
            raise FormatError("load", f"the sections need {end} bytes, more than a program may have")
        if end > begin:
            parts.append((begin, _round_up(end, _PAGE) - begin, protection))
    return parts, _round_up(end, _PAGE)


def _fill(memory: mmap.mmap, code: bytes, sections: list[_Section]) -> None:
    for section in sections:
        if section.place >= 0 and section.kind != _NOBITS:
            memory[section.place : section.place + section.size] = code[section.offset : section.offset + section.size]


def _is_placed(symbol: _Symbol, sections: list[_Section]) -> bool:
    return symbol.section == _ABSOLUTE or sections[symbol.section].place >= 0


def _address_of(symbol: _Symbol, sections: list[_Section], address: int) -> int:
    """Where the symbol is; 0 if it is not part of the image."""
    if symbol.section == _ABSOLUTE:
        return symbol.value
    place = sections[symbol.section].place
    return address + place + symbol.value if place >= 0 else 0


# R_X86_64_*: 64, PC32, PLT32, GOTPCREL, 32, 32S, PC64, GOTPCRELX, REX_GOTPCRELX
_ABSOLUTE_64, _RELATIVE_64 = 1, 24
_RELATIVE_32 = frozenset({2, 4, 9, 41, 42})
_UNSIGNED_32, _SIGNED_32 = 10, 11
_THROUGH_TABLE = frozenset({9, 41, 42})
_WIDTH = {_ABSOLUTE_64: 8, _RELATIVE_64: 8, _UNSIGNED_32: 4, _SIGNED_32: 4} | dict.fromkeys(_RELATIVE_32, 4)


def _relocate(memory: mmap.mmap, address: int, relocation: _Relocation, target: int) -> None:
    kind, place, value = relocation.kind, relocation.place, target + relocation.addend
    if kind in _RELATIVE_32 or kind == _RELATIVE_64:
        value -= address + place
    if kind in (_ABSOLUTE_64, _RELATIVE_64):
        struct.pack_into("<Q", memory, place, value & 0xFFFFFFFFFFFFFFFF)
        return
    low, high = (0, 1 << 32) if kind == _UNSIGNED_32 else (-(1 << 31), 1 << 31)
    if not low <= value < high:
        raise FormatError(
            "load",
            "a relocation of 32 bits does not reach its target",
            field=relocation.section,
            hint="compile position-independent code",
        )
    struct.pack_into("<I", memory, place, value & 0xFFFFFFFF)
