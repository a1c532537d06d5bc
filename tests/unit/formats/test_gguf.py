import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.format import refusal
from lazulite import FormatError
from lazulite.formats import gguf
from lazulite.formats.quants import QUANTS
from lazulite.formats.source import Source
from support.model_files import gguf as made
from support.model_files import listed, pair, text, values

UINT8, INT8, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, FLOAT64 = 0, 1, 4, 5, 6, 7, 8, 9, 10, 12
F32, Q4_1, I32 = 0, 3, 26
FOUR = listed("a", (4,), F32, 0)


def refused(data, tmp_path):
    path = tmp_path / "file.gguf"
    path.write_bytes(data)
    error = refusal(lambda p: gguf.read(p).tensors(), path)
    assert error is not None, "it was read"
    assert 0 <= error.offset
    return error


def read(data):
    return gguf.read_source(Source.over(memoryview(bytearray(data)), "file.gguf"))


def test_metadata_of_every_type_are_read():
    found = read(
        made(
            (
                pair("u8", 0, b"\xff"),
                pair("i8", 1, b"\xff"),
                pair("u16", 2, b"\xff\xff"),
                pair("i16", 3, b"\xff\xff"),
                pair("u32", 4, b"\xff" * 4),
                pair("i32", 5, b"\xff" * 4),
                pair("f32", 6, struct.pack("<f", 0.5)),
                pair("bool", 7, b"\1"),
                pair("text", 8, text("a\u00e9")),
                pair("u64", 10, b"\xff" * 8),
                pair("i64", 11, b"\xff" * 8),
                pair("f64", 12, struct.pack("<d", 0.1)),
                pair("none", 9, values(UINT8, 0)),
                pair("ints", 9, values(INT32, 2, struct.pack("<2i", -1, 7))),
                pair("texts", 9, values(8, 2, text("") + text("b"))),
                pair("odd", 8, text(b"\xff")),
            )
        )
    ).metadata
    assert {
        "u8": 255,
        "i8": -1,
        "u16": 65535,
        "i16": -1,
        "u32": 2**32 - 1,
        "i32": -1,
        "f32": 0.5,
        "bool": True,
        "text": "a\u00e9",
        "u64": 2**64 - 1,
        "i64": -1,
        "f64": 0.1,
        "none": [],
        "ints": [-1, 7],
        "texts": ["", "b"],
        "odd": "\udcff",
    } == found


def test_what_the_reference_writes_is_read(tmp_path):
    """Plain and quantised tensors of the gguf package, with NumPy's order of axes."""
    numpy, peer = pytest.importorskip("numpy"), pytest.importorskip("gguf")
    writer = peer.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_array("tokens", ["a", "b"])
    writer.add_custom_alignment(64)
    plain = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    packed = peer.quants.quantize(
        numpy.linspace(-1, 1, 128, dtype=numpy.float32).reshape(2, 64), peer.GGMLQuantizationType.Q8_0
    )
    writer.add_tensor("plain", plain)
    writer.add_tensor("half", plain.astype(numpy.float16))
    writer.add_tensor("packed", packed, raw_dtype=peer.GGMLQuantizationType.Q8_0)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    found = gguf.read(tmp_path / "m.gguf")
    assert ("llama", ["a", "b"], 64) == tuple(
        found.metadata[key] for key in ("general.architecture", "tokens", "general.alignment")
    )
    assert ["F32", "F16", "Q8_0"] == [entry.kind_name for entry in found.entries.values()]
    tensors = found.tensors()
    assert plain.tolist() == tensors["plain"].tolist() == tensors["half"].tolist()
    expected = peer.quants.dequantize(packed, peer.GGMLQuantizationType.Q8_0)
    assert (expected.shape, expected.tolist()) == (tensors["packed"].shape, tensors["packed"].tolist())
    assert (2, 68) == found.entries["packed"].packed("packed").shape and 136 == found.entries["packed"].nbytes


def test_a_split_file_is_read_by_its_first_part(tmp_path):
    names = [f"m-0000{n}-of-00002.gguf" for n in (1, 2)]
    data = struct.pack("<4f", 1, 2, 3, 4)
    count = pair("split.count", 2, struct.pack("<H", 2))
    (tmp_path / names[0]).write_bytes(made((count,), (FOUR,), data))
    (tmp_path / names[1]).write_bytes(made((count,), (listed("b", (2, 2), F32, 0),), data))
    found = gguf.read(tmp_path / names[0]).tensors()
    assert {"a": [1, 2, 3, 4], "b": [[1, 2], [3, 4]]} == {name: each.tolist() for name, each in found.items()}
    with pytest.raises(FormatError, match="opened by the first"):
        gguf.read(tmp_path / names[1])
    (tmp_path / names[1]).write_bytes(made((count,), (FOUR,), data))
    with pytest.raises(FormatError, match="two parts"):
        gguf.read(tmp_path / names[0])


def test_a_list_that_claims_more_than_the_file_is_refused(tmp_path):
    """B122: a file of 43 bytes whose list should have 2^63 elements, of every type."""
    for kind in range(13):
        if kind != ARRAY:
            error = refused(made((pair("k", ARRAY, values(kind, 1 << 63)),)), tmp_path)
            assert "k" == error.field and str(1 << 63) in error.message


def test_a_product_of_sizes_that_overflows_is_refused(tmp_path):
    """B124: sizes (4, 2^62) of float32 with 16 bytes of data, and others that wrap to what is there."""
    for shape, kind in [
        ((1 << 62, 4), F32),
        ((4, 1 << 62), F32),
        ((1 << 32, 1 << 32), F32),
        ((1 << 63, 2, 2), F32),
        ((1 << 16,) * 4, F32),
        ((1 << 59, 32), Q4_1),
        ((1 << 64) - 1, F32),
    ]:
        shape = shape if isinstance(shape, tuple) else (shape,)
        error = refused(made((), (listed("a", shape, kind, 0),), bytes(16)), tmp_path)
        assert "a" == error.field


@pytest.mark.parametrize(
    "data, text",
    [
        (made(magic=b"GGUX"), "no GGUF"),
        (made(magic=b"FUGG"), "no GGUF"),
        (made(version=1), "version 1"),
        (made(version=4), "version 4"),
        (made(version=3 << 24), "version"),
        (b"GGUF", "the version"),
        (made(counts=(0, 1 << 63)), str(1 << 63)),
        (made(counts=(1 << 63, 0)), str(1 << 63)),
        (made(counts=(1, 0)), "1 are"),
        (made(counts=(0, (1 << 64) - 1)), "are more"),
        (made((text("k", 1 << 62),)), "are more"),
        (made((text("k" * 70_000) + b"\0" * 9,)), "70000"),
        (made((pair("k", STRING, text("v", (1 << 64) - 1)),)), "are more"),
        (made((pair("k", 13, b"\0" * 8),)), "no type"),
        (made((pair("k", UINT64, b"\0" * 4),)), "would take"),
        (made((pair("k", ARRAY, values(ARRAY, 1, bytes(12))),)), "type 9"),
        (made((pair("k", ARRAY, values(99, 1, bytes(12))),)), "type 99"),
        (made((pair("k", ARRAY, values(UINT64, 3, bytes(8))),)), "3 are"),  # as many bytes of a narrower type would fit
        (made((pair("k", ARRAY, values(STRING, 2, text("a") + text("b", 1 << 60))),)), "a text of"),
        (made((pair("k", ARRAY, values(STRING, 2, text("abcdefgh"))),)), "would take"),
        (made((pair("k", BOOL, b"\1"), pair("k", BOOL, b"\1"))), "twice"),
        *(
            (made((pair("general.alignment", UINT32, struct.pack("<I", a)),), (FOUR,), bytes(16)), "alignment")
            for a in (0, 1, 3, 7, 33, 1 << 31, (1 << 32) - 1)
        ),
        (made((pair("general.alignment", STRING, text("32")),), (FOUR,), bytes(16)), "alignment"),
        (made((pair("general.alignment", BOOL, b"\1"),), (FOUR,), bytes(16)), "alignment"),
        (made((), (listed("a", (1,) * 5, F32, 0),), bytes(16)), "5 axes"),
        (made((), (text("a") + struct.pack("<I", 0xFFFFFFFF),), bytes(16)), "axes"),
        (made((), (FOUR, FOUR), bytes(16)), "twice"),
        (made((), (FOUR, listed("b", (4,), F32, 0)), bytes(16)), "shares bytes"),
        (made((), (listed("a", (4,), F32, 0), listed("b", (16,), F32, 32)), bytes(95)), "would take"),
        (made((), (listed("a", (4,), F32, 16),), bytes(99)), "multiple"),
        (made((), (listed("a", (4,), F32, 1 << 62),), bytes(16)), "would take"),
        (made((), (listed("a", (4,), F32, (1 << 64) - 32),), bytes(16)), "would take"),
        (made((), (listed("a", (1 << 40,), F32, 0),), bytes(16)), "would take"),
        *(
            (made((), (listed("a", (256,), kind, 0),), bytes(2048)), "no type")
            for kind in (4, 5, 9, 15, 31, 99, (1 << 32) - 1)
        ),
        (made((), (listed("a", (), Q4_1, 0),), bytes(64)), "consist of 32"),
        (made((), (listed("a", (31,), Q4_1, 0),), bytes(64)), "consist of 32"),
        (made((), (listed("a", (64, 1), Q4_1, 0),), bytes(64)), "consist of 32"),
        (made((pair("split.count", INT32, struct.pack("<i", 1 << 30)),)), "opened by the first"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_made_other_readers_fail_is_refused(data, text, tmp_path):
    """Counts, lengths, widths, alignments, types, sizes and ranges of published reports on readers of the format."""
    assert text in str(refused(data, tmp_path))


def test_every_length_of_a_header_with_everything_is_refused(tmp_path):
    whole = made(
        (pair("k", ARRAY, values(STRING, 2, text("ab") + text("c"))), pair("f", FLOAT64, bytes(8))), (FOUR,), bytes(16)
    )
    assert [0, 0, 0, 0] == read(whole).tensors()["a"].tolist()
    for length in range(len(whole)):
        with pytest.raises(FormatError):
            read(whole[:length])


def test_tensors_without_elements_and_of_rank_0_are_read():
    tensors = listed("none", (0, 4), F32, 0), listed("one", (), F32, 0), listed("empty", (0,), Q4_1, 32)
    found = read(made((), tensors, struct.pack("<f", 2.5) + bytes(28))).tensors()
    assert {"none": [], "one": 2.5, "empty": []} == {name: each.tolist() for name, each in found.items()}


def test_a_long_vocabulary_is_read_whole():
    words = [f"token {n}" for n in range(50_000)]
    assert (
        words == read(made((pair("k", ARRAY, values(STRING, len(words), b"".join(map(text, words)))),))).metadata["k"]
    )


numbers = st.sampled_from(
    [0, 1, 2, 4, 31, 32, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 62, 1 << 63, (1 << 64) - 1]
)


@given(st.data())
def test_a_damaged_header_is_read_or_refused(data):
    """Numbers of 4 and 8 bytes, anywhere, become others that readers stumble over."""
    pairs = (
        pair("general.alignment", UINT32, struct.pack("<I", 32)),
        pair("w", ARRAY, values(STRING, 2, text("ab") + text("c"))),
    )
    whole = made(
        (*pairs, pair("n", ARRAY, values(INT32, 2, bytes(8)))), (FOUR, listed("q", (2, 32), Q4_1, 32)), bytes(96)
    )
    for _ in range(data.draw(st.integers(1, 3))):
        width = data.draw(st.sampled_from([1, 4, 8]))
        at = data.draw(st.integers(4, len(whole) - 96 - width))
        number = data.draw(numbers) % (1 << 8 * width)
        whole = whole[:at] + number.to_bytes(width, "little") + whole[at + width :]
    try:
        for name, tensor in read(whole).tensors().items():
            assert tensor.numel() <= 64, name
    except FormatError as error:
        assert ("file.gguf", True) == (error.file, bool(error.field)) and error.offset is not None


def test_every_type_of_the_reference_is_known():
    peer = pytest.importorskip("gguf")
    plain = {"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"}
    known = {kind.value for kind in peer.quants._type_traits} | {
        peer.GGMLQuantizationType[name].value for name in plain
    }
    assert set() == known - QUANTS.keys() - gguf.PLAIN.keys()
