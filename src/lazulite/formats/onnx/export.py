"""`to_onnx`: a function of tensors as an ONNX model.

The function runs once with stand-ins for its arguments, by which its results come as graphs of the `TENSOR`
language, which `formats/onnx/export_nodes.py` writes as operators.  Invariant: the file is put in place whole or
not at all, and the function's arguments are what they were.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.base.replacing import replacing
from lazulite.engine.tracing import EXPORTED, THREAD, traced, transformed
from lazulite.formats.onnx.export_graph import value_info
from lazulite.formats.onnx.export_nodes import Export
from lazulite.formats.onnx.proto import Graph, Model, OperatorSet
from lazulite.formats.onnx.wire import encode
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.stand_ins import Variables, flat, unfolded
from lazulite.tensor.structure import Group, Outline, Place
from lazulite.tensor.tensor import Tensor

_FUNCTION = "to_onnx"
_REPRESENTATIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}
"""For each version of the operators the version of the file's format that came with it."""
_LARGEST = (1 << 31) - 1
"""Bytes that a protobuf message may have."""


def to_onnx(
    function: Callable[..., Any], example: Any, path: str | os.PathLike[str] | None = None, *, opset: int = 21,
    names: Mapping[str, Tensor] | None = None,
) -> bytes:  # fmt: skip
    """The bytes of an ONNX model that computes what a function of tensors, or an `nn` layer, does; also put at `path`.

    `example` is what the function is called with, once: a Tensor, a tuple of Tensors, or a dictionary of Tensors by
    the names of its parameters.  An axis whose size is a bound `Variable` is one of any size in the model; all other
    sizes are those of the example.  Inputs are called after the parameters, outputs `output` (`output_0`, .. for
    several) or after the keys of a dictionary; `names` gives names to weights, as `nn.state.get_state_dict` does.
    `opset` is the version of the operators, 18 to 26.

    Products become MatMul and Conv, softmax and the like what they are made of.  Integer division, shifts and casts
    of floats to integers mean what they mean here.  Where ONNX leaves something open, whoever runs the model decides:
    the greatest of several numbers with a NaN among them (reductions), the sign of a zero in `maximum` and `minimum`,
    the order of a sum, which of several values scattered to one place stays.

    What ONNX cannot say raises FormatError with the line: hand-written kernels other than those that scatter (long
    rows are sorted by such), random draws, bit casts of floats below version 26 or between widths, bitwise reductions.
    A function that looks at values raises CaptureError.

    >>> model = to_onnx(lambda x: x.relu().sum(-1), Tensor([[1.0, -2.0, 3.0]]))
    >>> from lazulite.formats.onnx import OnnxRunner
    >>> OnnxRunner(model)({"x": Tensor([[5.0, -1.0, 0.5]])})["output"].tolist()
    [5.5]
    """
    if opset not in _REPRESENTATIONS:
        first, last = min(_REPRESENTATIONS), max(_REPRESENTATIONS)
        raise ArgumentError(_FUNCTION, f"writes operators of version {first} to {last}, got {opset!r}")
    given = _given(function, example)
    if names:
        Tensor.realize(*names.values())
    stand_ins, results = _run(function, example, given)
    export = Export(opset, names or {})
    inputs = [export.input(name, node) for name, node in zip(given, stand_ins, strict=True)]
    export.emit([node for _, node in results])
    outputs = [(export.graph.named(name), node) for name, node in results]
    nodes, constants = export.graph.finished([(name, export.of(node)) for name, node in outputs])
    declared = [value_info(name, node.dtype, node.shape) for name, node in outputs]
    graph = Graph(nodes, getattr(function, "__name__", type(function).__name__), constants, inputs, declared)
    pieces = encode(Model(_REPRESENTATIONS[opset], "lazulite", graph, [OperatorSet("", opset)]))
    if sum(len(piece) for piece in pieces) > _LARGEST:
        raise ArgumentError(_FUNCTION, "the model is larger than 2 GiB, which a file of this format cannot be")
    if path is not None:
        with replacing(path) as file:
            file.writelines(pieces)
    return b"".join(pieces)


# --- the function's graph ----------------------------------------------------------------------------


def _given(function: Callable[..., Any], example: Any) -> dict[str, Tensor]:
    """The arguments by the names that the model's inputs have."""
    if isinstance(example, Mapping):
        found = dict(example)
    else:
        values = example if isinstance(example, tuple | list) else (example,)
        found = dict(zip(_parameters(function, len(values)), values, strict=True))
    wrong = next((value for value in found.values() if not isinstance(value, Tensor)), None)
    if wrong is not None:
        raise DTypeError(
            _FUNCTION, f"an example is a Tensor, a tuple of Tensors or a dictionary of them, got {type(wrong).__name__}"
        )
    return found


def _parameters(function: Callable[..., Any], count: int) -> list[str]:
    """Names for so many arguments: those of the parameters, as far as they have any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function without a signature
        parameters = ()  # type: ignore[assignment]
    named = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return [named[place] if place < len(named) else f"input_{place}" for place in range(count)]


def _run(
    function: Callable[..., Any], example: Any, given: Mapping[str, Tensor]
) -> tuple[list[UOp], list[tuple[str, UOp]]]:
    """The stand-ins of the arguments, and the results by name as graphs over them."""
    variables, draws = Variables(), THREAD.examples
    with transformed() as depth, traced(getattr(function, "__name__", type(function).__name__), EXPORTED):
        try:
            own = {name: variables.stand_in(tensor, depth) for name, tensor in given.items()}
            call = variables.stand_in(Tensor.arange(1, dtype=dtypes.uint64).reshape(()), depth).uop
            THREAD.examples = (*draws, call)  # a draw depends on which call it is
            result = function(**own) if isinstance(example, Mapping) else function(*own.values())
            form, tensors = flat(_FUNCTION, result)
            graphs = unfolded([tensor.uop for tensor in tensors])
        finally:
            THREAD.examples = draws
            variables.close()
    if not tensors:
        raise DTypeError(_FUNCTION, f"the function gives tensors, got {type(result).__name__}")
    return variables.nodes[:-1], list(zip(_output_names(form, ""), graphs, strict=True))


def _output_names(form: Outline, prefix: str) -> Iterator[str]:
    """A name for each tensor of a result."""
    if isinstance(form, Place):
        yield prefix or "output"
    elif isinstance(form, Group):
        for number, item in enumerate(form.items):
            label = str(form.names[number]) if form.names else f"{prefix or 'output'}_{number}"
            yield from _output_names(item, f"{prefix}_{label}" if form.names and prefix else label)
