"""External data stays in the folder of the model, whatever the model says."""

import os

import numpy
import pytest

from lazulite import FormatError
from lazulite.formats.onnx import OnnxRunner
from support.onnx_models import external, graph, model, node

VALUES = numpy.arange(8, dtype="float32")


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "models"
    (inside / "parts").mkdir(parents=True)
    for place in (inside / "weights.bin", inside / "parts" / "w.bin", tmp_path / "secret.bin"):
        place.write_bytes(VALUES.tobytes())
    return inside


def write(folder, *tensors):
    """A model that sums its external tensors into its outputs."""
    names = [f"w{n}" for n in range(len(tensors))]
    nodes = [node("Identity", name, f"y{name}") for name in names]
    made = [external(facts.pop("shape", (4,)), name, **facts) for name, facts in zip(names, tensors, strict=True)]
    path = folder / "model.onnx"
    path.write_bytes(model(graph(nodes, "", " ".join(f"y{name}" for name in names), made)))
    return path


def test_data_of_a_file_beside_the_model_is_read(folder):
    path = write(
        folder, {"location": "weights.bin", "offset": 4, "length": 16}, {"location": "parts/w.bin"},
        {"location": "./weights.bin", "offset": 20, "length": 12, "shape": (3,)},
    )  # fmt: skip
    found = OnnxRunner(path)({})

    assert [1.0, 2.0, 3.0, 4.0] == found["yw0"].tolist()
    assert [0.0, 1.0, 2.0, 3.0] == found["yw1"].tolist() and [5.0, 6.0, 7.0] == found["yw2"].tolist()


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin", "parts/../../secret.bin", "parts/../weights.bin", "/etc/hostname", "//etc/hostname", "", ".",
        "..", "C:\\secret.bin", "..\\secret.bin", "parts", "nothing.bin", "weights.bin\0", "weights.bin\n",
        "parts//../x",
    ],
)  # fmt: skip
def test_any_other_place_is_refused(folder, location):
    with pytest.raises(FormatError) as caught:
        OnnxRunner(write(folder, {"location": location}))
    assert "w0" in caught.value.field


def test_a_full_path_into_the_own_folder_is_refused_too(folder):
    with pytest.raises(FormatError, match="relative"):
        OnnxRunner(write(folder, {"location": str(folder / "weights.bin")}))


def test_links_and_second_names_are_refused(folder, tmp_path):
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "inner.bin").symlink_to(folder / "weights.bin")
    (folder / "out").symlink_to(tmp_path)
    os.link(tmp_path / "secret.bin", folder / "hard.bin")
    for location in ("link.bin", "inner.bin", "out/secret.bin", "hard.bin"):
        with pytest.raises(FormatError, match=r"link|names"):
            OnnxRunner(write(folder, {"location": location}))


def test_a_pipe_or_a_device_is_refused_without_waiting(folder):
    os.mkfifo(folder / "pipe.bin")
    with pytest.raises(FormatError, match="regular"):
        OnnxRunner(write(folder, {"location": "pipe.bin"}))
    with pytest.raises(FormatError):
        OnnxRunner(write(folder, {"location": "/dev/zero"}))


@pytest.mark.parametrize(
    "facts",
    [
        {"offset": -4}, {"offset": "4x"}, {"offset": 20}, {"offset": 1 << 63}, {"offset": "9" * 5000}, {"length": 8},
        {"length": 1 << 62}, {"length": -16}, {"shape": (1 << 40,)}, {"shape": (1 << 40, 1 << 40)},
        {"offset": "\u0663"},
    ],
)  # fmt: skip
def test_ranges_lie_in_the_file_and_fit_the_shape(folder, facts):
    with pytest.raises(FormatError):
        OnnxRunner(write(folder, {"location": "weights.bin", **facts}))


def test_ranges_may_be_shared_but_not_overlap(folder):
    same = {"location": "weights.bin", "offset": 0}
    found = OnnxRunner(write(folder, dict(same), dict(same)))({})
    assert found["yw0"].tolist() == found["yw1"].tolist()
    for offset in (4, 12):
        with pytest.raises(FormatError, match="overlaps"):
            OnnxRunner(write(folder, dict(same), {"location": "weights.bin", "offset": offset}))


def test_a_model_in_memory_has_no_folder(folder):
    data = write(folder, {"location": "weights.bin"}).read_bytes()
    with pytest.raises(FormatError, match="read from a file"):
        OnnxRunner(data)
