"""Which effect reads and writes which part of which storage, and whether one order suits them all.

No snapshot is ever taken for hand-written stores.  So whatever reads the contents of a storage in one
state has to run before every effect that replaces what it reads; `Requirements` refuses, as a cycle,
the graphs in which that cannot be.  Reductions and copies have memory of their own and read when it is
time; everything else is computed by the effect or the output that asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.analysis.kinds import is_elementwise
from lazulite.analysis.regions import Region, may_share
from lazulite.base.errors import EffectError
from lazulite.ir.uop import UOp


@dataclass(frozen=True, slots=True)
class View:
    """A part of a storage."""

    buffer: UOp
    region: Region = ()

    @property
    def number(self) -> int:
        return int(self.buffer.arg[0])


@dataclass(slots=True)
class Effect:
    """A STORE, or a CALL that runs a kernel, with what it makes of each storage it writes."""

    number: int
    before: int
    """A bit for each effect that it is ordered after."""
    views: list[View]
    value: UOp | None = None
    """What a STORE writes."""
    results: dict[int, UOp] = field(default_factory=dict)
    """What a CALL leaves, by storage number."""

    def meets(self, view: View) -> bool:
        """Whether this may write an element of the view."""
        return any(view.number == other.number and overlap(view, other) for other in self.views)


@dataclass(frozen=True, slots=True)
class _Consumer:
    """What reads memory at one moment: an effect (by its number), a reduction, a copy or an output (-1)."""

    before: int
    reads: frozenset[UOp]
    number: int


@dataclass(slots=True)
class Requirements:
    """What reads which state of memory, gathered node by node; the mappings are the walk's."""

    views: Mapping[UOp, View]
    """The part of a storage that a node names."""
    masks: Mapping[UOp, int]
    """A bit for each effect below a node."""
    reads: Mapping[UOp, frozenset[UOp]]
    """The nodes in `views` that a value is computed from."""
    effects: list[Effect] = field(default_factory=list)
    writers: dict[int, list[Effect]] = field(default_factory=dict)
    """The effects on each storage."""
    consumers: list[_Consumer] = field(default_factory=list)

    def read(self, value: UOp, before: int, number: int = -1) -> None:
        """Something that comes after some effects computes the value: none of them may have replaced its operands."""
        for node in self.reads[value]:
            view = self.views[node]
            for effect in self.writers.get(view.number, ()):
                replaced = before & ~self.masks[node] & 1 << effect.number
                if replaced and effect.meets(view):
                    raise _cycle("a value needs both what a store leaves and what it replaced", view)
        self.consumers.append(_Consumer(before, self.reads[value], number))

    def in_place(self, value: UOp, target: View) -> None:
        """A store may read the elements that it writes only where it writes them."""
        pending, seen = [value], {value}
        while pending:
            node = pending.pop()
            inside = is_elementwise(node)
            for read in () if inside else self.reads[node]:
                view = self.views[read]
                same = read is node and view.region == target.region
                if view.number == target.number and not same and overlap(view, target):
                    raise _cycle("a store reads elements in other places than it writes them", view)
            below = [s for s in node.src if s not in seen] if inside else []
            seen.update(below)
            pending += below

    def enter(self, effect: Effect) -> None:
        """One more effect; two that write the same element have to be ordered."""
        for view in effect.views:
            earlier = self.writers.setdefault(view.number, [])
            for other in earlier:
                if not effect.before >> other.number & 1 and other.meets(view):
                    raise EffectError(
                        "store", "two stores write the same elements, and nothing orders them",
                        about={"storage": view.buffer}, hint="store into memory.after(the first store)",
                    )  # fmt: skip
            earlier.append(effect)
        self.effects.append(effect)

    def check(self) -> None:
        """Find an order in which every read comes before the effects that replace what it names."""
        count = len(self.effects)
        later: list[set[int]] = [set() for _ in range(count + len(self.consumers))]
        for effect in self.effects:
            self._note_after(later, effect.before, effect.number)
        for place, consumer in enumerate(self.consumers, count):
            position = consumer.number if consumer.number >= 0 else place
            self._note_after(later, consumer.before, position)
            for node in consumer.reads:
                later[position].update(self._replacing(node, consumer))
        if _has_cycle(later):
            raise _cycle("no order of the stores leaves every reader the contents that it names", None)

    def _replacing(self, node: UOp, consumer: _Consumer) -> list[int]:
        """The effects, not known to come later, that replace what a consumer reads."""
        view, own = self.views[node], consumer.number
        return [
            effect.number
            for effect in self.writers.get(view.number, ())
            if not self.masks[node] >> effect.number & 1
            and not (own >= 0 and (effect.number == own or effect.before >> own & 1))
            and effect.meets(view)
        ]

    def _note_after(self, later: list[set[int]], before: int, position: int) -> None:
        while before:
            last = before.bit_length() - 1
            later[last].add(position)
            before &= ~(1 << last | self.effects[last].before)


def _cycle(message: str, view: View | None) -> EffectError:
    return EffectError(
        "after", f"a cycle: {message}", about={} if view is None else {"the storage": view.buffer},
        rule="`after` takes no snapshot: whatever reads the contents before a store has to run before it.",
        hint="copy what is needed from before into memory of its own",
    )  # fmt: skip


def _has_cycle(later: Sequence[set[int]]) -> bool:
    """Whether a graph, given as the successors of each node, has a cycle."""
    waiting = [0] * len(later)
    for successors in later:
        for successor in successors:
            waiting[successor] += 1
    ready = [node for node, count in enumerate(waiting) if not count]
    done = 0
    while ready:
        done += 1
        for successor in later[ready.pop()]:
            waiting[successor] -= 1
            if not waiting[successor]:
                ready.append(successor)
    return done < len(later)


def overlap(left: View, right: View) -> bool:
    """Whether two views of one storage may share an element."""
    return may_share(left.buffer.shape, left.region, right.region)
