"""FUNCTION: a value that has a gradient of its own.

``FUNCTION(value, operand..)`` is its first source, taken as a function of the others: what reaches it goes on
to them as its `Derivative` says, and nowhere else.  Without a gradient it stands for a variable: a value that
a derivative is asked for at this place, whatever it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.tokens import quoted
from lazulite.ir.uop import UOp


class Derivative(NamedTuple):
    """The `arg` of a FUNCTION with n operands."""

    gradient: str = ""
    """A SINK of gradients in text form.  Its PARAM i is operand i, PARAM n what reaches the value, n + 1 the value."""
    wrt: tuple[int, ...] = ()
    """The operand that each gradient is for."""
    mark: tuple[int, ...] = ()
    """What tells variables apart that have one value."""

    def to_text(self) -> str:
        """The derivative as a quoted string without line ends or comment signs."""
        return quoted(self)

    @staticmethod
    def from_text(text: str) -> Derivative:
        """The derivative that `to_text` gave; ValueError or TypeError where it did not."""
        gradient, wrt, mark = json.loads(text[1:-1])
        return Derivative(gradient, tuple(wrt), tuple(mark))


def function_of(value: UOp, operands: Sequence[UOp], gradients: Sequence[UOp | None]) -> UOp:
    """The value with a gradient for each operand, or None, over PARAMs that `Derivative` tells of.

    >>> x, upstream = [UOp(ops.PARAM, dtypes.float32, (), (slot, (), "")) for slot in (0, 1)]
    >>> function_of(x * x, [x], [upstream * 2]).shape
    ()
    """
    return UOp(ops.FUNCTION, value.dtype, (value, *operands), derivative_of(gradients))


def derivative_of(gradients: Sequence[UOp | None]) -> Derivative:
    """The gradients, over PARAMs, as data."""
    from lazulite.ir.text import to_text

    known = [(slot, part) for slot, part in enumerate(gradients) if part is not None]
    body = UOp(ops.SINK, dtypes.void, tuple([part for _, part in known]))
    return Derivative(to_text(body, "TENSOR"), tuple([slot for slot, _ in known]))


def variable(value: UOp, *mark: int) -> UOp:
    """The value as something that a derivative is asked for; another mark makes another variable."""
    return UOp(ops.FUNCTION, value.dtype, (value,), Derivative(mark=mark))
