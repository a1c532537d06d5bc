"""Sequences (lists of values) and optionals (a value or None)."""

from __future__ import annotations

from typing import Any

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Host, Ints, Value, on_host
from lazulite.tensor.tensor import Tensor


@onnx_op("SequenceEmpty", since=11)
def sequence_empty(*, dtype: int = 1) -> list[Value]:
    return []


@onnx_op("SequenceConstruct", since=11)
def sequence_construct(*values: Value) -> list[Value]:
    return list(values)


@onnx_op("SequenceAt", since=11)
def sequence_at(sequence: Value, position: Ints) -> Value:
    return sequence[_place(sequence, position[0], len(sequence))]


@onnx_op("SequenceErase", since=11)
def sequence_erase(sequence: Value, position: Ints | None = None) -> list[Value]:
    place = _place(sequence, -1 if position is None else position[0], len(sequence))
    return [*sequence[:place], *sequence[place + 1 :]]


@onnx_op("SequenceInsert", since=11)
def sequence_insert(sequence: Value, value: Value, position: Ints | None = None) -> list[Value]:
    place = len(sequence) if position is None else _place(sequence, position[0], len(sequence) + 1, len(sequence))
    return [*sequence[:place], value, *sequence[place:]]


def _place(sequence: Any, position: int, count: int, size: int | None = None) -> int:
    """A position counted from the front; negative ones count from the end of the sequence."""
    length = count if size is None else size
    place = position if position >= 0 else position + length
    if not isinstance(sequence, list) or not 0 <= place < count:
        raise FormatError("OnnxRunner", f"position {position} is outside a sequence of {length}")
    return place


@onnx_op("SequenceLength", since=11)
def sequence_length(sequence: Value) -> Host:
    return numpy.array(len(sequence), "int64")


@onnx_op("SequenceMap", since=17)
def sequence_map(sequence: Value, *further: Value, body: Any, call: Call) -> Any:
    """The body for each element; a further input that is a sequence gives its elements, too."""
    rows = []
    for place, value in enumerate(sequence):
        others = [other[place] if isinstance(other, list) else other for other in further]
        rows.append(call.run(body, [value, *others]))
    return tuple([[row[n] for row in rows] for n in range(call.outputs)])


@onnx_op("ConcatFromSequence", since=11)
def concat_from_sequence(sequence: Value, *, axis: int, new_axis: int = 0, call: Call) -> Tensor:
    first, *others = [call.lift(value) for value in sequence]
    return first.stack(*others, dim=axis) if new_axis else first.cat(*others, dim=axis)


@onnx_op("SplitToSequence", since=11)
def split_to_sequence(x: Tensor, split: Value = None, *, axis: int = 0, keepdims: int = 1) -> list[Tensor]:
    """Without sizes into parts of one, which need not keep their axis."""
    if split is None:
        parts = x.split(1, axis)
        return list(parts) if keepdims else [part.squeeze(axis) for part in parts]
    given = on_host(split)
    if given.ndim:
        return list(x.split([int(size) for size in given], axis))
    size, whole = int(given), x.shape[axis]
    return list(x.split([min(size, whole - begin) for begin in range(0, whole, size)], axis))


@onnx_op("Optional", since=15)
def optional(value: Value = None, *, type: str = "") -> Value:
    return value


@onnx_op("OptionalHasElement", since=15)
def optional_has_element(value: Value = None) -> Host:
    return numpy.array(value is not None)


@onnx_op("OptionalGetElement", since=15)
def optional_get_element(value: Value = None) -> Value:
    if value is None:
        raise FormatError("OnnxRunner", "the optional holds nothing")
    return value
