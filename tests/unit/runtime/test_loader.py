import contextlib
import ctypes
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.objects import DOUBLE_INTS, compile_ir, kernel
from lazulite.base.errors import DeviceError, FormatError
from lazulite.runtime import loader
from lazulite.runtime.loader import load_object

TABLES = """
@weights = internal constant [16 x float] [{values}], align 64
@counter = internal global i32 7
@zeros = global [64 x i32] zeroinitializer
@shared = global i32 30
@places = internal constant [2 x ptr] [ptr @counter, ptr @shared]

define internal i32 @choose(i64 %i) noinline {{
  switch i64 %i, label %other [i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e]
a: ret i32 100
b: ret i32 9
c: ret i32 -4
d: ret i32 77
e: ret i32 6
other: ret i32 0
}}

define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{
  %address = load i64, ptr %args
  %memory = inttoptr i64 %address to ptr
  %w = getelementptr float, ptr @weights, i64 %begin
  %weight = load float, ptr %w
  %weight_int = fptosi float %weight to i32
  %old = load i32, ptr @counter
  %next = add i32 %old, 1
  store i32 %next, ptr @counter
  %p = getelementptr ptr, ptr @places, i64 1
  %place = load ptr, ptr %p
  %direct = load i32, ptr @shared
  %through = load i32, ptr %place
  %chosen = call i32 @choose(i64 %begin)
  %s1 = add i32 %weight_int, %old
  %s2 = add i32 %s1, %direct
  %s3 = add i32 %s2, %through
  %s4 = add i32 %s3, %chosen
  store i32 %s4, ptr %memory
  ret void
}}
""".format(values=", ".join(f"float {1000 * i}.0" for i in range(16)))
EXPECTED = [1000 * i + 7 + i + 30 + 30 + chosen for i, chosen in enumerate([100, 9, -4, 77, 6, 0])]


def run(code):
    """What the kernel of TABLES gives for begin = 0, 1, .. 5."""
    function = load_object(code).function("kernel")  # the image itself is let go of
    result = ctypes.c_int32()
    words = (ctypes.c_int64 * 1)(ctypes.addressof(result))
    values = []
    for begin in range(6):
        function(words, ctypes.c_int64(begin), ctypes.c_int64(6), ctypes.c_void_p(0))
        values.append(result.value)
    return values


@pytest.mark.parametrize(("relocation", "model"), [("pic", "small"), ("static", "large")])
def test_constants_variables_calls_and_jump_tables_work(relocation, model):
    assert run(compile_ir(TABLES, relocation, model)) == EXPECTED


def test_the_table_of_addresses_is_made_where_code_wants_one():
    code = compile_ir(TABLES)
    assert b"shared" in code
    kinds = {info & 0xFFFFFFFF for _, info, _ in relocations(code)}
    assert kinds & {9, 41, 42}, "the compiler made no GOTPCREL relocation, so this shows nothing"
    assert run(code) == EXPECTED


def relocations(code):
    table, count = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 60)[0]
    for i in range(count):
        _, kind, _, _, offset, size, *_ = struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i)
        if kind == 4:
            yield from struct.iter_unpack("<QQq", code[offset : offset + size])


def test_code_that_runs_cannot_be_written():
    image = load_object(compile_ir(TABLES))
    rights = {}
    with open("/proc/self/maps") as maps:
        for place, mode, *_ in map(str.split, maps):
            begin, end = (int(part, 16) for part in place.split("-"))
            rights |= {page: mode for page in (image.address, image.address + 4096) if begin <= page < end}
    assert rights == {image.address: "r-xp", image.address + 4096: "r--p"}


def test_what_is_not_in_the_object_is_refused_by_name():
    text = "declare void @elsewhere()\ndefine void @kernel() {\n call void @elsewhere()\n ret void\n}"
    with pytest.raises(FormatError, match="'elsewhere' is not defined"):
        load_object(compile_ir(text))


def test_an_address_out_of_reach_is_refused_with_a_remedy():
    with pytest.raises(FormatError, match="position-independent"):
        load_object(compile_ir(TABLES, "static", "small"))


def test_thread_local_variables_are_refused():
    text = "@t = thread_local global i32 0\ndefine void @kernel() {\n store i32 1, ptr @t\n ret void\n}"
    with pytest.raises(FormatError):
        load_object(compile_ir(text))


def test_a_function_that_is_not_there_is_named():
    with pytest.raises(FormatError, match="no function 'other'"):
        load_object(kernel(DOUBLE_INTS).code).function("other")


def test_a_function_may_keep_the_lock_of_the_interpreter():
    values = (ctypes.c_int32 * 4)(1, 2, 3, 4)
    words = (ctypes.c_int64 * 1)(ctypes.addressof(values))
    load_object(kernel(DOUBLE_INTS).code).function("kernel", keep_gil=True)(words)
    assert list(values) == [2, 4, 6, 8]


def test_an_unknown_relocation_is_refused():
    code = bytearray(compile_ir(TABLES))
    offset, info, addend = next(iter(relocations(code)))
    record = struct.pack("<QQq", offset, info, addend)
    at = code.index(record)
    code[at : at + 24] = struct.pack("<QQq", offset, info & ~0xFFFFFFFF | 200, addend)
    with pytest.raises(FormatError, match="unknown type 200"):
        load_object(bytes(code))


HEADER = {"table": (40, "<Q"), "entry": (58, "<H"), "names": (62, "<H")}
SECTION = {"name": (0, "<I"), "kind": (4, "<I"), "flags": (8, "<Q"), "size": (32, "<Q"), "link": (40, "<I"),
           "info": (44, "<I"), "alignment": (48, "<Q")}  # fmt: skip


def changed(section, **fields):
    """The object of TABLES with other fields in the header of one section, or of the file."""
    code = bytearray(compile_ir(TABLES))
    table, names = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 62)[0]
    strings = struct.unpack_from("<Q", code, table + 64 * names + 24)[0]
    begin, places = 0, HEADER
    if section:
        starts = [table + 64 * i for i in range(struct.unpack_from("<H", code, 60)[0])]
        titles = [bytes(code[strings + struct.unpack_from("<I", code, at)[0] :]).split(b"\0")[0] for at in starts]
        begin, places = starts[titles.index(section.encode())], SECTION
    for field, value in fields.items():
        struct.pack_into(places[field][1], code, begin + places[field][0], value)
    return bytes(code)


@pytest.mark.parametrize(
    ("section", "fields", "message"),
    [
        ("", {"entry": 40}, "table of sections is damaged"),
        ("", {"names": 500}, "table of sections is damaged"),
        ("", {"table": 1 << 60}, "reaches beyond"),
        (".text", {"name": 1 << 20}, "not in its table"),
        (".text", {"link": 99}, "refers to a section that is not there"),
        (".text", {"flags": 2}, "does not lie in code"),
        (".text", {"alignment": 3}, "cannot be placed"),
        (".text", {"alignment": 1 << 30}, "cannot be placed"),
        (".text", {"flags": 6 | 0x400}, "cannot be placed"),
        (".text", {"size": 1}, "outside its section"),
        (".bss", {"kind": 8, "size": 1 << 40}, "more than a program may have"),
        (".symtab", {"kind": 1}, "one table of symbols, not 0"),
        (".symtab", {"size": 25}, "no whole number of entries"),
        (".rela.text", {"kind": 9}, "without addends"),
        (".rela.text", {"info": 99}, "for a section that is not there"),
        (".rodata", {"flags": 0}, "a relocation has no target"),
        (".data.rel.ro", {"size": 4}, "outside its section"),
    ],
)
def test_each_fault_is_named(section, fields, message):
    with pytest.raises(FormatError, match=message):
        load_object(changed(section, **fields))


def test_relocations_of_what_is_not_part_of_the_program_are_left_out():
    assert run(changed(".eh_frame", flags=0)) == EXPECTED


def test_a_system_that_forbids_new_code_is_an_error_with_its_reason(monkeypatch):
    monkeypatch.setattr(loader, "_mprotect", lambda *arguments: -1)
    with pytest.raises(DeviceError, match="does not let a program be loaded"):
        load_object(compile_ir(TABLES))


@pytest.mark.parametrize("what", [b"", b"\x7fELF", b"MZ" + bytes(100), bytes(64), b"\x7fELF\x01\x01\x01" + bytes(57)])
def test_other_files_are_refused(what):
    with pytest.raises(FormatError):
        load_object(what)


@given(st.data())
def test_a_truncated_object_is_refused_or_complete(data):
    code = compile_ir(TABLES)
    length = data.draw(st.integers(0, len(code) - 1))
    with pytest.raises(FormatError):
        load_object(code[:length])


@given(st.data())
def test_damage_is_refused_or_does_no_harm_while_loading(data):
    """The checksum of the cache finds any damage; here only: a typed error, never a crash."""
    code = bytearray(compile_ir(TABLES))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(code) - 8))
        value = data.draw(st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**32, 2**63, 2**64 - 1])))
        width = data.draw(st.sampled_from([1, 2, 4, 8]))
        code[at : at + width] = value.to_bytes(8, "little")[:width]
    with contextlib.suppress(FormatError):
        load_object(bytes(code))
