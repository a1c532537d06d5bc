"""Split the index of every load and store by where its parts can be computed.

An index becomes `dynamic + (mixed + static)`: `dynamic` varies with loops only and is a chain of sums, the
term of the outermost loop first, so that each partial sum is computed in the loop it belongs to;
`static` varies with lanes, rows and units only and is a number when code is written; `mixed` is what can
be neither, such as the quotient of a lane and a loop.  `LOOP` in, `LOOP` out.
"""

from __future__ import annotations

from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, toposort

_REGISTERS = ("lane", "row", "unit")


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of an index; None where there is no such part."""

    dynamic: UOp | None
    mixed: UOp | None
    static: UOp | None


def split_addresses(sink: UOp) -> UOp:
    """The kernel with every index written as `dynamic + (mixed + static)`."""
    done: dict[UOp, UOp] = {}
    arranged: dict[UOp, UOp] = {}
    for node in nodes_of(sink):
        src = tuple([done[s] for s in node.src])
        if node.op is ops.LOAD or node.op is ops.STORE:
            place = src[1]
            if place not in arranged:
                arranged[place] = _arranged(place)
            src = (src[0], arranged[place], *src[2:])
        done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return done[sink]


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
        if r.arg[1] in _REGISTERS:
            registers = True
        else:
            loops = True
    if loops:
        return "mixed" if registers else "dynamic"
    return "static" if is_static(part) else "mixed" if registers else "dynamic"


def is_static(node: UOp) -> bool:
    """Whether this is a constant, or an index or gate that is known, for each lane and row, when code is written."""
    if node.op is ops.CONST:
        return True
    if node.dtype is not dtypes.index and node.dtype is not dtypes.bool:
        return False
    for r in node.ranges:
        if r.arg[1] not in _REGISTERS:
            return False
    return all(map(_is_plain, toposort(node)))


def _is_plain(node: UOp) -> bool:
    """Constants, ranges, and exact operations on them; what floats compute is left to the machine."""
    return node.op in (ops.CONST, ops.RANGE) or (node.op in ops.ELEMENTWISE and node.dtype.is_integral)


def _arranged(node: UOp) -> UOp:
    form = linear(node)
    dynamic: list[tuple[tuple[tuple[int, ...], ...], UOp]] = []
    mixed, static = index(0), index(form.constant)
    for term, factor in form.terms.items():
        kind = _kind(term)
        product = _scaled(term, factor)
        if kind == "dynamic":
            orders = sorted((r.arg[0] for r in term.ranges if r.arg[1] not in _REGISTERS), reverse=True)
            dynamic.append((tuple(orders), product))
        elif kind == "static":
            static = _plus(product, static)
        else:
            mixed = _plus(mixed, product)
    total = index(0)
    for _, product in sorted(dynamic, key=lambda item: item[0]):
        total = _plus(total, product)
    return _plus(total, _plus(mixed, static))


def _scaled(term: UOp, factor: int) -> UOp:
    return term if factor == 1 else term * factor


def _plus(left: UOp, right: UOp) -> UOp:
    return right if left.is_const(0) else left if right.is_const(0) else left + right
