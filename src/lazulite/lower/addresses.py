"""Split the index of every load and store by where its parts can be computed.

An index becomes `dynamic + (mixed + static)`: `dynamic` varies with loops only and is a chain of sums, the
term of the outermost loop first, so that each partial sum is computed in the loop it belongs to;
`static` varies with lanes, rows and units only and is a number when code is written; `mixed` is what can
be neither, such as the quotient of a lane and a loop.  `LOOP` in, `LOOP` out.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

from lazulite.ir import ops
from lazulite.ir.blocks import REGISTERS
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of
from lazulite.simplify.terms import ZERO, multiple, plus


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of an index; None where there is no such part."""

    dynamic: UOp | None
    mixed: UOp | None
    static: UOp | None


def split_addresses(sink: UOp) -> UOp:
    """The kernel with every index written as `dynamic + (mixed + static)`."""
    changed: dict[UOp, UOp] = {}
    arranged: dict[UOp, UOp] = {}
    parts: _Parts = {}
    for node in nodes_of(sink):
        src = node.src if changed.keys().isdisjoint(node.src) else tuple([changed.get(s, s) for s in node.src])
        if node.op is ops.LOAD or node.op is ops.STORE:
            place = src[1]
            if place not in arranged:
                arranged[place] = _arranged(place, parts)
            src = (src[0], arranged[place], *src[2:])
        if src != node.src:
            changed[node] = UOp(node.op, node.dtype, src, node.arg)
    return changed.get(sink, sink)


def address(node: UOp) -> Address:
    """The parts of an index that `split_addresses` has arranged."""
    kind = _kind(node)
    if kind != "mixed":
        return Address(node, None, None) if kind == "dynamic" else Address(None, None, node)
    dynamic, rest = None, node
    if node.op is ops.ADD and _kind(node.src[0]) == "dynamic":
        dynamic, rest = node.src
    if _kind(rest) == "static":
        return Address(dynamic, None, rest)
    if rest.op is ops.ADD and _kind(rest.src[1]) == "static":
        return Address(dynamic, *rest.src)
    return Address(dynamic, rest, None)


def _kind(part: UOp) -> str:
    loops = registers = False
    for r in part.ranges:
        if r.arg[1] in REGISTERS:
            registers = True
        else:
            loops = True
    if loops:
        return "mixed" if registers else "dynamic"
    return "static" if _is_exact(part) else "mixed" if registers else "dynamic"


def is_static(node: UOp) -> bool:
    """Whether this is a constant, or an index or gate that is known, for each lane and row, when code is written."""
    if node.op is ops.CONST:
        return True
    if node.dtype is not dtypes.index and node.dtype is not dtypes.bool:
        return False
    for r in node.ranges:
        if r.arg[1] not in REGISTERS:
            return False
    return _is_exact(node)


def _is_exact(root: UOp) -> bool:
    """Whether all below are constants, ranges, and exact operations; what floats compute is left to the machine."""
    pending, seen = [root], set[UOp]()
    while pending:
        node = pending.pop()
        if node.op is ops.CONST or node in seen:
            continue
        exact = node.op in ops.ELEMENTWISE and (node.dtype is dtypes.index or node.dtype.is_integral)
        if not exact and node.op is not ops.RANGE:
            return False
        seen.add(node)
        pending += node.src
    return True


_Part = tuple[str, list[tuple[int, ...]], UOp]
"""A multiple of a term: its kind, if it is dynamic the orders of its loops, innermost first, and the product."""
_Parts = dict[tuple[UOp, int], _Part]


def _arranged(node: UOp, parts: _Parts) -> UOp:
    """The index in order; `parts` takes in what its terms are, many of which occur in other indices too."""
    form = linear(node)
    dynamic: list[_Part] = []
    mixed, static = ZERO, index(form.constant)
    for pair in form.terms.items():
        part = parts.get(pair)
        if part is None:
            part = parts[pair] = _part(*pair)
        if part[0] == "dynamic":
            dynamic.append(part)
        elif part[0] == "static":
            static = plus(part[2], static)
        else:
            mixed = plus(mixed, part[2])
    total = ZERO
    for _, _, product in sorted(dynamic, key=itemgetter(1)):
        total = plus(total, product)
    return plus(total, plus(mixed, static))


def _part(term: UOp, factor: int) -> _Part:
    kind = _kind(term)
    orders = sorted([r.arg[0] for r in term.ranges], reverse=True) if kind == "dynamic" else []
    return kind, orders, multiple(term, factor)
