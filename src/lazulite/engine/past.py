"""How results of a replay were made, for gradients that are asked for afterwards.

The recorded expression names parameters in the place of the leaves and of the words of the random stream;
`Past.begin` notes what stands in their places this time, and the expression of a result is only made when
somebody asks for its history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lazulite.engine.handles import history
from lazulite.engine.recording import Draw, Recording, contents_by_node
from lazulite.engine.storage import Storage
from lazulite.engine.stream import STREAM
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, substitute, toposort

Moment = tuple[list[UOp], int, int]
"""The contents of the leaves, and the key and position of the random stream, when a replay begins."""


class Past:
    """The expressions of those results that remember how they were made."""

    def __init__(self, recording: Recording, before: Sequence[UOp], results: Sequence[UOp]) -> None:
        """`before` are the contents of the leaves when the call began, `results` the values of the results."""
        remembered = [number for number, value in enumerate(results) if history(value) is not None]
        table = {node: _place(node, number) for number, node in enumerate(before)}
        key, position = recording.begun_at
        words = {word for step in recording.trace.steps for word in step.words}
        self._offsets = sorted(word.offset for word in words if isinstance(word, Draw))
        constants = [key, *[position + offset for offset in self._offsets]]
        table |= {UOp.const(dtypes.uint64, value): _word(place) for place, value in enumerate(constants)}
        expressions = _expanded(
            [_history_of(results[number]) for number in remembered], contents_by_node(recording), table
        )
        self._expressions = dict(zip(remembered, expressions, strict=True))
        self._places = [_place(node, number) for number, node in enumerate(before)]

    def begin(self, storages: Sequence[Storage]) -> Moment:
        """What stands in the places of a replay that begins now."""
        return [storage.node() for storage in storages], STREAM.key, STREAM.position

    def expression(self, number: int, moment: Moment) -> Callable[[], UOp]:
        """How result `number` of that replay was made."""

        def make() -> UOp:
            nodes, key, position = moment
            table = dict(zip(self._places, nodes, strict=True))
            for place, value in enumerate([key, *[position + offset for offset in self._offsets]]):
                table[_word(place)] = UOp.const(dtypes.uint64, value)
            return substitute([self._expressions[number]], table)[0]

        return make


def _place(node: UOp, number: int) -> UOp:
    _, _, shape, device = node.arg
    return UOp(ops.PARAM, node.dtype, (), (number, shape, device))


def _word(place: int) -> UOp:
    return UOp(ops.SCALAR, dtypes.uint64, (), (place, None, None))


def _history_of(value: UOp) -> UOp:
    past = history(value)
    return value if past is None else past


def _expanded(roots: list[UOp], contents: dict[UOp, UOp], table: dict[UOp, UOp]) -> list[UOp]:
    """The expressions over the places: what runs of the call filled is replaced by its own expression."""
    while True:
        inner = {n: contents[n] for n in toposort(*roots) if n.op is ops.BUFFER and n not in table and n in contents}
        if not inner:
            return substitute(roots, table)
        roots = substitute(roots, inner)
