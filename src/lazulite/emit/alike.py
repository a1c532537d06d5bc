"""Nests in a list of instructions that are the same but for names: of ranges, of memory and of values from outside.

Takes the nodes of two nests as they stand in a `LINEAR` kernel, and says what stands in the second one for each node of
the first and for each value that it needs from outside.  So one function can serve both, with other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from lazulite.ir import ops
from lazulite.ir.blocks import REGISTERS, memory_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import by_order

_MEMORY = (ops.PARAM, ops.SCRATCH)


def alike(
    first: Sequence[UOp], second: Sequence[UOp], listed: Container[UOp], is_number: Callable[[UOp], bool]
) -> dict[UOp, UOp] | None:
    """What stands in the second nest for the nodes of the first, and for what these take from outside; None where the
    nests differ in more.

    `listed` are the nodes of the kernel; one from outside may give way to another one if each `is_number`, no vector.
    """
    if [node.op for node in first] != [node.op for node in second]:
        return None
    match = _Match(first, second, listed, is_number)
    return match.table if all(map(match.differs_in_names, first, second)) and match.keeps_order() else None


class _Match:
    """Pairs of nodes, one of each nest."""

    def __init__(
        self, first: Sequence[UOp], second: Sequence[UOp], listed: Container[UOp], is_number: Callable[[UOp], bool]
    ) -> None:
        self.listed, self.is_number = listed, is_number
        self.table = dict(zip(first, second, strict=True))
        self.back = dict(zip(second, first, strict=True))

    def differs_in_names(self, left: UOp, right: UOp) -> bool:
        """Whether two nodes are the same but for what their sources are called."""
        if left.op is not right.op or left.dtype is not right.dtype or len(left.src) != len(right.src):
            return False
        same = left.arg[1] == right.arg[1] if left.op is ops.RANGE else left.arg == right.arg
        return same and all(map(self._stands_for, left.src, right.src))

    def _stands_for(self, left: UOp, right: UOp) -> bool:
        """Whether a source is the other one in the second nest; recursion is as deep as an index over registers."""
        left, right = memory_of(left), memory_of(right)
        if left in self.table or right in self.back:
            return self.table.get(left) is right
        if left.op in _MEMORY:
            same = left.op is right.op and left.dtype is right.dtype
        elif left in self.listed:
            same = left is right or (right in self.listed and self._are_numbers(left, right))
        else:
            same = self.differs_in_names(left, right)
        self.table[left], self.back[right] = right, left
        return same

    def _are_numbers(self, left: UOp, right: UOp) -> bool:
        """Whether two values are computed with in the same way: how wide a position is depends on its bounds."""
        if left.dtype is not right.dtype or (left.dtype is dtypes.index and left.bounds != right.bounds):
            return False
        return self.is_number(left) and self.is_number(right)

    def keeps_order(self) -> bool:
        """Whether registers are numbered in the same order."""
        ranges = by_order([node for node in self.table if node.op is ops.RANGE and node.arg[1] in REGISTERS])
        there = [self.table[r] for r in ranges]
        return there == by_order(there)
