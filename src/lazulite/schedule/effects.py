"""Hand-written stores and calls as pure values: what each value is, and what each storage holds in the end.

Takes `TENSOR` values over AFTER, STORE and CALL; gives values without them (a store becomes a WRITE, a
kernel's call a LAUNCH) and, for every storage that is written, the value it has after all of them.
``AFTER(b, dep..)`` is `b` in the state of memory that exactly its dependencies leave, a plain BUFFER the
contents before all of them.  The contract is strict: two stores of one element must be ordered, and
whatever runs after a store cannot ask for what the store replaced, since no snapshot is ever taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lazulite.analysis.regions import apply_region
from lazulite.base.errors import DTypeError, EffectError, ShapeError
from lazulite.ir import ops
from lazulite.ir.calls import arguments_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.schedule.calls import inlined, run_of
from lazulite.schedule.effect_order import Effect, Requirements, View

Known = Callable[[UOp], UOp | None]
_VIEWS = ops.MOVEMENT - {ops.EXPAND}


@dataclass(slots=True)
class Elaboration:
    """Pure values, and the writes that realizing them entails."""

    values: list[UOp]
    writes: dict[UOp, UOp]
    """The final value of each written storage, by its BUFFER."""
    effects: list[UOp]
    """Every STORE and CALL that the writes stand for."""
    states: dict[UOp, UOp]
    """The AFTERs that show a storage's final contents, each with that storage's BUFFER."""
    launches: dict[UOp, UOp]
    """What each LAUNCH stands for: memory after a call."""


def elaborate(values: Sequence[UOp], known: Known, done: Callable[[UOp], bool]) -> Elaboration:
    """Find the pure values; `known(node)` gives the BUFFER that already holds a value, `done` tells of an
    effect whether it was executed before."""
    walk = _Elaborator(known, done)
    for node, sources in walk.order(values):
        walk.visit(node, sources)
    for value in values:
        walk.requirements.read(value, walk.masks[value])
    walk.requirements.check()
    writes = {walk.buffers[number]: walk.state(number, mask) for number, mask in walk.written.items()}
    return Elaboration([walk.values[v] for v in values], writes, walk.executed, walk.final_states(), walk.launches)


class _Elaborator:
    """A walk over the graph: what each node is, which effects lie below it, what it reads."""

    def __init__(self, known: Known, done: Callable[[UOp], bool]) -> None:
        self.known, self.done = known, done
        self.values: dict[UOp, UOp] = {}
        self.masks: dict[UOp, int] = {}
        """A bit for each effect below a node."""
        self.views: dict[UOp, View] = {}
        self.reads: dict[UOp, frozenset[UOp]] = {}
        """The views of memory that a value is computed from, in the states that they name."""
        self.requirements = Requirements(self.views, self.masks, self.reads)
        self.effects = self.requirements.effects
        self.executed: list[UOp] = []
        self.kernels: set[UOp] = set()
        """The CALLs that run a kernel."""
        self.launches: dict[UOp, UOp] = {}
        self.buffers: dict[int, UOp] = {}
        """The contents before everything of each written storage, by its number."""
        self.written: dict[int, int] = {}
        """A bit for each effect on a storage."""
        self.states: dict[tuple[int, int], UOp] = {}

    # --- walking ----------------------------------------------------------------------------------

    def order(self, roots: Sequence[UOp]) -> list[tuple[UOp, tuple[UOp, ...]]]:
        """Every node with what it is made from: the body of a CALL is no part of the graph around it."""
        found: list[tuple[UOp, tuple[UOp, ...]]] = []
        entered: set[UOp] = set()
        for root in roots:
            stack = [] if root in entered else [self._opened(root)]
            entered.add(root)
            while stack:
                node, sources, pending = stack[-1]
                source = next((s for s in pending if s not in entered), None)
                if source is None:
                    found.append((node, sources))
                    stack.pop()
                else:
                    entered.add(source)
                    stack.append(self._opened(source))
        return found

    def _opened(self, node: UOp) -> tuple[UOp, tuple[UOp, ...], Iterator[UOp]]:
        sources = self._sources(node)
        return node, sources, iter(sources)

    def _sources(self, node: UOp) -> tuple[UOp, ...]:
        if self.known(node) is not None or (node.op in (ops.STORE, ops.CALL) and self.done(node)):
            return ()
        if node.op is ops.CALL:
            stores = inlined(node)
            if stores is None:
                self.kernels.add(node)
            return (*(stores or ()), *arguments_of(node))
        return node.src

    def visit(self, node: UOp, sources: tuple[UOp, ...]) -> None:
        mask = 0
        for source in sources:
            mask |= self.masks[source]
        self.masks[node] = mask
        if node.op is ops.STORE and sources:
            self._store(node, mask)
        elif node.op is ops.CALL and sources:
            self.executed.append(node)
            if node in self.kernels:
                self._call(node, mask)
        elif node.dtype is not dtypes.void:
            self._value(node, sources)

    def _value(self, node: UOp, sources: tuple[UOp, ...]) -> None:
        held = self.known(node)
        if node.op is ops.BUFFER or held is not None:
            self.views[node] = View(node if held is None else held)
            self.values[node] = node if held is None or not node.has_effects else held
        elif node.op is ops.AFTER:
            self._after(node)
        else:
            src = tuple([self.values[s] for s in sources])
            value = self.values[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
            value.origin = value.origin or node.origin
            below = self.views.get(sources[0]) if sources and node.op in _VIEWS else None
            if below is not None:
                self.views[node] = View(below.buffer, (*below.region, (node.op.name, node.arg)))
        self.reads[node] = frozenset((node,)) if node in self.views else self._reads_below(sources)
        if node.op in (ops.REDUCE, ops.COPY):  # these have memory of their own, filled when it is time
            self.requirements.read(node, self.masks[node])
            self.reads[node] = frozenset()

    def _reads_below(self, sources: tuple[UOp, ...]) -> frozenset[UOp]:
        found: frozenset[UOp] = frozenset()
        for source in sources:
            below = self.reads.get(source, found)
            if not below <= found:
                found = found | below if found else below
        return found

    def _after(self, node: UOp) -> None:
        source = node.src[0]
        view = self.views.get(source)
        if view is None:
            self.values[node] = self.values[source]
            return
        self.views[node] = view
        if view.number in self.written:
            self.values[node] = apply_region(self.state(view.number, self.masks[node]), view.region)
        else:
            self.values[node] = self.values[source]

    # --- effects ----------------------------------------------------------------------------------

    def _store(self, node: UOp, mask: int) -> None:
        target, value = node.src
        view = self.views.get(target)
        if view is None:
            raise EffectError(
                "store", "the destination is no memory: only a storage or a view of one can be written",
                about={"destination": target}, hint="realize() the destination first",
            )  # fmt: skip
        if value.dtype is not target.dtype:
            raise DTypeError("store", f"memory of {target.dtype.name} takes no {value.dtype.name}")
        if value.shape not in (target.shape, ()):
            raise ShapeError("store", f"the destination has the shape {target.shape}, the value {value.shape}")
        self.requirements.read(value, mask, len(self.effects))
        self.requirements.in_place(value, view)
        self.executed.append(node)
        self._enter(node, Effect(len(self.effects), mask, [view], value=self.values[value]))

    def _call(self, node: UOp, mask: int) -> None:
        run = run_of(node)
        arguments = [arguments_of(node)[slot] for slot in run.slots]
        views = {i: self._written_argument(arguments[i]) for i in run.writes}
        held = [self.values[a] if i not in views else self._contents(views[i], mask) for i, a in enumerate(arguments)]
        for i in run.reads:
            self.requirements.read(arguments[i], mask, len(self.effects))
        run = run._replace(bindings=self._bindings(arguments, views))
        effect = Effect(len(self.effects), mask, [])
        for i, view in views.items():
            if run.bindings[i] == i:
                effect.views.append(view)
                launch = UOp(ops.LAUNCH, held[i].dtype, tuple(held), run._replace(result=i))
                launch.origin = launch.origin or node.origin
                effect.results[view.number] = launch
                self.launches[launch] = view.buffer.after(node)
        self._enter(node, effect)

    def _written_argument(self, argument: UOp) -> View:
        view = self.views.get(argument)
        if view is None or any(name != "reshape" for name, _ in view.region):
            raise EffectError(
                "call", "a kernel writes whole storages: an argument it writes is a part of one, or no memory",
                about={"argument": argument},
            )  # fmt: skip
        return View(view.buffer)

    def _bindings(self, arguments: Sequence[UOp], views: dict[int, View]) -> tuple[int, ...]:
        """For each argument the (first) written one that is the same memory, -1 where there is none."""
        first: dict[int, int] = {}
        for i, written in views.items():
            first.setdefault(written.number, i)
        bindings = []
        for i, argument in enumerate(arguments):
            view = views.get(i, self.views.get(argument))
            whole = view is not None and all(name == "reshape" for name, _ in view.region)
            bindings.append(first.get(view.number, -1) if view is not None and whole else -1)
        return tuple(bindings)

    def _enter(self, node: UOp, effect: Effect) -> None:
        for view in effect.views:
            if self.buffers.setdefault(view.number, view.buffer) is not view.buffer:
                raise EffectError("store", "a storage is written in two versions, one of which is gone")
            self.written[view.number] = self.written.get(view.number, 0) | 1 << effect.number
        self.requirements.enter(effect)
        self.masks[node] |= 1 << effect.number

    # --- states -----------------------------------------------------------------------------------

    def _contents(self, view: View, mask: int) -> UOp:
        """What the storage of a view holds after the effects of the mask."""
        return self.state(view.number, mask) if view.number in self.written else view.buffer

    def state(self, number: int, mask: int) -> UOp:
        """What a written storage holds after the effects of the mask."""
        pending: list[tuple[Effect, int]] = []
        rest = mask & self.written[number]
        while rest and (number, rest) not in self.states:
            last = self.effects[rest.bit_length() - 1]
            pending.append((last, rest))
            rest &= ~(1 << last.number)
        held = self.states[number, rest] if rest else self.buffers[number]
        for effect, reached in reversed(pending):
            held = _written(held, effect, number)
            self.states[number, reached] = held
        return held

    def final_states(self) -> dict[UOp, UOp]:
        """The AFTERs of whole storages that no later effect writes."""
        found = {}
        for node, view in self.views.items():
            everything = self.written.get(view.number, 0)
            if everything and node.op is ops.AFTER and not view.region and not everything & ~self.masks[node]:
                found[node] = self.buffers[view.number]
        return found


def _written(held: UOp, effect: Effect, number: int) -> UOp:
    """The contents of a storage after one more effect."""
    if effect.value is None:
        return effect.results[number]
    (view,), value = effect.views, effect.value
    if view.region:
        return UOp(ops.WRITE, held.dtype, (held, value), view.region)
    if held.op is ops.LAUNCH:  # the kernel runs all the same: its other results may be wanted
        return UOp(ops.WRITE, held.dtype, (held, value), (("reshape", held.shape),))
    return value if value.shape == held.shape else UOp(ops.EXPAND, value.dtype, (value,), held.shape)
