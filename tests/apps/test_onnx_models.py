"""Networks that people use, from the wheels that bring them, against ONNX Runtime.

They run where those packages are installed: `pip install --no-deps silero-vad magika rapidocr-onnxruntime`, and
`onnxruntime` to compare with.  Nothing is downloaded.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy
import pytest

from lazulite.formats.onnx import OnnxRunner

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MODELS = {
    "silero-vad": ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx", "silero_vad_op18_ifless.onnx",
                   "silero_vad_16k_sequence.onnx", "silero_vad_openvino_16k.onnx"],
    "magika": ["model.onnx"],
    "rapidocr-onnxruntime": [
        "ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx", "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    ],
}  # fmt: skip
SIZES = {"_det_": (64, 96), "_rec_": (48, 96), "_cls_": (48, 192)}


def found(package: str, name: str) -> Path:
    """The file of an installed package."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        pytest.skip(f"notyet: needs the package {package}")
    for file in files:
        if file.name == name:
            return Path(str(file.locate()))
    pytest.skip(f"notyet: this version of {package} has no {name}")


def made(path: Path, name: str, text: str, rng: numpy.random.Generator) -> Any:
    """An input that such a model is given."""
    if name == "sr":
        return numpy.array(16000, "int64")
    kind, _, sizes = text.removesuffix("]").partition("[")
    known = [int(size) if size.isdecimal() else None for size in sizes.split(", ") if size]
    image = next((size for key, size in SIZES.items() if key in path.name), None)
    if image is not None:
        return rng.standard_normal((1, 3, *image)).astype("float32")
    if kind == "int32":
        return rng.integers(0, 256, [size or 1 for size in known]).astype("int32")
    if name == "input":
        return (rng.standard_normal((1, 576)) * 0.1).astype("float32")
    return numpy.zeros([size or 1 for size in known], kind)


@pytest.mark.parametrize("package, name", [(package, name) for package, names in MODELS.items() for name in names])
def test_a_model_gives_what_onnx_runtime_gives(package: str, name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = found(package, name)
    runner, rng = OnnxRunner(path), numpy.random.default_rng(0)
    inputs = {key: made(path, key, text, rng) for key, text in runner.inputs.items()}
    expected = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)
    results = runner(inputs)

    assert len(expected) == len(results)
    for reference, result in zip(expected, results.values(), strict=True):
        numpy.testing.assert_allclose(reference, result.numpy(), rtol=1e-4, atol=1e-5)
