"""Kinds of `TENSOR` values that fusion tells apart: products with reuse, and what grows out of them."""

from __future__ import annotations

from lazulite.analysis.kinds import LEAVES, LONG, is_elementwise
from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.schedule.groups import element_count

MAX_SEARCH = 64
"""How many nodes a search looks at."""
_SHORT, _GROWN = 128, 2
"""How many products may be added for an element that is made anew, and how many times more of them there are than
elements of the factors."""
_REUSED = 4
"""How often both factors of a product are read again where a register tile pays."""


def is_product(node: UOp) -> bool:
    """Whether a reduction multiplies values that are read again and again: its blocks are its own."""
    product = moved(node.src[0])
    elements = element_count(product.shape)
    return product.op is ops.MUL and any(element_count(moved(factor).shape) < elements for factor in product.src)


def is_large_product(node: UOp) -> bool:
    """Whether this is a sum of products whose factors are read again and again, worth blocks of its own."""
    if node.op is not ops.REDUCE or node.arg[0] is not ops.ADD:
        return False
    product = moved(node.src[0])
    elements = element_count(product.shape)
    again = elements >= LONG and product.op is ops.MUL
    return again and all(_REUSED * element_count(moved(factor).shape) <= elements for factor in product.src)


def is_grown(node: UOp) -> bool:
    """Whether a value is made, element by element, from a product of short rows that is much larger than its factors,
    as the scores of attention are: to make it anew takes less than to keep it."""
    elements, seen, pending = element_count(node.shape), {node}, [node]
    if elements < LONG:
        return False
    while pending and len(seen) < MAX_SEARCH:
        part = pending.pop()
        if part.op is ops.REDUCE:
            product = moved(part.src[0])
            short = element_count(product.shape) <= _SHORT * elements and element_count(part.shape) >= elements
            if short and is_large_product(part):
                return _GROWN * sum(element_count(moved(factor).shape) for factor in product.src) <= elements
        elif is_elementwise(part) or part.op in ops.MOVEMENT:
            fresh = [source for source in part.src if source not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def is_made_of_product(node: UOp) -> bool:
    """Whether a value is made, element by element, from a large sum of products."""
    seen, pending = {node}, [node]
    while pending and len(seen) < MAX_SEARCH:
        part = pending.pop()
        if is_large_product(part):
            return True
        if is_elementwise(part) or part.op in ops.MOVEMENT:
            fresh = [source for source in part.src if source not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def sums_up_grown(node: UOp) -> bool:
    """Whether a value is made of reductions of such a value; a kernel that makes this anyway is found for it later."""
    while is_elementwise(node) or node.op in ops.MOVEMENT:
        below = [source for source in node.src if source.op not in LEAVES and source.op not in ops.COMPARISONS]
        if len(below) != 1:
            return False
        (node,) = below
    return node.op is ops.REDUCE and is_grown(node.src[0])


def moved(node: UOp) -> UOp:
    """What a value is, behind movements and conversions."""
    while node.op in ops.MOVEMENT or node.op is ops.CAST:
        node = node.src[0]
    return node


def unmoved(node: UOp) -> UOp:
    while node.op in ops.MOVEMENT:
        node = node.src[0]
    return node
