import numpy
import pytest

from lazulite.tools import cli
from support.onnx_models import graph, model, node, value


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder with a model of two inputs and two arrays."""
    body = graph(
        [node("Sub", "a b", "less"), node("Shape", "a", "size")],
        [value("a", "float32", ["n"]), value("b", "float32", ["n"])],
        [value("less", "float32", ["n"]), value("size", "int64", [1])],
    )  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model(body))
    numpy.save(tmp_path / "ten.npy", numpy.full(10, 10, "float32"))
    numpy.save(tmp_path / "n.npy", numpy.arange(10, dtype="float32"))
    numpy.savez(tmp_path / "two.npz", a=numpy.zeros(1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_results_are_printed_with_type_shape_and_first_elements(path, capsys):
    assert 0 == cli.main(["run", "m.onnx", "--input", "ten.npy", "--input", "n.npy"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]

    assert ["less", "float32[10]", "10.0", "9.0", "8.0", "7.0", "6.0", "5.0", "4.0", "3.0", ".."] == lines[0]
    assert ["size", "int64[1]", "10"] == lines[1]


def test_inputs_have_names_and_results_go_to_a_file(path, capsys):
    assert 0 == cli.main(["run", "m.onnx", "--input", "b=ten.npy", "--input", "n.npy", "--output", "out.npz"])

    assert "" == capsys.readouterr().out
    found = numpy.load(path / "out.npz")
    assert [-10.0, -9.0] == found["less"][:2].tolist() and [10] == found["size"].tolist()


def test_a_model_alone_is_described(path, capsys):
    assert 0 == cli.main(["run", "m.onnx"])
    assert [["takes", "a", "float32[n]"], ["takes", "b", "float32[n]"]] == [
        line.split() for line in capsys.readouterr().out.splitlines()[:2]
    ]


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--input", "ten.npy"], "give b, too"), (["--input", "ten.npy"] * 3, "takes 2 inputs: a, b"),
        (["--input", "two.npz", "--input", "n.npy"], "holds no single array"), (["--input", "gone.npy"], "gone.npy"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_told(path, capsys, arguments, text):
    assert 1 == cli.main(["run", "m.onnx", *arguments])
    assert text in capsys.readouterr().err
