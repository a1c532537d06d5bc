"""Outputs on several devices: computed as one output a device, and put together once these are stored.

Takes the work of a realize; the outputs that lie on several devices give way to those of their parts, so that
whatever schedules, runs and records the work sees values and storages of one device only.

Invariant: the parts of a storage are written together, so that their versions stay the same.
"""

from __future__ import annotations

from lazulite.base.settings import SETTINGS
from lazulite.engine.handles import Handle, stored
from lazulite.engine.outputs import Output, Spread, Work
from lazulite.engine.storage import Storage, parts_of
from lazulite.ir import ops
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp, toposort


def in_parts(work: Work) -> Work:
    """The work with its outputs on several devices in parts."""
    if not any(_is_spread(output) for output in work.outputs):
        return work
    from lazulite.schedule.place import place  # brings laws along that a program on one device does without

    targets = [None if output.target is None else output.target.device for output in work.outputs]
    placed = place([output.value for output in work.outputs], targets, parts_of, stored, SETTINGS.ALL_REDUCE)
    computed: list[Output] = []
    for output, (parts, where) in zip(work.outputs, placed, strict=True):
        if where is None:
            computed.append(Output(parts[0], output.target, output.handles, output.keeps_history))
            continue
        homes = [None] * len(parts) if output.target is None else output.target.parts
        own = [Output(part, home, [Handle(part)]) for part, home in zip(parts, homes, strict=True)]
        work.spread.append(Spread(output, own, where))
        computed += own
    work.outputs = computed
    return work


def joined(spread: Spread) -> Storage:
    """The storage of an output, whose parts are stored."""
    output, target = spread.output, spread.output.target
    if target is None:
        parts = [part.handles[0].storage for part in spread.parts]
        target = Storage(output.value.dtype, output.value.shape, spread.where, parts=tuple(filter(None, parts)))
    target.version, target.failure = target.parts[0].version, None
    return target


def layout_of(value: UOp) -> Placement | None:
    """How a value is laid out over devices; None where it is on one."""
    from lazulite.schedule.place import place

    return place([value], [None], parts_of, stored)[0].where


def _is_spread(output: Output) -> bool:
    if output.target is not None and output.target.parts:
        return True
    return any(_names_several(node) for node in toposort(output.value, enter=lambda n: stored(n) is None))


def _names_several(node: UOp) -> bool:
    """Whether a leaf or a copy is on several devices."""
    if node.op is ops.COPY:
        return not isinstance(node.arg, str)
    held = node if node.op is ops.BUFFER else stored(node)
    return held is not None and isinstance(held.arg[3], Placement)
