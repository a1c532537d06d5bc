"""What fusion works on: the state of a walk over a graph, and its result.

`schedule/fuse.py` walks, `schedule/storing.py` says what is stored, and `schedule/hosting.py` by whom.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.analysis.index_map import Maps
from lazulite.analysis.kinds import Facts, is_elementwise
from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.schedule.groups import Decision, Destination, Group, Place

MAX_OPS = 300
MAX_OPERANDS = 32
SMALL = 1 << 16
"""A reduction of more elements wants threads."""

Wishes = Mapping[Group, Mapping[Place, None]]
"""The groups that want a value, each with the places at which it does."""


@dataclass(slots=True)
class Fusion:
    """The result: groups in the order in which they were opened (users first), and the reasons."""

    groups: list[Group]
    destinations: Mapping[UOp, Sequence[Destination]]
    writer: dict[UOp, Group]
    """The group that stores each stored value."""
    facts: Mapping[UOp, Facts]
    decisions: list[Decision]
    again: frozenset[UOp] = frozenset()
    """Stored values that each kernel that reads them had better make anew, block by block (`schedule/blocks.py`)."""
    last: Mapping[UOp, int] = field(default_factory=dict)
    """The axis that lies innermost, of intermediates that do not lie row by row (`schedule/axes.py`)."""


@dataclass(slots=True)
class State:
    facts: Mapping[UOp, Facts]
    destinations: Mapping[UOp, Sequence[Destination]]
    fuse: bool
    wanted: dict[UOp, dict[Group, dict[Place, None]]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    writer: dict[UOp, Group] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    ordered: Collection[LaunchKey] = ()
    """The calls of hand-written kernels that take their arguments from memory."""
    launches: dict[LaunchKey, Group] = field(default_factory=dict)
    """The group of each call of a hand-written kernel, which stores all its results."""
    maps: Maps = field(default_factory=Maps)
    forced: dict[UOp, str] = field(default_factory=dict)
    """Values that must be stored, with the reason."""
    whole: dict[UOp, dict[Group, None]] = field(default_factory=dict)
    """The groups that read these values as a whole, so that none of them can compute it on the way."""
    again: set[UOp] = field(default_factory=set)
    """Stored values that are better made anew by each of their readers."""
    packed: set[UOp] = field(default_factory=set)
    """What the factors of products are made of that are computed while they are copied in the order of reading."""
    position: dict[UOp, int] = field(default_factory=dict)
    """The number of each node in the order of the graph, sources first."""
    filling: dict[UOp, list[UOp]] = field(default_factory=dict)
    """What is written, before a hand-written kernel runs, to the memory in which it does: it waits for that, too."""

    def force(self, node: UOp, readers: Iterable[Group], reason: str) -> None:
        self.forced[node] = reason
        self.whole.setdefault(node, {}).update(dict.fromkeys(readers))


def is_reinterpretation(node: UOp) -> bool:
    """A BITCAST between widths: no work, but a second way to read the memory of its source."""
    return node.op is ops.BITCAST and not is_elementwise(node)


def source_of(read: UOp) -> UOp:
    """The value in whose memory a node lies that a group reads."""
    while is_reinterpretation(read):
        read = read.src[0]
    return read


LaunchKey = tuple[object, ...]


def launch_key(node: UOp) -> LaunchKey:
    """What the results of one call have in common."""
    return node.src, node.arg._replace(result=-1)
