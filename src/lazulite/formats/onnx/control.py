"""Control flow: a subgraph chosen, repeated, or run over the parts of a sequence.

What decides (a condition, a count) is followed on the host where it is known, so a loop over a known count
builds one graph and runs nothing.  Where it depends on the inputs it is computed before going on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Host, Lift, Value
from lazulite.tensor.tensor import Tensor


@onnx_op("If")
def if_(condition: Host, *, then_branch: Any, else_branch: Any, call: Call) -> tuple[Value, ...]:
    return tuple(call.run(then_branch if condition.item() else else_branch, []))


@onnx_op("Loop")
def loop(count: Host | None = None, condition: Host | None = None, *state: Value, body: Any, call: Call) -> Any:
    """The state after the last turn, then what each turn made, stacked."""
    values, rows = list(state), []
    going, turn = True if condition is None else bool(condition.item()), 0
    while going and (count is None or turn < count.item()):
        again, *results = call.run(body, [numpy.array(turn, "int64"), numpy.array(True), *values])
        values, made = results[: len(values)], results[len(values) :]
        rows.append(made)
        turn += 1
        going = bool(again.item())
    scanned = len(body.outputs) - 1 - len(values)
    return (*values, *_stacked(rows, [0] * scanned, call.lift))


@onnx_op("Scan", since=9)
def scan(
    *inputs: Value, body: Any, num_scan_inputs: int, scan_input_axes: list[int] | None = None,
    scan_output_axes: list[int] | None = None, scan_input_directions: list[int] | None = None,
    scan_output_directions: list[int] | None = None, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    """The state after the last part, then what each part made, stacked along its axis."""
    values = list(inputs[: len(inputs) - num_scan_inputs])
    scanned = [call.lift(x) for x in inputs[len(values) :]]
    axes = scan_input_axes or [0] * len(scanned)
    backward = scan_input_directions or [0] * len(scanned)
    count = scanned[0].shape[axes[0]]
    rows = []
    for turn in range(count):
        places = [count - 1 - turn if reverse else turn for reverse in backward]
        parts = [_part(x, axis, place) for x, axis, place in zip(scanned, axes, places, strict=True)]
        results = call.run(body, [*values, *parts])
        values = results[: len(values)]
        rows.append(results[len(values) :])
    made = len(body.outputs) - len(values)
    if scan_output_directions:
        rows = [
            [rows[count - 1 - n if reverse else n][k] for k, reverse in enumerate(scan_output_directions)]
            for n in range(count)
        ]
    return (*values, *_stacked(rows, scan_output_axes or [0] * made, call.lift))


@onnx_op("Scan", since=8)
def batched_scan(
    lengths: Value = None,
    *inputs: Value,
    body: Any,
    num_scan_inputs: int,
    directions: list[int] | None = None,
    call: Call,
) -> tuple[Value, ...]:
    """The first version: each element of a batch scans on its own."""
    rows = []
    for place in range(inputs[0].shape[0]):
        parts = [call.lift(x)[place] for x in inputs]
        rows.append(
            scan(*parts, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions, call=call)
        )
    return _stacked(rows, [0] * len(rows[0]), call.lift)


def _part(x: Tensor, axis: int, place: int) -> Tensor:
    return x[(*(slice(None),) * (axis % len(x.shape)), place)]


def _stacked(rows: Sequence[Sequence[Value]], axes: Sequence[int], lift: Lift) -> tuple[Value, ...]:
    """What each turn made, as one value; nothing was made without a turn."""
    if not rows:
        return tuple([lift(numpy.zeros(0, "float32")) for _ in axes])
    columns = zip(*rows, strict=True)
    stacks = []
    for axis, column in zip(axes, columns, strict=True):
        first, *others = [lift(value) for value in column]
        stacks.append(first.stack(*others, dim=axis))
    return tuple(stacks)
