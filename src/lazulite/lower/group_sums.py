"""Long sums of floats in groups, so that their error grows with the logarithm of their length.

A loop that adds m numbers one after the other rounds m - 1 times, so it errs by up to (m - 1) / 2 eps of
the sum of magnitudes, and that is at most 2 log2 m while m is at most `GROUP`.  Here every loop of a float
sum with more turns becomes loops over groups of at most `GROUP` turns, the sums of groups are summed in
groups again, and so on, which keeps the whole within 2 (log2 n + 1) eps: `KERNEL` in, `KERNEL` out.  Sums of
products over operands of their own (contractions) keep their loops: their accumulators fill the
registers, and for adversarial data they can leave the bound.
"""

from __future__ import annotations

from lazulite.analysis.contraction import contraction
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, replace_ranges, transform

GROUP = 16


def group_sums(root: UOp) -> UOp:
    """The program with every long sum in groups."""
    if not any(node.op is ops.REDUCE and _is_long(node) for node in nodes_of(root)):
        return root
    return transform(root, (ops.REDUCE,), lambda node: _grouped(node) if _is_long(node) else node)


def _is_long(node: UOp) -> bool:
    """Whether a reduction adds floats in one long chain, and is no contraction."""
    if node.arg[0] is not ops.ADD or not node.dtype.is_float:
        return False
    turns = 1
    for r in node.src[1:]:
        turns *= _extent(r) if r.arg[1] == "loop" else 1
    return turns > GROUP and contraction(node) is None


def _grouped(node: UOp) -> UOp:
    loops = [r for r in node.src[1:] if r.arg[1] == "loop"]
    inner, *outer = sorted(loops, key=lambda r: r.arg[0], reverse=True)
    registers = [r for r in node.src[1:] if r not in loops]
    value = _sum(node, node.src[0], inner)
    for r in outer:
        value = _sum(node, value, r)
    return node.replace(src=(value, *registers)) if registers else value


def _sum(node: UOp, value: UOp, r: UOp) -> UOp:
    """The sum of a value over one loop, in groups where that is long."""
    extent = _extent(r)
    if extent <= GROUP:
        return node.replace(src=(value, r))
    if r.src[0].op is not ops.CONST:
        return _open_sum(node, value, r)
    size = next((f for f in range(GROUP, GROUP // 2, -1) if extent % f == 0), min(GROUP, extent // 2))
    whole, rest = divmod(extent, size)
    groups, members, last = _part(r, 0, index(whole)), _part(r, 1, index(size)), _part(r, 2, index(rest))
    (member,) = replace_ranges([value], {r: groups * size + members})
    total = _sum(node, node.replace(src=(member, members)), groups)
    if rest:
        (final,) = replace_ranges([value], {r: last + whole * size})
        total = total + node.replace(src=(final, last))
    return total


def _open_sum(node: UOp, value: UOp, r: UOp) -> UOp:
    """The same where the number of turns is an expression: the last group has what is left."""
    size = r.src[0]
    groups = _part(r, 0, (size + (GROUP - 1)) // index(GROUP))
    members = _part(r, 1, index(GROUP).minimum(size + groups * -GROUP))
    (member,) = replace_ranges([value], {r: groups * GROUP + members})
    return _sum(node, node.replace(src=(member, members)), groups)


def _part(r: UOp, number: int, size: UOp) -> UOp:
    """A loop in the place of a part of another one."""
    return UOp(ops.RANGE, dtypes.index, (size,), ((*r.arg[0], number), r.arg[1]))


def _extent(r: UOp) -> int:
    return int(r.vmax) + 1
