"""Protobuf: what is well formed is read, what is not is refused quickly."""

import tracemalloc
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import FormatError
from lazulite.formats.onnx import wire
from lazulite.formats.onnx.proto import Model
from lazulite.formats.onnx.wire import BYTES, DOUBLE, FLOAT, INT, TEXT, Part, decode, encode, many, one
from lazulite.formats.source import Source
from support.onnx_models import field, message, one_node, varint


@dataclass
class Sample:
    text: str = one(1, TEXT)
    number: int = one(2, INT)
    raw: Part | None = one(3, BYTES)
    inner: "Sample | None" = one(4, lambda: Sample)
    numbers: list[int] = many(5, INT)
    floats: list[float] = many(6, FLOAT)
    doubles: list[float] = many(7, DOUBLE)
    samples: "list[Sample]" = many(8, lambda: Sample)
    maybe: int | None = one(9, INT, optional=True)


def read(data, kind=Sample):
    source = Source.over(memoryview(data), "sample")
    return decode(kind, Part(source, 0, source.size), "sample")


def test_fields_are_read_by_number_and_unknown_ones_are_skipped():
    sample = read(
        message(f1="a", f2=-1, f3=b"raw", f4=message(f1="b"), f5=[1, 300], f6=[1.5], f77="later", f8=[b"", b""])
    )

    assert ("a", -1, b"raw") == (sample.text, sample.number, sample.raw.read("raw"))
    assert ("b", [1, 300], [1.5], 2) == (sample.inner.text, sample.numbers, sample.floats, len(sample.samples))
    assert (None, "", 0) == (sample.maybe, read(b"").text, read(b"").number)


def test_packed_numbers_are_those_written_one_by_one():
    packed = b"".join(map(varint, [0, 1, -1, 1 << 62]))
    assert [0, 1, -1, 1 << 62] == read(field(5, packed)).numbers
    assert [1.5, -2.0] == read(field(6, bytes.fromhex("0000c03f000000c0"))).floats
    assert [0.5] == read(field(7, bytes.fromhex("000000000000e03f"))).doubles


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_integer_of_64_bits_comes_back(number):
    assert number == read(field(2, number)).number


BROKEN = {
    "a varint without an end": b"\x10" + b"\xff" * 11,
    "a varint cut short": b"\x10\xff",
    "a length behind the end": b"\x0a\x05ab",
    "a length of 2**63": b"\x0a" + varint(1 << 63),
    "a group": b"\x0b",
    "wire type 7": b"\x0f",
    "field 0": b"\x02\x00",
    "a text that is not UTF-8": field(1, b"\xff\xfe"),
    "a number as a text": field(2, "no"),
    "a message as a number": field(4, 3),
    "a message twice": message(f4=[b"", b""]),
    "floats of three bytes": field(6, b"abc"),
    "32 bits cut short": b"\x35\x00",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_malformed_is_refused_with_the_place(name):
    with pytest.raises(FormatError) as caught:
        read(BROKEN[name])
    assert caught.value.field.startswith("sample") and caught.value.file == "sample"


def test_messages_nest_only_so_deep():
    deep = b""
    for _ in range(wire.DEEPEST):
        deep = field(4, deep)
    assert read(deep).inner is not None
    for _ in range(20):
        deep = field(4, deep)
    with pytest.raises(FormatError, match="deeper"):
        read(deep)


def test_a_bomb_costs_no_more_than_its_size():
    """Many empty messages, and lengths that claim more than there is, take memory in proportion to the file."""
    tracemalloc.start()
    assert 20000 == len(read(field(8, b"") * 20000).samples)
    with pytest.raises(FormatError):
        read(field(8, b"") * 1000 + b"\x42" + varint(1 << 40))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 25


@given(st.data())
def test_a_damaged_model_is_read_or_refused_and_nothing_else(data):
    """Any change of any byte: either a model or a FormatError."""
    good = one_node("Add", "a b", initializers=[("b", [1.0, 2.0])], axis=1)
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(good) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    for candidate in (bytes(damaged), good[:cut], bytes(damaged) + good[cut:]):
        with suppress(FormatError):
            read(candidate, Model)


# --- writing -------------------------------------------------------------------------------------


@given(
    st.builds(
        Sample,
        text=st.text(max_size=5),
        number=st.integers(-(1 << 63), (1 << 63) - 1),
        numbers=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=4),
        floats=st.lists(st.floats(width=32, allow_nan=False), max_size=4),
        doubles=st.lists(st.floats(allow_nan=False), max_size=4),
        samples=st.lists(
            st.builds(Sample, text=st.text(max_size=3), maybe=st.none() | st.integers(0, 300)), max_size=3
        ),
        maybe=st.none() | st.integers(0, 300),
    )
)
def test_what_is_written_is_read_back(sample):
    assert sample == read(b"".join(encode(sample)))


def test_bytes_are_written_as_they_lie_in_memory():
    data = bytes(range(200))
    pieces = encode(Sample(raw=Part.of(data, "raw")))

    assert data == read(b"".join(pieces)).raw.read("raw")
    assert any(isinstance(piece, memoryview) and piece.obj is data for piece in pieces)
