"""How results of a replay were made, for gradients that are asked for afterwards.

The recorded expression names parameters in the place of the leaves, of the words of the random stream and of the
variables in sizes; `Past.begin` notes what stands in their places this time, and the expression of a result is
only made when somebody asks for its history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lazulite.engine.handles import history
from lazulite.engine.recording import Draw, Recording, contents_by_node
from lazulite.engine.storage import Storage
from lazulite.engine.stream import STREAM
from lazulite.engine.variables import with_variables
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, substitute, toposort

Moment = tuple[list[UOp], int, int, Sequence[UOp]]
"""The contents of the leaves, the key and position of the random stream, and the variables, when a replay begins."""


class Past:
    """The expressions of those results that remember how they were made."""

    def __init__(self, recording: Recording, before: Sequence[UOp], results: Sequence[UOp]) -> None:
        """`before` are the contents of the leaves when the call began, `results` the values of the results."""
        remembered = [number for number, value in enumerate(results) if history(value) is not None]
        numbered = recording.variables.numbered
        self._places = [_place(node, number, numbered(node.shape)) for number, node in enumerate(before)]
        table = dict(zip(before, self._places, strict=True))
        key, position = recording.begun_at
        words = {word for step in recording.trace.steps for word in step.words}
        self._offsets = sorted(word.offset for word in words if isinstance(word, Draw))
        constants = [key, *[position + offset for offset in self._offsets]]
        table |= {UOp.const(dtypes.uint64, value): _word(place) for place, value in enumerate(constants)}
        self._variables = [recording.variables.leaf_by_number(leaf) for leaf in recording.variables.leaves]
        table |= zip(recording.variables.leaves, self._variables, strict=True)
        expressions = _expanded(
            [_history_of(results[number]) for number in remembered], contents_by_node(recording), table
        )
        self._expressions = dict(zip(remembered, _rebuilt(expressions, table, numbered), strict=True))

    def begin(self, storages: Sequence[Storage], variables: Sequence[UOp]) -> Moment:
        """What stands in the places of a replay that begins now."""
        return [storage.node() for storage in storages], STREAM.key, STREAM.position, variables

    def expression(self, number: int, moment: Moment) -> Callable[[], UOp]:
        """How result `number` of that replay was made."""

        def make() -> UOp:
            nodes, key, position, variables = moment
            table = dict(zip([*self._places, *self._variables], [*nodes, *variables], strict=True))
            for place, value in enumerate([key, *[position + offset for offset in self._offsets]]):
                table[_word(place)] = UOp.const(dtypes.uint64, value)
            return _rebuilt([self._expressions[number]], table, partial(with_variables, leaves=variables))[0]

        return make


def _place(node: UOp, number: int, shape: tuple[int, ...]) -> UOp:
    return UOp(ops.PARAM, node.dtype, (), (number, shape, node.arg[3]))


def _word(place: int) -> UOp:
    return UOp(ops.SCALAR, dtypes.uint64, (), (place, None, None))


def _history_of(value: UOp) -> UOp:
    past = history(value)
    return value if past is None else past


def _expanded(roots: list[UOp], contents: dict[UOp, UOp], table: dict[UOp, UOp]) -> list[UOp]:
    """What runs of the call filled is replaced by its own expression."""
    while True:
        inner = {n: contents[n] for n in toposort(*roots) if n.op is ops.BUFFER and n not in table and n in contents}
        if not inner:
            return roots
        roots = substitute(roots, inner)


def _rebuilt(roots: Sequence[UOp], table: dict[UOp, UOp], sized: Callable[[Any], Any]) -> list[UOp]:
    """The expressions with other nodes for those of the table, and with the arguments that `sized` gives."""
    done = dict(table)
    for node in toposort(*roots, enter=lambda n: n not in table):
        if node not in done:
            done[node] = UOp(node.op, node.dtype, tuple([done[source] for source in node.src]), sized(node.arg))
    return [done[root] for root in roots]
