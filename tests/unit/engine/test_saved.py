"""Files of captured calls: whatever is wrong with one is found before anything of it runs."""

import hashlib
import json
import random
import struct

import pytest

from lazulite import FormatError, Tensor, jit, load_captured
from lazulite.engine import saved as module

FRONT = struct.Struct("<8sQQ32s")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A good file."""
    double = jit(lambda x: x * 2 + Tensor([1.0, 2.0]))
    for _ in range(2):
        double(Tensor([1.0, 2.0]))
    path = tmp_path_factory.mktemp("saved") / "double"
    double.save(path)
    return path.read_bytes()


def refusal(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(FormatError) as caught:
        load_captured(tmp_path / "f")
    assert str(tmp_path / "f") == caught.value.file
    return caught.value.field, caught.value.offset


def with_header(data, change):
    """The file with another header, and a checksum that says that all is well."""
    _, size, rest, _ = FRONT.unpack_from(data)
    header = json.loads(data[FRONT.size : FRONT.size + size])
    change(header)
    text = json.dumps(header).encode()
    body = text + data[FRONT.size + size :]
    return FRONT.pack(b"LAZULITE", len(text), rest, hashlib.sha256(body).digest()) + body


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, data):
    for length in [*range(0, 80, 7), *random.Random(1).sample(range(80, len(data)), 30)]:
        assert ("length", length if length < FRONT.size else 8) == refusal(tmp_path, data[:length])
    assert ("length", 8) == refusal(tmp_path, data + b"x")


def test_an_altered_byte_is_noticed_wherever_it_is(tmp_path, data):
    for place in [*range(0, 56, 5), *random.Random(2).sample(range(56, len(data)), 40)]:
        altered = bytearray(data)
        altered[place] ^= 1 << place % 8
        expected = ("magic", 0) if place < 8 else ("length", 8) if place < 24 else ("checksum", 24)
        assert expected == refusal(tmp_path, bytes(altered))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("calls"),
        lambda header: header.pop("version"),
        lambda header: header["calls"][0].pop("steps"),
        lambda header: header["calls"][0].update(result={"kind": "set", "names": [], "items": []}),
        lambda header: header["calls"][0].update(given=[[0, 1 << 40]]),
        lambda header: header["calls"][0]["steps"][0].update(inputs=[["nowhere", 1]]),
        lambda header: header["calls"][0]["steps"][0]["plan"].update(launches=3),
        lambda header: header["kernels"].clear(),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path, data, change):
    assert ("header", FRONT.size) == refusal(tmp_path, with_header(data, change))


def test_another_version_and_another_machine_are_refused(tmp_path, data, monkeypatch):
    assert ("version", FRONT.size) == refusal(tmp_path, with_header(data, lambda header: header.update(version=9)))
    assert ("machines", FRONT.size) == refusal(
        tmp_path, with_header(data, lambda header: header.update(machines={"NOWHERE": ""}))
    )
    here = module.machine("CPU")
    monkeypatch.setattr(module, "machine", lambda device: f"{here} +abacus")
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(FormatError, match=r"made for another machine; what differs: \+abacus"):
        load_captured(tmp_path / "f")
