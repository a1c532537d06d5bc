"""The variables of a call: which bound ones its sizes speak of, numbered in the order in which they are met.

Takes the sizes among the arguments of a call and in the shapes of its tensors.  Gives a key that is equal for calls
whose variables differ in their values only, and translates shapes between the variables of a call and their numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import Size, outline, rebound, variables_in
from lazulite.ir.uop import UOp


class Variables:
    """The bound variables of one call."""

    def __init__(self, sizes: Iterable[Size] = ()) -> None:
        self._numbers: dict[UOp, int] = {}
        self.key = tuple([outline(size, self._meet) for size in sizes])
        self.leaves = list(self._numbers)
        """The variables in the order of their numbers."""

    def _meet(self, leaf: UOp) -> Hashable:
        _, low, high, _ = leaf.arg
        return self._numbers.setdefault(leaf, len(self._numbers)), low, high

    def number_of(self, leaf: UOp) -> int | None:
        """The number of a variable, None for one that the call was not given."""
        return self._numbers.get(leaf)

    def numbered(self, arg: Any) -> Any:
        """A shape or region over numbers; a variable that the call was not given stays bound to its value."""
        return rebound(arg, self.leaf_by_number)

    def leaf_by_number(self, leaf: UOp) -> UOp:
        """What stands for a variable of the call in shapes over numbers."""
        place = self._numbers.get(leaf)
        return leaf if place is None else UOp(ops.SCALAR, dtypes.index, (), (place, *leaf.arg[1:3]))

    def occur_in(self, arg: Any) -> bool:
        """Whether a shape, or the argument of a node, speaks of one of them."""
        return any(leaf in self._numbers for leaf in variables_in(arg))


def with_variables(arg: Any, leaves: Sequence[UOp]) -> Any:
    """A shape or region over numbers with these variables in their places."""
    return rebound(arg, lambda leaf: leaf if isinstance(leaf.arg[0], str) else leaves[leaf.arg[0]])
