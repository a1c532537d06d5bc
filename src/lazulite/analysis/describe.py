"""Short names for kernels, from what they compute: for profiles, messages and symbols."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.uop import UOp, toposort

_LONGEST = 60


def kernel_name(sink: UOp) -> str:
    """The operation at the root, the extents of the loops around it, and the reductions below; or the given name.

    >>> from lazulite.ir.parse import parse
    >>> text = "kernel; param p0 float32[8]; param p1 float32[32]; loop r0 in 0..8; loop r1 in 0..4"
    >>> kernel_name(parse(text.replace("; ", chr(10)) + chr(10) + "p0[r0] = exp(sum(p1[r0*4 + r1] for r1))"))
    'exp_8_sum4'
    """
    if isinstance(sink.arg, KernelInfo):
        return sink.arg.name
    value = sink.src[0].src[2]
    nodes = toposort(value)
    reductions = [node for node in nodes if node.op is ops.REDUCE]
    inner = {r for node in reductions for r in node.src[1:]}
    outer = sorted({r for store in sink.src for r in store.ranges} - inner, key=lambda r: r.arg[0])
    parts = [_verb(value), "x".join(str(r.vmax + 1) for r in outer) or "1"]
    seen = dict.fromkeys((_reduction(n), tuple(r.vmax + 1 for r in n.src[1:])) for n in reductions)
    parts += [name + "x".join(map(str, extents)) for name, extents in seen]
    return "_".join(parts)[:_LONGEST].rstrip("_")


def _verb(value: UOp) -> str:
    """The operation that a kernel ends in: what is computed, not how it is selected, cast or loaded."""
    while value.op in (ops.CAST, ops.BITCAST):
        value = value.src[0]
    if value.op is ops.REDUCE:
        return _reduction(value)
    return {"load": "copy", "const": "fill", "scalar": "fill"}.get(value.op.name, value.op.name)


def _reduction(node: UOp) -> str:
    op = node.arg[0]
    if op is not ops.ADD:
        return str(op.name)
    return "dot" if node.src[0].op is ops.MUL else "sum"
