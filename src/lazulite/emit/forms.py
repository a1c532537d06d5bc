"""Over which registers the values of a kernel vary: which rows, which lane range, which ranges inside of a matrix unit.

Takes the nodes of a `LINEAR` kernel, gives the `Form` of each.  The free ranges of a node tell it, but for states, for
what depends on them, and for memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lazulite.ir import ops
from lazulite.ir.blocks import REGISTERS
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import by_order, extent

_NOTHING: frozenset[UOp] = frozenset()
_CLOSING = (ops.REDUCE, ops.MMA)
_LOOP = frozenset({ops.RANGE, ops.FOR, ops.STORE})
"""What has no value."""
Listed = Mapping[Op, Sequence[UOp]]
"""The nodes of each operation."""
Q = TypeVar("Q")
A = TypeVar("A")


class Answers(dict[Q, A]):
    """Answers to one question, each found when it is first asked."""

    def __init__(self, answer: Callable[[Q], A]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, asked: Q) -> A:
        found = self[asked] = self._answer(asked)
        return found


@dataclass(frozen=True, slots=True)
class Form:
    """Over which rows, which lane range and which ranges inside of a matrix unit a value varies."""

    rows: tuple[UOp, ...]
    lane: UOp | None
    units: tuple[UOp, ...]
    lanes: int
    """The length of the vector; 0 for a scalar."""

    @property
    def is_scalar(self) -> bool:
        """Whether it is one number."""
        return self.lane is None and not self.rows and not self.units


def form_of(ranges: Iterable[UOp]) -> Form:
    """The row, lane and unit ranges among these."""
    ordered = by_order(ranges)
    rows = tuple([r for r in ordered if r.arg[1] == "row"])
    units = tuple([r for r in ordered if r.arg[1] == "unit"])
    lanes = [r for r in ordered if r.arg[1] == "lane"]
    return Form(rows, lanes[0], units, extent(lanes[0])) if lanes else Form(rows, None, units, 0)


_SCALAR = Form((), None, (), 0)


def forms_of(nodes: Sequence[UOp], listed: Listed) -> Answers[UOp, Form]:
    """The form of every value of a kernel, and of what its stores write."""
    registers = _registers(listed)
    scalar, alike = registers.isdisjoint, Answers(form_of)
    told = Answers[frozenset[UOp], Form](lambda ranges: alike[ranges & registers])
    forms = Answers[UOp, Form](lambda node: _SCALAR if scalar(node.ranges) else told[node.ranges])
    forms.update({node: _SCALAR if scalar(node.ranges) else told[node.ranges] for node in nodes})
    untold = _untold(nodes, listed, registers)
    forms.update({node: alike[own] for node, own in untold.items()})
    for store in listed[ops.STORE]:
        forms[store] = alike[_over(store.src[1:], untold, registers)]
    return forms


def _registers(listed: Listed) -> frozenset[UOp]:
    """All row, lane and unit ranges: each of them ends in one of these nodes."""
    ending = [*listed[ops.STORE], *listed[ops.REDUCE], *listed[ops.MMA]]
    ended = {r for node in ending for source in node.src for r in source.ranges}
    return frozenset([r for r in ended if r.arg[1] in REGISTERS])


_Varying = dict[UOp, frozenset[UOp]]
"""What nodes vary over."""


def _untold(nodes: Sequence[UOp], listed: Listed, registers: frozenset[UOp]) -> _Varying:
    """What nodes vary over of which their own ranges do not tell: states, what memory that was filled holds, and what
    depends on these.

    An access varies as its place does; a state as its first value and its next value do, so until none changes.
    """
    filled = [load for load in listed[ops.LOAD] if not registers.isdisjoint(load.src[0].ranges)]
    found: _Varying = dict.fromkeys([*listed[ops.CARRY], *listed[ops.FINAL], *filled], _NOTHING)
    if not found:
        return found
    ordered, depends = [], found.keys()
    for node in nodes:
        if node in found or (not depends.isdisjoint(node.src) and node.op not in _LOOP):
            found[node] = _NOTHING
            ordered.append(node)
    closers = {loop.src[0]: loop for loop in listed[ops.FOR]}
    valued = [(node, node.src if node.op in ops.ELEMENTWISE else _value_sources(node, closers)) for node in ordered]
    states = [(node, sources) for node, sources in valued if node.op is ops.CARRY]
    changed = True
    while changed:
        for node, sources in valued:
            own = _over(sources, found, registers)
            found[node] = own.difference(_closed(node)) if node.op in _CLOSING else own
        changed = any(found[node] != _over(sources, found, registers) for node, sources in states)
    return found


def _over(sources: Iterable[UOp], found: _Varying, registers: frozenset[UOp]) -> frozenset[UOp]:
    """The registers that some of these vary over."""
    return _NOTHING.union(*[found[s] if s in found else registers & s.ranges for s in sources])


def _value_sources(node: UOp, closers: Mapping[UOp, UOp]) -> Sequence[UOp]:
    """The nodes whose registers a node's value has."""
    if node.op is ops.CARRY:
        return node.src[1], closers[node.src[0]].src[1 + node.arg]
    if node.op is ops.FINAL:
        return (node.src[0].src[1 + node.arg],)
    if node.op is ops.LOAD:
        return node.src[1:]
    return node.src[:1] if node.op is ops.REDUCE else node.src[:3] if node.op is ops.MMA else node.src


def _closed(node: UOp) -> Sequence[UOp]:
    """The ranges that a `REDUCE` or an `MMA` closes."""
    return node.src[1:] if node.op is ops.REDUCE else node.src[3:]
