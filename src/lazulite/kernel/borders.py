"""Split ranges at borders that memory knows and the loops do not.

`KERNEL` in, `KERNEL` out.  Where a range occurs in indices as `r // c` and `r % c`, as it does behind a reshape,
no vector along it is contiguous, though memory is in steps of c.  Two ranges instead, of which the inner one has
c turns, are walked through linearly.  A range of panels stays whole, for a tile to cut.
"""

from __future__ import annotations

from functools import lru_cache

from lazulite.analysis.repeats import repeats
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, toposort
from lazulite.kernel.flatten import flatten
from lazulite.kernel.panels import panels
from lazulite.kernel.statements import RECENT
from lazulite.simplify.normal import normal

_CUTS = (ops.FLOORDIV, ops.MOD)
_LEAST = 16
"""Turns of an inner range below which a vector would not be full."""


@lru_cache(maxsize=RECENT)
def regroup(sink: UOp) -> UOp:
    """The kernel with its ranges as memory knows them: split at borders, whose parts' orders continue that of the
    range, and merged where there are none."""
    while (found := _border(sink)) is not None:
        sink = _split(sink, *found)
    return flatten(sink)


def _border(sink: UOp) -> tuple[UOp, int] | None:
    """A range and the largest size into which an index cuts it."""
    nodes = nodes_of(sink)
    if not any(node.op in _CUTS for node in nodes):
        return None
    whole = {r for r, _ in panels(nodes).values()}
    for store in sink.src:  # turns that store to one element again are told apart by nothing but their order
        whole |= repeats(store.src[1], store.ranges) if store.op is ops.STORE else frozenset()
    accesses = [node for node in nodes if node.op in (ops.LOAD, ops.STORE)]
    best: tuple[UOp, int] | None = None
    for node in toposort(*[access.src[1] for access in accesses], enter=lambda n: n.dtype is dtypes.index):
        if node.op not in _CUTS or node.src[1].op is not ops.CONST:
            continue
        r, size = node.src[0], int(node.src[1].value)
        if r.op is ops.RANGE and r not in whole and _is_cut(r, size) and (best is None or size > best[1]):
            best = r, size
    return best


def _is_cut(r: UOp, size: int) -> bool:
    """Whether all parts are whole and there are several."""
    if r.arg[1] != "loop" or r.src[0].op is not ops.CONST:
        return False
    extent = int(r.src[0].value)
    return _LEAST <= size < extent and extent % size == 0


def _split(sink: UOp, r: UOp, size: int) -> UOp:
    order, kind = r.arg
    outer = r.replace(src=(index(int(r.src[0].value) // size),), arg=((*order, 0), kind))
    inner = r.replace(src=(index(size),), arg=((*order, 1), kind))
    done = {r: outer * size + inner}
    for node in nodes_of(sink):
        if node in done or not any(s in done for s in node.src):
            continue
        src = [done.get(s, s) for s in node.src]
        if node.op is ops.REDUCE and r in node.src[1:]:
            src[1:] = [part for s in node.src[1:] for part in ((outer, inner) if s is r else (s,))]
        plain = node.dtype is not dtypes.index
        done[node] = node.replace(src=tuple(src)) if plain else normal(node.op, node.dtype, tuple(src), node.arg)
    return done[sink]
