import io

import pytest

from contract.format import refusal
from lazulite import FormatError, Tensor
from lazulite.formats import npy
from lazulite.formats.source import Source
from support.model_files import archive

numpy = pytest.importorskip("numpy")
DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


def made(array, **facts):
    target = io.BytesIO()
    numpy.lib.format.write_array(target, array, **facts)
    return target.getvalue()


def header(text, version=b"\1\0", length=None):
    data = text.encode()
    size = (len(data) if length is None else length).to_bytes(2 if version == b"\1\0" else 4, "little")
    return npy.MAGIC + version + size + data + bytes(64)


def refused(data, tmp_path, text=""):
    path = tmp_path / "file.npy"
    path.write_bytes(data)
    error = refusal(npy.read, path)
    assert error is not None and text in error.message, error


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_numpy_come_back(dtype, tmp_path):
    path = tmp_path / "file.npy"
    for array in (
        numpy.arange(6).reshape(2, 3),
        numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
        numpy.zeros((0, 2)),
        numpy.array(1),
        numpy.arange(3)[::-1],
    ):
        expected = array.astype(dtype)
        numpy.save(path, expected)
        found = npy.read(path)
        assert (expected.shape, dtype, expected.tolist()) == (found.shape, found.dtype.name, found.tolist())


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_reads_what_is_written(dtype, tmp_path):
    values = {"a": Tensor([[0, 1], [1, 0]], dtype=dtype), "b": Tensor([1], dtype=dtype), "c": Tensor(1, dtype=dtype)}
    npy.write_archive(values, tmp_path / "file.npz")
    npy.write(values["a"], tmp_path / "file.npy")
    with numpy.load(tmp_path / "file.npz") as found:
        assert {name: (dtype, value.tolist()) for name, value in values.items()} == {
            name: (str(found[name].dtype), found[name].tolist()) for name in found.files
        }
    assert [[0, 1], [1, 0]] == numpy.load(tmp_path / "file.npy").tolist()


def test_what_is_written_is_aligned_and_read_in_place(tmp_path):
    path = tmp_path / "file.npz"
    npy.write_archive({"a": Tensor([1], dtype="uint8"), "longer name": Tensor([1.0, 2.0], dtype="float64")}, path)
    source = Source(path)
    tensor = npy.read_archive(source)["longer name"]
    at = bytes(source.memory).index(numpy.array([1.0, 2.0]).tobytes())
    assert 0 == at % 64
    source.memory[at : at + 8] = bytes(8)
    assert [0.0, 2.0] == tensor.tolist()


def test_bfloat16_becomes_float32(tmp_path):
    npy.write(Tensor([1.5], dtype="bfloat16"), tmp_path / "file.npy")
    assert (numpy.float32, [1.5]) == (numpy.load(tmp_path / "file.npy").dtype, npy.read(tmp_path / "file.npy").tolist())


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_archives_of_numpy_come_back(save, tmp_path):
    save(tmp_path / "file.npz", numpy.arange(3), named=numpy.asfortranarray(numpy.ones((2, 3), "f4")))
    found = npy.read_archive(Source(tmp_path / "file.npz"))
    assert {"arr_0": [0, 1, 2], "named": [[1] * 3] * 2} == {name: each.tolist() for name, each in found.items()}


def test_versions_with_long_headers_are_read():
    for version in ((2, 0), (3, 0)):
        source = Source.over(memoryview(bytearray(made(numpy.arange(3), version=version))), "file")
        assert [0, 1, 2] == npy.read_source(source).tolist()


def test_python_objects_are_refused(tmp_path):
    """They would be pickles, which run what they contain."""
    refused(made(numpy.array([{"a": 1}], dtype=object), allow_pickle=True), tmp_path, "Python objects")


@pytest.mark.parametrize(
    "data, text",
    [
        (made(numpy.arange(3, dtype=">i4")), "big-endian"),
        (made(numpy.zeros(3, "c8")), "'<c8'"),
        (made(numpy.zeros(3, "f4,i4")), "elements"),
        (made(numpy.array(["a"])), "'<U1'"),
        (b"\x93NUMPY\x09\0", "version 9"),
        (header("{}", b"\2\0", 1 << 30), "longer than"),
        (header("{}", length=65000), "longer than"),
        (header("{}"), "has to tell"),
        (header("[]"), "has to tell"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"), "has to tell"),
        (header("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"), "True or False"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': 2}"), "a tuple"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}"), "from 0 on"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}"), "from 0 on"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}"), "from 0 on"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}"), "ends before"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1 << 62,)}"), "no dictionary"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"), "64 bits"),
        (header("{'descr': ['<f4'], 'fortran_order': False, 'shape': (2,)}"), "elements"),
        (header("__import__('os').system('true')"), "no dictionary"),
        (header("(" * 3000), "no dictionary"),
        (header("-" * 9000 + "1"), ""),
        (header("{" * 5000), "no dictionary"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_is_no_plain_array_is_refused(data, text, tmp_path):
    refused(data, tmp_path, text)


def test_members_that_are_no_arrays_are_refused():
    for members, match in (
        ([("a", b"1")], "end in"),
        ([("a.npy", b"1")], "would take|no array"),
        ([("a.npy", b"1" * 99)], "no array"),
    ):
        for compression in (0, 8):
            source = Source.over(memoryview(bytearray(archive(members, compression))), "file")
            with pytest.raises(FormatError, match=match):
                npy.read_archive(source)


def test_an_array_may_not_reach_into_the_next_member():
    first = made(numpy.zeros(4, "f4"))[:-4]
    source = Source.over(memoryview(bytearray(archive([("a.npy", first), ("b.npy", made(numpy.ones(99)))]))), "file")
    with pytest.raises(FormatError, match="ends before"):
        npy.read_archive(source)
