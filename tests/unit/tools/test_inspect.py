import json
import struct
import subprocess
import sys

import pytest

from lazulite import Tensor
from lazulite.formats import gguf_writer, npy
from lazulite.formats.gguf_writer import Packed
from lazulite.formats.quants import QUANTS
from lazulite.nn.state import safe_save
from lazulite.tools import cli
from support.checkpoints import Global, Persistent, pickled
from support.model_files import checkpoint


@pytest.fixture
def model(tmp_path):
    """A GGUF file with a plain and a quantised tensor, and hostile texts."""
    blocks = Packed(QUANTS[8], Tensor([0] * 68, dtype="uint8").reshape(2, 34))
    metadata = {"general.architecture": "tiny", "template": "one\ntwo\x1b[2J", "tokens": [f"t{n}" for n in range(100)]}
    gguf_writer.write(
        {"w": blocks, "b\x1b[31m": Tensor([1.0, 2.0])}, tmp_path / "m.gguf", metadata | {"long": "x" * 500}
    )
    return str(tmp_path / "m.gguf")


def shown(capsys, *arguments):
    assert 0 == cli.main(["inspect", *arguments])
    return capsys.readouterr().out


def test_the_report_tells_types_shapes_and_memory(model, capsys):
    text = shown(capsys, model)
    lines = [line.split() for line in text.splitlines()]
    assert ["format", "GGUF"] in lines and ["elements", "66"] in lines
    assert ["w", "Q8_0", "(2,", "32)", "68", "B"] in lines
    assert "1 Q8_0, 1 F32" in text and "76 B, as float32 264 B" in text
    assert "100 values: ['t0'," in text and "(500 characters)" in text


def test_what_a_terminal_would_obey_is_spelled_out(model, capsys):
    for arguments in ([model], [model, "--key", "template"]):
        text = shown(capsys, *arguments)
        assert "\x1b" not in text and "\\x1b[2J" in text


def test_one_entry_is_printed_in_full(model, capsys):
    assert "one\ntwo\\x1b[2J\n" == shown(capsys, model, "--key", "template")
    assert [f"t{n}" for n in range(100)] == json.loads(shown(capsys, model, "--key", "tokens"))
    assert 1 == cli.main(["inspect", model, "--key", "tokenss"])
    assert "Try: tokens" in capsys.readouterr().err


def test_everything_for_programs(model, capsys):
    found = json.loads(shown(capsys, model, "--json"))
    assert {"type": "Q8_0", "shape": [2, 32], "bytes": 68} == found["tensors"]["w"]
    assert "GGUF" == found["format"] and "tiny" == found["metadata"]["general.architecture"]


def test_other_formats_are_told(tmp_path, capsys):
    safe_save({"a": Tensor([[1.0]])}, tmp_path / "s", {"made": "by hand"})
    npy.write_archive({"b": Tensor([1, 2])}, tmp_path / "z")
    npy.write(Tensor([1], dtype="uint8"), tmp_path / "n")
    weight = Global("torch._utils", "_rebuild_tensor_v2")(
        Persistent(("storage", Global("torch", "FloatStorage"), "0", "cpu", 2)), 0, (2,), (1,), False, {}
    )
    value = {"epoch": 3, "model": {"w": weight, "list": [weight]}}
    (tmp_path / "t").write_bytes(checkpoint(pickled(value), {"0": struct.pack("<2f", 1, 2)}))
    for name, *expected in [
        ("s", ["format", "safetensors"], ["made", "by", "hand"], ["a", "float32", "(1,", "1)", "4", "B"]),
        ("z", ["format", "npz"], ["b", "int32", "(2,)", "8", "B"]),
        ("n", ["format", "npy"], ["array", "uint8", "(1,)", "1", "B"]),
        ("t", ["format", "torch"], ["epoch", "3"], ["model.w", "float32", "(2,)", "8", "B"], ["model.list.0"]),
    ]:
        lines = [line.split() for line in shown(capsys, str(tmp_path / name)).splitlines()]
        for line in expected:
            assert any(found[: len(line)] == line for found in lines), (line, lines)


def test_broken_and_missing_files_are_user_errors(tmp_path, capsys):
    (tmp_path / "bad").write_bytes(b"GGUF")
    for name in ("bad", "missing"):
        assert 1 == cli.main(["inspect", str(tmp_path / name)])
        assert "" != capsys.readouterr().err


def test_a_reader_of_the_output_may_stop(model):
    program = f"{sys.executable} -m lazulite inspect {model} | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True, check=True)
    assert "" == done.stderr and done.stdout.startswith("file")
