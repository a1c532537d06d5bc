"""Results to which every turn of a shared range adds something: each finds what the turn before has left.

Takes statements of a kernel (`kernel/statements.py`) that store `before + more`, where `before` is what is there: 0 for
the first turn, by a gate, unless a statement before has stored zeros.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, substitute
from lazulite.kernel.nest import by_order


def added(store: UOp) -> UOp:
    """What a turn adds."""
    return store.src[2].src[1]


def check_totals(kernels: Iterable[UOp], totals: Container[UOp], turn: UOp) -> None:
    """Refuse what is no sum of what the turn before left and a number."""
    for store in [store for kernel in kernels for store in kernel.src if store.src[0] in totals]:
        value = store.src[2]
        if len(store.src) > 3 or value.op is not ops.ADD or value.src[0] is not _before(store, index(0) < turn):
            raise StageError("kernel.blocks", "a result that turns add to is no sum of what is there and a number")


def over_rows(kernel: UOp, totals: Container[UOp], block: UOp, row: UOp) -> UOp:
    """The statement where turns are blocks of rows: the rows of one are added up first."""
    stores = []
    for store in kernel.src:
        if store.src[0] in totals:
            rows = UOp(ops.REDUCE, store.src[0].dtype, (added(store), row), (ops.ADD, ()))
            store = _adding(store, _before(store, index(0) < block), rows)
        stores.append(store)
    return kernel.replace(src=tuple(stores))


def begun(kernel: UOp, turn: UOp) -> list[UOp]:
    """A statement that stores zeros in the first turn, and the one that adds in all of them."""
    (store,) = kernel.src
    memory, place = store.src[:2]
    first = by_order(place.ranges)[0]
    once = first.replace(src=((turn.minimum(1) * -1 + 1) * int(first.vmax + 1),))
    zeros = store.replace(src=(memory, substitute([place], {first: once})[0], UOp.const(memory.dtype, 0)))
    return [kernel.replace(src=(zeros,)), kernel.replace(src=(_adding(store, _before(store), added(store)),))]


def _before(store: UOp, *gate: UOp) -> UOp:
    """What is where a statement stores."""
    return UOp(ops.LOAD, store.src[0].dtype, (*store.src[:2], *gate))


def _adding(store: UOp, before: UOp, more: UOp) -> UOp:
    return UOp(ops.STORE, dtypes.void, (*store.src[:2], before + more))
