"""Contractions: sums of products whose factors have output ranges of their own.

Takes REDUCEs of the `KERNEL` language, gives a `Contraction` or None.  Matrix products in every
transposition, batched products, convolutions in index form and attention products are recognised;
what cannot be shown to be one is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.uop import UOp

Ranges = frozenset[UOp]


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products whose factors vary with output ranges of their own.

    `product` is the MUL; its two factors are `factors`.  `left` and `right` are the output ranges of
    one factor only, `batch` those of both, `reduction` the ranges summed over.  `gate`, if any, is the
    condition outside of which the product counts as zero.
    """

    product: UOp
    left: Ranges
    right: Ranges
    batch: Ranges
    reduction: tuple[UOp, ...]
    gate: UOp | None

    @property
    def factors(self) -> tuple[UOp, UOp]:
        return self.product.src[0], self.product.src[1]


def contraction(node: UOp) -> Contraction | None:
    """The node as a contraction: a matrix product, a convolution, an attention product and their like.

    None for anything else, a row reduction such as a sum of squares among them.  A gate must not tie
    ranges of the left factor to ranges of the right one.
    """
    if node.op is not ops.REDUCE or node.arg[0] is not ops.ADD or len(node.src) < 2:
        return None
    product, gates = _without_gates(node.src[0])
    if product.op is not ops.MUL:
        return None
    reduction = node.src[1:]
    first, second = (factor.ranges.difference(reduction) for factor in product.src)
    shared = product.src[0].ranges & product.src[1].ranges & frozenset(reduction)
    left, right = first - second, second - first
    if not shared or not (left or right):
        return None
    gate = None
    for condition in gates:
        if condition.ranges & left and condition.ranges & right:
            return None
        gate = condition if gate is None else gate & condition
    return Contraction(product, left, right, first & second, reduction, gate)


def _without_gates(value: UOp) -> tuple[UOp, list[UOp]]:
    """The value below casts and below choices between it and zero, with the conditions of the choices."""
    gates: list[UOp] = []
    while True:
        if value.op is ops.CAST:
            value = value.src[0]
        elif value.op is ops.WHERE and value.src[2].is_const(0):
            gates.append(value.src[0])
            value = value.src[1]
        elif value.op is ops.WHERE and value.src[1].is_const(0):
            gates.append(~value.src[0])
            value = value.src[2]
        else:
            return value, gates
