"""Exported models, run by all that can run them: Lazulite, the reference of `onnx`, and ONNX Runtime if installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

from lazulite import Tensor, to_onnx
from lazulite.formats.onnx import OnnxRunner

Results = dict[str, Any]


def loaded(model: bytes) -> Any:
    """The model as the package `onnx` reads it, checked with its shapes."""
    found = onnx.load_from_string(model)
    onnx.checker.check_model(found, full_check=True)
    return found


def operators(model: bytes) -> Counter[str]:
    """How often each operator occurs."""
    return Counter(node.op_type for node in loaded(model).graph.node)


def results(model: bytes, inputs: Mapping[str, Tensor]) -> dict[str, list[Any]]:
    """The outputs of a model by who computed them."""
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    with numpy.errstate(all="ignore"):
        found = {
            "lazulite": [value.numpy() for value in OnnxRunner(model)(inputs).values()],
            "onnx.reference": ReferenceEvaluator(loaded(model)).run(None, arrays),
        }
    if find_spec("onnxruntime") is not None:
        import onnxruntime

        found["onnxruntime"] = onnxruntime.InferenceSession(model).run(None, arrays)
    return found


def agrees(
    function: Callable[..., Any], *example: Tensor, within: float = 0.0, others: Any = None, **options: Any
) -> bytes:
    """The exported function, which gives everywhere what the function gives for the example and for `others`."""
    model = to_onnx(function, example, **options)
    names = [each.name for each in loaded(model).graph.input]
    for given in [example] if others is None else [others]:
        wanted = function(*given)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for who, values in results(model, dict(zip(names, given, strict=True))).items():
            for want, value in zip(wanted, values, strict=True):
                expected = want.numpy()
                assert expected.dtype == value.dtype, who
                numpy.testing.assert_allclose(value, expected, rtol=within, atol=within, err_msg=who)
    return model
