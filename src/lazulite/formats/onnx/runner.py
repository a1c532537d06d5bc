"""`OnnxRunner`: an ONNX model as a function from named inputs to named outputs.

The file is read and checked, every operator looked up and everything unsupported told at once; no
element of a weight is touched before it is needed.  A call builds a lazy graph, as the same program
written with `Tensor` would, and computes nothing that is not asked for: shapes and other small
constants are followed on the host, and only a condition, a count or a size that depends on the inputs
is computed on the way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy import ndarray

from lazulite.base.errors import ArgumentError, DTypeError, FormatError, LazuliteError, ShapeError, nearest
from lazulite.formats.onnx import families, folding
from lazulite.formats.onnx.external import ExternalFiles
from lazulite.formats.onnx.program import Preparation, Program, Step, type_text
from lazulite.formats.onnx.proto import Dimension, Model, ValueInfo
from lazulite.formats.onnx.registry import Call
from lazulite.formats.onnx.values import Value, accepted, type_name
from lazulite.formats.onnx.wire import Part, decode
from lazulite.formats.source import Source
from lazulite.runtime.registry import Device
from lazulite.tensor.tensor import Tensor

_FUNCTION = "OnnxRunner"
_MISUSES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
"""What Python and NumPy say when an operator is given values or attributes that it cannot work with."""


class OnnxRunner:
    """Runs a model: `OnnxRunner(path)({"x": array})` is a dictionary of output tensors.

    `model` is a path, the bytes of a file (a tensor of them too) or a model of the `onnx` package;
    external data is read only for a path.  `device` is where it computes.

    `inputs` and `outputs` are the names that a call takes and gives, with their declared types as text.
    """

    def __init__(self, model: Any, device: str | None = None) -> None:
        families.load()
        self.device = Device.DEFAULT if device is None else Device.canonical(device)
        source, folder = _opened(model)
        decoded = decode(Model, Part(source, 0, source.size), "model")
        if decoded.graph is None or not decoded.opset_import:
            source.fail("a model has a graph and says which operators it uses: is this an ONNX file?", "model", 0)
        self._preparation = Preparation(source, ExternalFiles(source, folder), decoded.functions, self.device)
        self.opsets = {each.domain: each.version for each in decoded.opset_import}
        self._program = self._preparation.graph(decoded.graph, self.opsets, frozenset(), "graph")
        self._preparation.require_complete()
        self._declared = {info.name: info for info in decoded.graph.input}
        names = [name for name in self._declared if name not in self._program.constants]
        self.inputs = {name: described(self._declared[name]) for name in names}
        self.outputs = {info.name: described(info) for info in decoded.graph.output}

    def __call__(self, inputs: Mapping[str, Any], debug: int = 0) -> dict[str, Any]:
        """The outputs by name, lazy; with `debug` each node is printed as it is reached.

        A value is a tensor, a NumPy array, numbers, a list of these for a sequence, or None for an
        optional that is absent.  An input with an initializer may be left out.
        """
        unknown = [name for name in inputs if name not in self._declared]
        absent = [name for name in self.inputs if name not in inputs]
        if unknown or absent:
            raise ArgumentError(
                _FUNCTION, f"the inputs are {', '.join(self.inputs)}; got {', '.join(map(str, inputs)) or 'none'}",
                hint=nearest(str(unknown[0]), self.inputs) if unknown else f"give {absent[0]}, too",
            )  # fmt: skip
        given = {name: accepted(value, self.device) for name, value in inputs.items()}
        sizes: dict[str, int] = {}
        for name, value in given.items():
            _require_declared(self._declared[name], value, sizes)
        values = _Run(self._preparation, self.device, debug).program(self._program, given, {})
        return {
            name: self._preparation.lift(value) if isinstance(value, ndarray) and value.dtype.kind != "O" else value
            for name, value in zip(self._program.outputs, values, strict=True)
        }


class _Run:
    """One call: programs run with their values in dictionaries, the innermost graph's first."""

    def __init__(self, preparation: Preparation, device: str, debug: int) -> None:
        self.preparation, self.device, self.debug = preparation, device, debug

    def program(self, program: Program, given: Mapping[str, Value], around: Mapping[str, Value]) -> list[Value]:
        values = {**around, **program.constants, **given}
        for step in program.steps:
            results = self._step(step, values)
            values.update((name, value) for name, value in zip(step.node.output, results, strict=False) if name)
        return [values.get(name) for name in program.outputs]

    def _step(self, step: Step, values: Mapping[str, Value]) -> Sequence[Value]:
        inputs = [values[name] if name else None for name in step.node.input]
        while inputs and inputs[-1] is None and not step.node.input[len(inputs) - 1]:
            inputs.pop()
        if self.debug:
            print(step, *[f"{type_name(value)}{getattr(value, 'shape', '')}" for value in inputs])
        try:
            return self._results(step, inputs, values)
        except LazuliteError as error:
            error.add_note(f"in the node {step}")
            raise
        except _MISUSES as error:
            message = f"the node {step} does not fit its inputs: {type(error).__name__}: {error}"
            raise FormatError(_FUNCTION, message) from error

    def _results(self, step: Step, inputs: list[Value], values: Mapping[str, Value]) -> Sequence[Value]:
        if step.body is not None:
            given = dict(zip(step.body.inputs, [*inputs, *[None] * len(step.body.inputs)], strict=False))
            return self.program(step.body, given, {})
        if step.operator is None:
            return self._expanded(step, inputs)
        folded = folding.fold(step.node.domain, step.node.op_type, inputs, step.attributes)
        if folded is not None:
            return folded
        call = Call(
            len(step.node.output), step.opset, self.device, self.preparation.lift,
            lambda program, given: self.program(program, dict(zip(program.inputs, given, strict=True)), values),
            values,
        )  # fmt: skip
        results = step.operator(inputs, step.attributes, call)
        return results if isinstance(results, tuple) else (results,)

    def _expanded(self, step: Step, inputs: list[Value]) -> Sequence[Value]:
        """The results of the function that the specification gives for these types."""
        program = self.preparation.later(step, inputs)
        values = dict(zip(program.inputs, [*inputs, *[None] * len(program.inputs)], strict=False))
        return self.program(program, values, {})


def _opened(model: Any) -> tuple[Source, Path | None]:
    """The bytes of a model and the folder that it lies in."""
    if isinstance(model, str | os.PathLike):
        return Source(model, _FUNCTION), Path(model).parent
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, Tensor):
        return Source.of(model, _FUNCTION), None
    if not isinstance(model, bytes | bytearray | memoryview):
        raise DTypeError(_FUNCTION, f"a model is a path or the bytes of a file, got {type(model).__name__}")
    return Source.over(memoryview(bytes(model)), "the model in memory", _FUNCTION), None


def described(info: ValueInfo) -> str:
    """A declared type as text: float32[1, N]."""
    tensor = info.type.tensor_type if info.type is not None else None
    if tensor is None or tensor.shape is None:
        return type_text(info.type)
    return f"{type_text(info.type)}[{', '.join(str(_size(dimension)) for dimension in tensor.shape.dim)}]"


def _size(dimension: Dimension) -> int | str:
    """A declared size: a number, a name, or a question mark (as some exporters write it; others write -1)."""
    if dimension.dim_value is not None and dimension.dim_value >= 0:
        return dimension.dim_value
    return dimension.dim_param or "?"


def _require_declared(info: ValueInfo, value: Value, sizes: dict[str, int]) -> None:
    """Raise unless a value has the declared type and sizes; one name is one size."""
    tensor = info.type.tensor_type if info.type is not None else None
    if tensor is None or value is None or isinstance(value, list):
        return
    if type_text(info.type) != type_name(value):
        raise DTypeError(_FUNCTION, f"the input {info.name} is {described(info)}, got {type_name(value)}")
    if tensor.shape is None:
        return
    fits = len(tensor.shape.dim) == len(value.shape)
    for dimension, size in zip(tensor.shape.dim, value.shape, strict=False):
        wanted = _size(dimension)
        if isinstance(wanted, str):
            wanted = size if wanted == "?" else sizes.setdefault(wanted, size)
        fits = fits and wanted == size
    if not fits:
        raise ShapeError(_FUNCTION, f"the input {info.name} is {described(info)}, got the shape {value.shape}")
