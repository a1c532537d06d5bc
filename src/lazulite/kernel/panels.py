"""Operands of products that lie in memory in panels, as `kernel/packing.py` puts them there.

Takes nodes of a `KERNEL`.  A panel has the turns of a sum one after another, and for each of them neighbouring
elements along a range of the result: the index has a part for the panel, `r // width`, and one within it, `r % width`.
A tile as wide as the panel reads it in order, so such a range is not split otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp
from lazulite.kernel.gates import split_gate


def panels(nodes: Iterable[UOp]) -> dict[UOp, tuple[UOp, int]]:
    """The loads from panels that are factors of sums as they are, with the range of their vectors and the width."""
    found = {}
    for node in nodes:
        if node.op is ops.REDUCE and node.arg[0] is ops.ADD:
            for load in split_gate(ops.ADD, node.src[0])[1].src:
                panel = _panel(load) if load.op is ops.LOAD else None
                if panel is not None and panel[0] not in node.src[1:]:
                    found[load] = panel
    return found


def _panel(load: UOp) -> tuple[UOp, int] | None:
    terms = linear(load.src[1]).terms
    for term in terms:
        r = term.src[0] if term.op is ops.FLOORDIV else None
        if r is not None and r.op is ops.RANGE and terms.get(r % term.src[1]) == 1:
            return r, int(term.src[1].arg)
    return None
