"""Loops of a kernel as LLVM assembly: counters, states, positions that walk with a loop, and the chunk of a thread.

A position that a loop moves on by a fixed step is a phi, to which the step is added at the end of a turn: what the
code generator would make of a product with the counter, if it looked for it.  That search takes it a quarter of its
time, so it is shown nothing to search for: `freeze`, which is no instruction, hides where the phi comes from.  Where
memory is accessed in that loop the address itself walks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lazulite.emit.llvm_compute import POSITIONS
from lazulite.emit.llvm_matrix import MatrixWriter
from lazulite.emit.llvm_memory import stored_type
from lazulite.emit.llvm_types import type_name
from lazulite.emit.llvm_values import At, Key
from lazulite.ir import ops
from lazulite.ir.blocks import memory_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent, is_fixed

_LEAVES = frozenset({ops.PARAM, ops.SCRATCH, ops.SCALAR})


class _State(NamedTuple):
    """The phis of a state: the `CARRY`, their type, and the name and the first value of each of its rows."""

    carry: UOp
    kind: str
    names: dict[Key, str]
    first: dict[Key, str]


class _Walk(NamedTuple):
    """A phi of a position, or of the address there: the name, the first value, and the name in the loop."""

    name: str
    kind: str
    first: str
    value: str
    moved: str
    """The instruction that gives it in the next turn."""


@dataclass(slots=True)
class _Loop:
    """A loop that is being written."""

    closer: UOp
    counter: str
    begin: str
    end: str
    entry: str
    head: str
    leave: str
    before: int
    """Where the first addresses will stand."""
    line: int
    """Where its phis will stand, once what follows a turn is known."""
    states: list[_State]
    may_be_empty: bool
    walks: list[_Walk] = field(default_factory=list)
    pointers: dict[tuple[UOp, UOp], _Walk] = field(default_factory=dict)
    """For memory and a position: the walking address."""


class LoopWriter(MatrixWriter):
    """Writes loops, around what the other writers write."""

    def __init__(self, linear: UOp) -> None:
        super().__init__(linear)
        self.loops: list[_Loop] = []
        self.parallel = next((r for r in self.closers if r.arg[1] == "parallel"), None)
        self.yields: dict[UOp, list[dict[Key, str]]] = {}
        self.steps: dict[UOp, tuple[UOp, int]] = {}
        """The loop with which a position moves, and how far in a turn."""
        self.used, self.leaves = self._needs(self._around())

    def _around(self) -> dict[UOp, UOp]:
        """The innermost loop around each access; notes the positions that move with the one around them."""
        found, loops = dict[UOp, UOp](), list[UOp]()
        for node in self.nodes:
            op = node.op
            if op in POSITIONS:
                if node.dtype is dtypes.index and loops and loops[-1] is not self.parallel:
                    step = _step(node, loops[-1])
                    if step is not None and self.form(node).is_scalar:
                        self.steps[node] = loops[-1], step
            elif op is ops.RANGE:
                loops.append(node)
            elif op is ops.FOR:
                loops.pop()
            elif loops and (op is ops.LOAD or op is ops.STORE):
                found[node] = loops[-1]
        return found

    def _needs(self, around: Mapping[UOp, UOp]) -> tuple[set[UOp], list[UOp]]:
        """The nodes whose values instructions need, and the arguments and scratch memory in use."""
        used, steps = set[UOp](), self.steps
        for node in reversed(self.nodes):
            op = node.op
            if op in ops.ELEMENTWISE:
                if node in used:
                    used.update(node.src[:1] if node in steps else node.src)
            elif op is ops.LOAD or op is ops.STORE:
                used.update(self._needed(node, around.get(node)))
            else:
                used.update(node.src)
        return used, sorted([node for node in used if node.op in _LEAVES], key=lambda n: (n.op.number, n.arg[0]))

    def _needed(self, access: UOp, loop: UOp | None) -> Sequence[UOp]:
        """What an access needs.

        A position that walks with the loop around it is an address there: what is needed is where it begins.
        """
        parts = self.addresses[access.src[1]]
        place, needed = parts.dynamic, [memory_of(access.src[0]), *access.src[2:]]
        if place is not None and place in self.steps and self.steps[place][0] is loop and access not in self.moved:
            place = place.src[0] if place.op is ops.ADD else None
        if place is not None:
            needed.append(place)
        if parts.mixed is not None:
            needed.append(parts.mixed)
        return needed

    def open_loop(self, r: UOp) -> None:
        text, closer = self.text, self.closers[r]
        head, leave = text.label("loop"), text.label("done")
        first = {carry: self._first_states(carry) for carry in self.carries.get(r, ())}
        begin, end, entry = "0", self.number(r.src[0]), text.block
        if r is self.parallel:
            begin, end = self._chunk(r, end)
        may_be_empty = r.src[0].vmin < 1 and r is not self.parallel
        conditions = [text.define(f"icmp slt i64 {begin}, {end}")] if may_be_empty or r is self.parallel else []
        beside = not self.loops and self.parallel is not None and r is not self.parallel
        if beside and self._belongs_to_one_chunk(closer):
            conditions.append(self.last)
        before = text.line("")
        if conditions:
            both = conditions[0] if len(conditions) < 2 else text.define(f"and i1 {', '.join(conditions)}")
            text.branch(both, head, leave)
        else:
            text.jump(head)
        text.open(head)
        counter, line = text.fresh("i"), text.line("")
        states = [self._state(carry, values) for carry, values in first.items() if values]
        self.values[r] = {(): counter}
        self.enter_loop()
        self.loops.append(_Loop(closer, counter, begin, end, entry, head, leave, before, line, states, may_be_empty))

    def _state(self, carry: UOp, first: dict[Key, str]) -> _State:
        """Names for what a state is in a turn."""
        names = self.values[carry] = dict(zip(first, self.text.fresh_names("c", len(first)), strict=True))
        return _State(carry, type_name(carry.dtype, self.lanes_of(carry)), names, first)

    def _first_states(self, carry: UOp) -> dict[Key, str]:
        """What phis begin with; a tile of a matrix unit has its register instead of one."""
        if not self.form(carry).units:
            return self._states(carry, carry.src[1])
        self.values[carry] = {key: self.first_tile(carry.src[1], at) for at, key in self.points_of(carry)}
        return {}

    def _states(self, carry: UOp, value: UOp) -> dict[Key, str]:
        """A value at every row of a state."""
        form = self.form(carry)
        values = self.operands(value, form.lanes, 64, form.rows)
        if isinstance(values, dict):
            return dict(values)
        keys = self.keys(form.rows)
        return dict.fromkeys(keys, values) if isinstance(values, str) else {key: values(key) for key in keys}

    def walk(self, node: UOp, _: At) -> str:
        """One of the positions in `steps`."""
        name, loop = self.text.fresh("p"), self.loops[-1]
        first = self.number(node.src[0]) if node.op is ops.ADD else "0"
        value = self.text.define(f"freeze i64 {name}")
        loop.walks.append(_Walk(name, "i64", first, value, f"add i64 {value}, {self.steps[node][1]}"))
        return value

    def start(self, memory: UOp, position: UOp | None) -> str:
        """A pointer to an element of memory that does not vary over registers.

        It walks with the loop, so that instructions name one register: with an index beside it in each, products of
        a matrix with a vector took 4 to 6 % longer.
        """
        loop = self.loops[-1] if self.loops else None
        if position is None or loop is None or self.steps.get(position, (None, 0))[0] is not loop.closer.src[0]:
            return super().start(memory, position)
        memory = memory_of(memory)
        walk = loop.pointers.get((memory, position))
        if walk is None:
            name, first, value = map(self.text.fresh, "qap")
            step = self.steps[position][1] * memory.dtype.itemsize
            walk = _Walk(name, "ptr", first, value, f"getelementptr i8, ptr {value}, i64 {step}")
            loop.pointers[memory, position] = walk
        return walk.value

    def _first_address(self, memory: UOp, position: UOp) -> str:
        """The instruction for the address before the loop."""
        first = self.number(position.src[0]) if position.op is ops.ADD else "0"
        return f"getelementptr {stored_type(memory.dtype)}, ptr {self.values[memory][()]}, i64 {first}"

    def close_loop(self) -> None:
        text, loop = self.text, self.loops.pop()
        carries = self.carries.get(loop.closer.src[0], ())
        results = self.yields[loop.closer] = [self._states(c, loop.closer.src[1 + c.arg]) for c in carries]
        self.leave_loop()
        entry, last, following = loop.entry, text.block, text.define(f"add nuw nsw i64 {loop.counter}, 1")
        if loop.pointers:
            firsts = [f"{walk.first} = {self._first_address(*place)}" for place, walk in loop.pointers.items()]
            text.fill(loop.before, "\n  ".join(firsts))
        phis = [(loop.counter, "i64", loop.begin, following)]
        for carry, kind, names, first in loop.states:
            after = results[carry.arg]
            phis += [(name, kind, first[key], after[key]) for key, name in names.items()]
        walks = [*loop.walks, *loop.pointers.values()]
        phis += [(walk.name, walk.kind, walk.first, text.define(walk.moved)) for walk in walks]
        text.branch(text.define(f"icmp slt i64 {following}, {loop.end}"), loop.head, loop.leave)
        heads = [f"{name} = phi {kind} [{first}, %{entry}], [{after}, %{last}]" for name, kind, first, after in phis]
        hidden = [f"{walk.value} = freeze ptr {walk.name}" for walk in loop.pointers.values()]
        text.fill(loop.line, "\n  ".join([*heads, *hidden]))
        text.open(loop.leave)
        if loop.may_be_empty:  # after it a state is what it is before a turn that there may not be
            right_sides = iter([head.partition(" = ")[2] for head in heads[1:]])
            for carry, _, names, _ in loop.states:
                results[carry.arg].update({key: text.define(next(right_sides)) for key in names})

    # --- beside the parallel loop: what others see is written once, what a thread keeps for itself by each -----

    def _chunk(self, r: UOp, turns: str) -> tuple[str, str]:
        """Where the turns of this thread begin and end; chunks of the most turns share those that there are."""
        text = self.text
        if is_fixed(r):
            return "%begin", "%end"
        parts = [text.define(f"mul i64 {bound}, {turns}") for bound in ("%begin", "%end")]
        begin, end = [text.define(f"sdiv i64 {part}, {extent(r)}") for part in parts]
        return begin, end

    def runs_in_every_chunk(self, store: UOp) -> bool:
        """Whether a store of memory that others see would be executed once for each chunk."""
        if self.parallel is None or not _is_seen_by_others(store):
            return False
        if not self.loops:
            return True
        outermost = self.loops[0].closer
        return outermost.src[0] is not self.parallel and not self._belongs_to_one_chunk(outermost)

    def _belongs_to_one_chunk(self, loop: UOp) -> bool:
        """Whether only the last chunk needs a loop: it writes memory that others see, and none of the thread's own."""
        stores, pending = [], [loop]
        while pending:
            effect = pending.pop()
            if effect.op is ops.STORE:
                stores.append(effect)
            elif effect.op is ops.FOR:
                pending += effect.src[1 + effect.arg :]
        return bool(stores) and all(map(_is_seen_by_others, stores))


def _is_seen_by_others(store: UOp) -> bool:
    return memory_of(store.src[0]).op is ops.PARAM


def _step(position: UOp, r: UOp) -> int | None:
    """How far a multiple of a counter moves in a turn, also one added to what stands still; None for anything else."""
    if position.op is ops.MUL:
        return _multiple(position, r)
    start, move = position.src
    return _multiple(move, r) if r not in start.ranges else None


def _multiple(node: UOp, r: UOp) -> int | None:
    """By how much a range is multiplied; None where the node is something else."""
    if node is r:
        return 1
    if node.op is not ops.MUL or node.src[0] is not r or node.src[1].op is not ops.CONST:
        return None
    factor: int = node.src[1].arg
    return factor
