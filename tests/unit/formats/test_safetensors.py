import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.format import refusal
from lazulite import ArgumentError, FormatError, Tensor, dtypes
from lazulite.formats import safetensors
from support.model_files import described
from support.model_files import safetensors as made

reference = pytest.importorskip("safetensors")
EIGHT = described("F32", [2], 0, 8)
VALID = made({"a": EIGHT}, bytes(8))


def refused(data, tmp_path, text=""):
    path = tmp_path / "file.safetensors"
    path.write_bytes(data)
    error = refusal(safetensors.read, path)
    assert error is not None and text in error.message, error
    return error


def decisions(data, tmp_path):
    """Whether the format's own library reads a file, and whether ours does."""
    path = tmp_path / "file.safetensors"
    path.write_bytes(data)
    try:
        reference.deserialize(data)
        theirs = True
    except reference.SafetensorError:
        theirs = False
    try:
        safetensors.read(path)
        return theirs, True
    except FormatError:
        return theirs, False


def test_wide_unsigned_integers_are_exact(tmp_path):
    """B119: 2^32 - 1 and 2^64 - 1 are written and read bit by bit."""
    path = tmp_path / "file.safetensors"
    values = {"a": Tensor([0xFFFFFFFF], dtype="uint32"), "b": Tensor([0xFFFFFFFFFFFFFFFF], dtype="uint64")}
    safetensors.write(values, path)
    found = safetensors.read(path)
    assert ([0xFFFFFFFF], dtypes.uint32) == (found["a"].tolist(), found["a"].dtype)
    assert ([0xFFFFFFFFFFFFFFFF], dtypes.uint64) == (found["b"].tolist(), found["b"].dtype)


def test_a_header_longer_than_the_file_is_refused(tmp_path):
    """O07: a header of 2^40 bytes, and one that only just does not fit."""
    error = refused(struct.pack("<Q", 1 << 40) + b"{}", tmp_path, "is this a safetensors file?")
    assert ("the length of the header", 0) == (error.field, error.offset)
    assert "the header" == refused(made("{}", length=3), tmp_path, "would take bytes 8 to 11").field


def test_entries_that_overlap_or_occur_twice_are_refused(tmp_path):
    """O08: two names for the same bytes, and the same name twice."""
    assert "b" == refused(made({"a": EIGHT, "b": EIGHT}, bytes(8)), tmp_path, "ends at 8").field
    text = json.dumps(EIGHT)
    refused(made(f'{{"a":{text},"a":{text}}}', bytes(8)), tmp_path, "occurs twice")
    refused(made(f'{{"a":{text},"\\u0061":{text}}}', bytes(8)), tmp_path, "occurs twice")


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64"]
)
def test_what_is_written_is_what_the_library_reads(dtype, tmp_path):
    numpy = pytest.importorskip("numpy")
    from safetensors.numpy import load_file, save_file

    values = {
        "a": numpy.arange(6).reshape(2, 3).astype(dtype),
        "b": numpy.zeros((0, 2), dtype),
        "c": numpy.array(1, dtype),
    }
    safetensors.write({name: Tensor(value) for name, value in values.items()}, tmp_path / "ours", {"k": "v\u00e9"})
    save_file(values, tmp_path / "theirs", {"k": "v\u00e9"})
    for name, value in load_file(tmp_path / "ours").items():
        assert values[name].tobytes() == value.tobytes() and values[name].shape == value.shape
    found = safetensors.read(tmp_path / "theirs")
    assert {n: v.tolist() for n, v in values.items()} == {n: v.tolist() for n, v in found.items()}
    assert (
        {"k": "v\u00e9"}
        == safetensors.read_metadata(tmp_path / "theirs")
        == safetensors.read_metadata(tmp_path / "ours")
    )


@pytest.mark.parametrize("code, peer", [("F8_E4M3", "float8_e4m3fn"), ("F8_E5M2", "float8_e5m2")])
def test_floats_of_8_bits_come_back(code, peer, tmp_path):
    numpy, ml_dtypes = pytest.importorskip("numpy"), pytest.importorskip("ml_dtypes")
    data = bytes(range(256))
    (tmp_path / "file").write_bytes(made({"a": described(code, [256], 0, 256)}, data))
    found = safetensors.read(tmp_path / "file")["a"]
    expected = numpy.frombuffer(data, getattr(ml_dtypes, peer)).astype("float32")
    assert numpy.array_equal(expected, found.float().numpy(), equal_nan=True)
    safetensors.write({"a": found}, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes().endswith(data)


def test_elements_are_aligned_in_what_is_written(tmp_path):
    values = {
        "a": Tensor([1], dtype="uint8"),
        "b": Tensor([1.0], dtype="float64"),
        "c": Tensor([1, 2, 3], dtype="int16"),
    }
    safetensors.write(values, tmp_path / "file")
    data = (tmp_path / "file").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert 0 == int.from_bytes(data[:8], "little") % 8
    assert all(header[name]["data_offsets"][0] % values[name].dtype.itemsize == 0 for name in values)


def test_what_has_no_place_in_a_file_is_refused_before_one_is_made(tmp_path):
    for values, metadata in [({"__metadata__": Tensor([1])}, {}), ({}, {"a": 1}), ({}, {1: "a"})]:
        with pytest.raises(ArgumentError, match="texts by name"):
            safetensors.write(values, tmp_path / "file", metadata)
    assert [] == list(tmp_path.iterdir())


# --- which files are files ----------------------------------------------------------------------------


def entry(**changes):
    return json.dumps({"a": EIGHT | changes})


@pytest.mark.parametrize(
    "data",
    [
        VALID,
        VALID + b"x",
        VALID[:-1],
        b"",
        b"abc",
        made(""),
        made("[]"),
        made("{}"),
        made("{}", b"x"),
        made("null"),
        made('{"a":null}'),
        made('{"a":[]}'),
        made('{"a":{}}'),
        made('  {"a":' + json.dumps(EIGHT) + "}\n\t", bytes(8)),
        made("\ufeff{}"),
        made("{}\0"),
        made("{}}"),
        made(b"\xff{}"),
        made(b'{"\xff":{}}'),
        made('{"__metadata__":null}'),
        made('{"__metadata__":{"a":1}}'),
        made('{"__metadata__":[]}'),
        made('{"__metadata__":{"a":"b"}}'),
        made('{"__metadata__":{"dtype":"F32"}}'),
        made('{"\\ud800":' + json.dumps(EIGHT) + "}", bytes(8)),
        made('{"\\ud83d\\ude00":' + json.dumps(EIGHT) + "}", bytes(8)),
        made(b'{"\x01":' + json.dumps(EIGHT).encode() + b"}", bytes(8)),
        *(
            made(entry(shape=shape), bytes(8))
            for shape in (
                [2.0],
                [-2],
                ["2"],
                [True],
                2,
                None,
                [[2]],
                [2, 1],
                [1],
                [3],
                [1 << 64],
                [-(1 << 64)],
                {},
                [2e0],
            )
        ),
        *(
            made(entry(data_offsets=places), bytes(8))
            for places in ([0], [0, 8, 8], [8, 0], [0, 4], [4, 8], [4, 12], [0, 1 << 64], [-8, 0], [0.0, 8], "08", None)
        ),
        *(made(entry(dtype=dtype), bytes(8)) for dtype in ("I32", "F16", "f32", "", None, 7, ["F32"], "F128")),
        *(
            made(entry(shape=shape, data_offsets=[0, 0]))
            for shape in ([0], [0, 1 << 63], [1 << 63, 4, 0], [1 << 63, 0], [0, 1 << 64], [1 << 62, 4, 0, 1])
        ),
        made('{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}'),
        made(entry(more=[1, {}]), bytes(8)),
        made(entry()[:-2] + ',"z":NaN}}', bytes(8)),
        made(entry()[:-2] + ',"z":1e999}}', bytes(8)),
        made(entry()[:-2] + ',"z":-Infinity}}', bytes(8)),
        made(entry()[:-2] + ',"z":1e5}}', bytes(8)),
        made({"a": EIGHT, "b": described("F32", [0], 8, 8), "c": described("F32", [0], 8, 8)}, bytes(8)),
        made({"a": EIGHT, "b": described("F32", [0], 4, 4)}, bytes(8)),
        made({"a": EIGHT, "b": described("F32", [0], 0, 0)}, bytes(8)),
        made({"a": EIGHT, "b": described("U8", [1], 9, 10)}, bytes(10)),
        made({"b": described("U8", [1], 8, 9), "a": EIGHT}, bytes(9)),
    ],
    ids=lambda data: repr(data[8:80]),
)
def test_the_format_s_own_library_decides_as_this_one(data, tmp_path):
    theirs, ours = decisions(data, tmp_path)
    assert theirs == ours


def replaced(text, data):
    """A text with a few short pieces replaced by others that mean something in a header."""
    pieces = st.sampled_from(
        ["", "0", "1", "8", "-", "9" * 20, '"', "{", "}", "[", "]", ",", ":", "F32", "I8", "null", ".", "e", " "]
    )
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(pieces) + text[at + data.draw(st.integers(0, 3)) :]
    return text


@given(st.data())
def test_damaged_files_are_decided_as_by_the_format_s_own_library(tmp_path_factory, data):
    """But for names that occur twice, which only this reader refuses."""
    sizes = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=3))
    header, begin = {}, 0
    for number, shape in enumerate(sizes):
        dtype, width = data.draw(st.sampled_from([("F32", 4), ("U8", 1), ("F64", 8), ("BOOL", 1)]))
        end = begin + width * (shape[0] if shape else 1) * (shape[1] if len(shape) > 1 else 1)
        header["t" + "x" * number], begin = described(dtype, shape, begin, end), end
    whole = made(
        replaced(json.dumps(header, separators=(",", ":")), data),
        bytes(begin + data.draw(st.sampled_from([0, 0, 0, 1]))),
    )
    theirs, ours = decisions(whole, tmp_path_factory.mktemp("files"))
    if theirs and not ours:
        with pytest.raises(ValueError, match="twice"):
            json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")], object_pairs_hook=once)
    else:
        assert theirs == ours


def once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("twice")
    return dict(pairs)


def test_huge_numbers_in_a_header_cost_no_time(tmp_path):
    """The product of thousands of numbers of thousands of digits is never made."""
    refused(made(entry(shape=[10**4000] * 4000), bytes(8)), tmp_path, "64 bits")
    refused(made('{"a":' * 5000 + "1" + "}" * 5000), tmp_path)


def test_a_large_header_is_read(tmp_path):
    path = tmp_path / "file.safetensors"
    path.write_bytes(made({f"layer.{n}.weight": described("U8", [1], n, n + 1) for n in range(5000)}, bytes(5000)))
    assert 5000 == len(safetensors.read(path))
