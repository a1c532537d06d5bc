"""Why a value is stored, and not computed where it is wanted."""

from __future__ import annotations

import math

from lazulite.analysis.kinds import CHEAP, FEW_ROWS, HERE, LEAVES, LONG, OPAQUE
from lazulite.ir import ops
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.fusion import MAX_OPERANDS, MAX_OPS, SMALL, State, Wishes, is_reinterpretation
from lazulite.schedule.groups import Group, Place, element_count
from lazulite.schedule.products import is_large_product, is_made_of_product, moved, sums_up_grown, unmoved

HAND_WRITTEN = "a hand-written kernel reads it"
_FEW = 16
"""So many numbers are added for an element of a sum that is computed within another one."""
_FEW_TIMES = 8
"""So often a cheap value may be computed within a reduction: a register tile shares it among rows anyway."""
_DEAR, _TILES = 8, 64
"""The cost of a value from which on it is computed once and not for each tile of a product, and how many times fewer
than the results such values are."""
_PACKED_COST = 16
"""What an element of a factor may cost that is computed while it is copied."""
_ARGUMENT_COST = 24
"""What an element of an argument may cost that a hand-written kernel computes, which may have no vectors: some three
times what it takes to wrap a position and to look whether it is inside."""


def reason_to_store(state: State, node: UOp, wanted: Wishes) -> str | None:
    """Why a value must or had better be stored; None to compute it where it is wanted."""
    if node.op in OPAQUE:
        return "a copy was asked for" if node.arg == HERE else "produced outside kernels"
    if node in state.forced:
        return state.forced[node]
    if node.op in ops.MOVEMENT:
        return None
    if not state.fuse:
        return "fusion is off"
    if any(group.size >= MAX_OPS or len(group.reads) >= MAX_OPERANDS for group in wanted):
        return "the kernel is full"
    dear = node.op is ops.REDUCE or state.facts[node].chain_cost > _ARGUMENT_COST
    if dear and any(group.root.op is ops.LAUNCH for group in wanted):
        return HAND_WRITTEN
    if node.op is ops.REDUCE:
        return _reason_to_store_reduction(state, node, wanted)
    return _reason_to_store_elementwise(state, node, wanted)


def _reason_to_store_reduction(
    state: State, node: UOp, wanted: Wishes
) -> str | None:  # fmt: skip
    if len(wanted) > 1:
        return "a reduction that several kernels want"
    ((group, places),) = wanted.items()
    if group.root in state.again and all(group.times(place) < group.iterations for place in places):
        return "what is made from it is made anew by each of its readers"
    if len(places) > 1:
        return "a reduction that is wanted at several places"
    if group.products and is_large_product(node) and not _continues_reduction(group, node):
        return "a second sum of products, whose blocks are others"
    (place,) = places
    times, elements = group.times(place), element_count(node.shape)
    if element_count(group.root.shape) < FEW_ROWS <= elements and element_count(node.src[0].shape) >= LONG:
        return "parts of a long reduction, for threads to share"
    if _continues_reduction(group, node) and times <= 2 * elements:
        return None
    if place.gate is not None:
        return "a reduction that is wanted only in part"
    if times > elements:
        return f"a reduction that would be computed {times // max(elements, 1)} times"
    if times == group.iterations and element_count(node.src[0].shape) > _FEW * elements:
        return "a second full-width reduction in one kernel" if group.contraction else None
    if times < FEW_ROWS and element_count(node.src[0].shape) > SMALL:
        return "too few rows to share among threads"
    return None


def _continues_reduction(group: Group, node: UOp) -> bool:
    """Whether a sum's only reader is, behind movements, a sum computed in this group."""
    if node.arg[0] is not ops.ADD:
        return False
    return any(
        reader.op is ops.REDUCE and reader.arg[0] is ops.ADD and reader.dtype is node.dtype and _reads(reader, node)
        for reader in group.places
    )


def _reads(reader: UOp, node: UOp) -> bool:
    source = reader.src[0]
    while source.op in ops.MOVEMENT:
        source = source.src[0]
    return source is node


def _reason_to_store_elementwise(state: State, node: UOp, wanted: Wishes) -> str | None:
    facts = state.facts[node]
    elements = element_count(node.shape)
    if _enters_packing(state, node, wanted) or _is_border(node, wanted):
        return None
    above_reduce = facts.above_reduce and not (facts.chain_cost <= CHEAP and sums_up_grown(node))
    if len(wanted) > 1 and (facts.chain_cost > CHEAP or above_reduce) and elements > 1:
        return f"several kernels want it and a recomputation costs {facts.chain_cost}"
    if is_dear_beside_product(state, node, wanted):
        return "each tile of a product would compute it anew"
    for group, places in wanted.items():
        if len(places) > 1 and above_reduce:
            return f"the result of a reduction, wanted at {len(places)} places"
        for place in places:
            times = group.times(place)
            if times < 2 * elements or times * 8 <= group.iterations or not facts.chain_cost:
                continue
            few = times <= _FEW_TIMES * elements or not _reads_memory(node)
            if few and facts.chain_cost <= CHEAP and not above_reduce:
                continue
            if inside_reduction(place) or facts.chain_cost > CHEAP or above_reduce:
                return f"it would be computed {times // max(elements, 1)} times"
    return None


def is_dear_beside_product(state: State, node: UOp, wanted: Wishes) -> bool:
    """Whether a value that takes some computing goes with many of a product's results each, as the scale of a channel
    does: tiles would make it anew, as would a kernel that stores it on the way."""
    facts, elements = state.facts[node], element_count(node.shape)
    if facts.chain_cost < _DEAR or facts.depth or any(_TILES * elements > group.iterations for group in wanted):
        return False
    outside = not any(inside_reduction(place) for places in wanted.values() for place in places)
    return outside and _reads_memory(node) and all(is_made_of_product(group.root) for group in wanted)


def _is_border(node: UOp, wanted: Wishes) -> bool:
    """Whether a value is another one with a constant around it: memory need not hold that.

    A product copies windows with their border, which has to be zeros.
    """
    if node.op is not ops.WHERE or any(group.products for group in wanted):
        return False
    condition, *branches = node.src
    inner = [branch for branch in branches if branch.op is ops.PAD]
    return len(inner) == 1 and any(branch.op is ops.CONST for branch in branches) and not _reads_memory(condition)


def _enters_packing(state: State, node: UOp, wanted: Wishes) -> bool:
    """Whether a value is computed where a product copies its factors in the order of reading.

    That is so for a cheap one, each of whose elements is copied once, that is larger than what it is made of: such as
    a matrix that is kept in few bits.
    """
    if len(wanted) > 1:
        return False
    ((group, places),) = wanted.items()
    if len(places) > 1 or group.root in state.again:
        return False
    if node not in state.packed:
        (place,) = places
        once = place.gate is None and math.prod(map(_turns, _ranges(place))) == element_count(node.shape)
        cheap = state.facts[node].chain_cost <= _PACKED_COST and not state.facts[node].depth
        if not once or not cheap or not any(_is_factor(reader, node) for reader in group.places) or not _unpacks(node):
            return False
    state.packed.update(map(unmoved, node.src))
    return True


def _ranges(place: Place) -> frozenset[UOp]:
    return frozenset[UOp]().union(*[part.ranges for part in place.index])


def _turns(r: UOp) -> int:
    return int(r.src[0].vmax)


def _is_factor(reader: UOp, node: UOp) -> bool:
    """Whether a value is, behind movements, one factor of a large sum of products."""
    return is_large_product(reader) and 1 == [unmoved(f) for f in moved(reader.src[0]).src].count(node)


def _unpacks(node: UOp) -> bool:
    """Whether a value takes more memory than all that it is made of."""
    return sum(map(_nbytes, _leaves(node))) < _nbytes(node)


def _reads_memory(node: UOp) -> bool:
    """Whether a value depends on more than positions and constants."""
    pending, seen = [node], {node}
    while pending:
        part = pending.pop()
        if _is_leaf(part):
            if part.op not in (ops.CONST, ops.IOTA):
                return True
        else:
            new = [source for source in part.src if source not in seen]
            seen.update(new)
            pending += new
    return False


def _leaves(node: UOp) -> list[UOp]:
    return [n for n in toposort(node, enter=lambda n: not _is_leaf(n)) if _is_leaf(n)]


def _is_leaf(node: UOp) -> bool:
    return node.op in LEAVES or is_reinterpretation(node)


def _nbytes(node: UOp) -> int:
    return 0 if node.op in (ops.CONST, ops.IOTA, ops.SCALAR) else element_count(node.shape) * node.dtype.itemsize


def inside_reduction(place: Place) -> bool:
    """Whether a place varies with a range that a reduction runs through."""
    return any(r.arg[0][0] > 0 for part in place.index for r in part.ranges)
