"""`TENSOR` graphs whose BUFFERs lie on several devices, and what their parts are together, by the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lazulite.ir import ops
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp
from lazulite.schedule.collectives import Placed
from lazulite.schedule.place import place

NAMES = ("CPU", "CPU:1", "CPU:2", "CPU:3")


def on(where: str | Placement, x: UOp) -> UOp:
    """The BUFFER in another place."""
    return x.replace(arg=(*x.arg[:3], where))


def part_buffers(x: UOp) -> tuple[UOp, ...]:
    """The memory of the parts of a BUFFER."""
    number, version, shape, where = x.arg
    return tuple([
        UOp(ops.BUFFER, x.dtype, (), (1000 * (number + 1) + i, version, where.part_shape(shape, i), device))
        for i, device in enumerate(where.devices)
    ])  # fmt: skip


def placed(values: Sequence[UOp], targets: Sequence[Any] | None = None) -> list[Placed]:
    """The parts of values, where no value is in memory already."""
    return place(values, targets or [None] * len(values), part_buffers, lambda node: None)


def memory_of_parts(memory: Mapping[UOp, Sequence[Any]]) -> dict[UOp, Sequence[Any]]:
    """The contents of all parts."""
    found: dict[UOp, Sequence[Any]] = {}
    for node, contents in memory.items():
        if node.op is not ops.BUFFER or not isinstance(node.arg[3], Placement):
            found[node] = contents
            continue
        whole, where = np.array(contents, object).reshape(node.arg[2]), node.arg[3]
        for part, span in zip(part_buffers(node), where.spans or [None] * len(where.devices), strict=True):
            own = whole if span is None else whole.take(range(*span), axis=where.axis)
            found[part] = own.ravel().tolist()
    return found


def joined(value: Placed, shape: tuple[int, ...], memory: Mapping[UOp, Sequence[Any]]) -> list[list[Any]]:
    """All elements, as each copy of the whole has them: one list for each device where it is not split."""
    parts = evaluate_tensors(value.parts, memory)
    if value.where is None or value.where.axis is None:
        return parts
    arrays = [
        np.array(part, object).reshape(value.where.part_shape(shape, number)) for number, part in enumerate(parts)
    ]
    return [np.concatenate(arrays, value.where.axis).ravel().tolist()]
