"""Checks that a graph is well formed in its language; stages run it between them under `VERIFY=1`.

`verify(root, language)` raises a `StageError` that shows the text form with the message under the
guilty line.  The rules for all languages stand here, those for whole values in `verify_tensor.py`,
those for ranges, loops and lists in `verify_loops.py`.  Sources are checked before their users.
"""

from __future__ import annotations

from collections.abc import Iterator

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.calls import bodies_below
from lazulite.ir.canonical import canonical_with
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.text import lines_of
from lazulite.ir.uop import UOp, toposort
from lazulite.ir.verify_loops import kernel_faults, linear_faults, loop_faults
from lazulite.ir.verify_tensor import tensor_faults

Faults = Iterator[tuple[UOp, str]]

_ANYWHERE = ops.ELEMENTWISE | {ops.CONST, ops.SCALAR, ops.PARAM, ops.AFTER, ops.STORE, ops.SINK, ops.REDUCE}
_IN_KERNEL = _ANYWHERE | {ops.RANGE, ops.LOAD, ops.SCRATCH}
_IN_LOOP = _IN_KERNEL | {ops.FOR, ops.CARRY, ops.FINAL, ops.MMA}
_WHOLE = frozenset({
    ops.IOTA, ops.BUFFER, ops.COPY, ops.DETACH, ops.FUNCTION, ops.GATHER, ops.WRITE, ops.CALL, ops.LAUNCH,
})  # fmt: skip
ALLOWED: dict[str, frozenset[Op]] = {
    "TENSOR": _ANYWHERE | ops.MOVEMENT | _WHOLE,
    "KERNEL": _IN_KERNEL | {ops.FOR},
    "LOOP": _IN_LOOP,
    "LINEAR": (_IN_LOOP | {ops.LINEAR}) - {ops.SINK},
}
_RULES = {"TENSOR": tensor_faults, "KERNEL": kernel_faults, "LOOP": loop_faults, "LINEAR": linear_faults}
_AROUND = 12


def verify(root: UOp, language: str, stage: str = "verify") -> None:
    """Raise a StageError, named after the stage, for the first node that the language does not allow."""
    for faults in (_common_faults(root, language), _RULES[language](root)):
        for node, message in faults:
            raise StageError(stage, message, text=pointed_text(root, node, message, language))


def _common_faults(root: UOp, language: str) -> Faults:
    bodies = bodies_below(root)
    for node in toposort(root, enter=lambda n: n not in bodies):
        op = node.op
        if node in bodies:
            continue  # a language of its own
        if op not in ALLOWED[language]:
            yield node, f"{op.name} has no place in {language}"
        elif op.operands is not None and len(node.src) != op.operands:
            yield node, f"{op.name} takes {op.operands} operands, got {len(node.src)}"
        elif op is ops.CONST:
            yield from _constant_faults(node)
        elif op in ops.ELEMENTWISE:
            yield from _type_faults(node, language)


def _constant_faults(node: UOp) -> Faults:
    dtype, bits = node.dtype, node.arg
    if not isinstance(bits, int) or dtype is dtypes.void:
        yield node, f"a constant holds its bits as an integer, got {bits!r} in {dtype.name}"
    elif dtype.is_float and not 0 <= bits < 1 << dtype.bits:
        yield node, f"{bits:#x} is no bit pattern of {dtype.name}"
    elif not dtype.is_float and dtype is not dtypes.index and not dtype.min <= bits <= dtype.max:
        yield node, f"{bits} is no value of {dtype.name}"


def _type_faults(node: UOp, language: str) -> Faults:
    op, types = node.op, [source.dtype for source in node.src]
    if dtypes.void in types or node.dtype is dtypes.void:
        yield node, f"{op.name} takes and gives values, not effects"
    elif op is ops.BITCAST:
        if dtypes.index in (node.dtype, types[0]):
            yield node, "an index has no bits"
        elif language != "TENSOR" and node.dtype.itemsize != types[0].itemsize:
            yield node, f"bitcast changes the width from {types[0].name} to {node.dtype.name}"
    elif op.result is not None:
        alike = types[1:] if op is ops.WHERE else types
        if op is ops.WHERE and types[0] is not dtypes.bool:
            yield node, f"the gate of where is bool, got {types[0].name}"
        elif any(dtype is not alike[0] for dtype in alike):
            yield node, f"the operands of {op.name} have one type, got {', '.join(t.name for t in alike)}"
        elif alike[0] not in op.accepts:
            yield node, f"{op.name} does not take {alike[0].name}"
        elif node.dtype is not op.result(*types):
            yield node, f"{op.name} of {alike[0].name} gives {op.result(*types).name}, not {node.dtype.name}"


# --- the text with the message in it -----------------------------------------------------------


def pointed_text(root: UOp, node: UOp, message: str, language: str) -> str:
    """The lines around the node with the message under its line."""
    try:
        (shown, guilty), _ = canonical_with(root, node)
        lines = lines_of(shown, language)
    except Exception:  # a malformed graph may have no text form; every node still has a line
        shown, guilty, lines = root, node, _listing(root)
    at = _line_of(shown, guilty, lines)
    text = [line for line, _ in lines]
    indent = len(text[at]) - len(text[at].lstrip())
    text.insert(at + 1, " " * indent + "^ " + message)
    first, last = max(0, at - _AROUND), at + _AROUND
    before, after = ["..."] if first else [], ["..."] if last < len(text) else []
    return "\n".join(before + text[first:last] + after)


def _line_of(root: UOp, guilty: UOp, lines: list[tuple[str, UOp | None]]) -> int:
    """The line of the node, or the first line that shows it as a part."""
    own = [at for at, (_, node) in enumerate(lines) if node is guilty]
    if own:
        return own[0]
    reaching: set[UOp] = set()
    for node in toposort(root):
        if node is guilty or any(source in reaching for source in node.src):
            reaching.add(node)
    return next((at for at, (_, node) in enumerate(lines) if node in reaching), len(lines) - 1)


def _listing(root: UOp) -> list[tuple[str, UOp | None]]:
    """One line for each node, whatever is wrong with it."""
    nodes = toposort(root)
    numbers = {node: number for number, node in enumerate(nodes)}
    lines: list[tuple[str, UOp | None]] = []
    for node in nodes:
        sources = ", ".join(f"%{numbers[source]}" for source in node.src)
        arg = "" if node.arg is None else f" {node.arg!r}"
        lines.append((f"%{numbers[node]} = {node.op.name} {node.dtype.name} ({sources}){arg}", node))
    return lines
