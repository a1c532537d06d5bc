"""`lazulite run MODEL`: run an ONNX model on arrays of files, and tell or keep what comes out.

An input is a NumPy file, by name or in the order of the model.  Without one, what the model takes and
gives is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lazulite.base.errors import ArgumentError, nearest
from lazulite.base.terminal import columns
from lazulite.formats.load import load
from lazulite.formats.onnx.runner import OnnxRunner
from lazulite.tensor.tensor import Tensor

_SHOWN = 8
"""So many of the first elements of a result are printed."""


def run(model: str, inputs: Sequence[str], output: str) -> None:
    """Print each result, or write all of them to an NPZ file."""
    runner = OnnxRunner(model)
    if runner.inputs and not inputs:
        print(*columns([("takes", *each) for each in runner.inputs.items()]), sep="\n")
        print(*columns([("gives", *each) for each in runner.outputs.items()]), sep="\n")
        return
    results = runner(_named(runner, inputs))
    tensors = [value for value in results.values() if isinstance(value, Tensor)]
    if tensors:
        tensors[0].realize(*tensors[1:])
    if output:
        _write(results, output)
    else:
        print(*columns([(name, *_words(value)) for name, value in results.items()]), sep="\n")


def _named(runner: OnnxRunner, inputs: Sequence[str]) -> dict[str, Any]:
    """The arrays of the files: NAME=FILE, or a file for the next input that has none yet."""
    known = list(runner.inputs)
    pairs = [text.partition("=")[::2] if text.partition("=")[0] in known else ("", text) for text in inputs]
    free = iter([name for name in known if name not in dict(pairs)])
    found: dict[str, Any] = {}
    for name, path in pairs:
        chosen = name or next(free, "")
        if not chosen:
            raise ArgumentError(
                "run", f"the model takes {len(known)} inputs: {', '.join(known)}", hint=nearest(path, known)
            )
        array = load(path)
        if not isinstance(array, Tensor):
            raise ArgumentError("run", f"{path} holds no single array", hint="an .npy file for each input")
        found[chosen] = array
    return found


def _words(value: Any) -> tuple[str, str]:
    """A result's type and first elements."""
    if isinstance(value, list):
        return f"sequence of {len(value)}", ""
    array = value.numpy() if isinstance(value, Tensor) else value
    flat = array.reshape(-1)
    more = " .." if flat.size > _SHOWN else ""
    sizes = ", ".join(map(str, array.shape))
    return f"{array.dtype}[{sizes}]", " ".join(map(str, flat[:_SHOWN])) + more


def _write(results: Mapping[str, Any], output: str) -> None:
    import numpy

    if any(isinstance(value, list) or value is None for value in results.values()):
        raise ArgumentError("run", "a result is a sequence, which an NPZ file does not hold", hint="leave --output out")
    arrays = {name: value.numpy() if isinstance(value, Tensor) else value for name, value in results.items()}
    with open(output, "wb") as file:
        numpy.savez(file, **arrays)
