"""Make the loops of a kernel explicit: scheduled `KERNEL` in, `LOOP` out.

A `REDUCE` over loop ranges becomes a nest of `FOR`s whose `CARRY` holds the partial result; what it
reduces over lanes and rows stays a `REDUCE` of the loop's `FINAL`; what a matrix unit sums over becomes an
`MMA`.  Reductions over the same ranges in the same place, none of which needs another, share one loop.  A sum
of products becomes `FMA` where the target has it.  Every `STORE` ends in the nest of its free ranges, and every
`FOR` owns its `RANGE`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, nodes_of, substitute, toposort
from lazulite.kernel.gates import split_gate
from lazulite.kernel.nest import nested
from lazulite.lower.idle_turns import depth_of, without_idle_turns

_LOOPS = ("loop", "parallel")


def build(sink: UOp, target: Target) -> UOp:
    """The kernel with `FOR`, `CARRY` and `FINAL` in place of reductions and free ranges."""
    return _separate(_in_loops(_reductions(sink, target)))


# --- reductions ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Level:
    """Reductions with equally many reductions below, and what needs some of these but none above them."""

    groups: dict[object, list[UOp]] = field(default_factory=dict)
    """Those that share a loop: they have the same ranges and the same place."""
    above: list[UOp] = field(default_factory=list)


def _reductions(sink: UOp, target: Target) -> UOp:
    done: dict[UOp, UOp] = {}
    for level in _levels(sink):
        for members in level.groups.values():
            values = [done.get(member.src[0], member.src[0]) for member in members]
            done.update(zip(members, _loop(members, values, target), strict=True))
        for node in level.above:
            done[node] = UOp(node.op, node.dtype, tuple([done.get(s, s) for s in node.src]), node.arg)
    return done.get(sink, sink)


def _levels(sink: UOp) -> list[_Level]:
    """The levels of a kernel, innermost first; a level lists sources before users."""
    depth: dict[UOp, int] = {}
    levels: list[_Level] = []
    for node in nodes_of(sink):
        below = 0
        for source in node.src:
            if source in depth and depth[source] > below:
                below = depth[source]
        if node.op is ops.REDUCE:
            below += 1
            if below > len(levels):
                levels.append(_Level())
            levels[below - 1].groups.setdefault((node.src[1:], node.ranges), []).append(node)
        elif below:
            levels[below - 1].above.append(node)
        if below:
            depth[node] = below
    return levels


def _loop(members: Sequence[UOp], values: Sequence[UOp], target: Target) -> list[UOp]:
    """The results of reductions that share a loop."""
    ranges = members[0].src[1:]
    loops = sorted((r for r in ranges if r.arg[1] in _LOOPS), key=lambda r: r.arg[0])
    units = [r for r in ranges if r.arg[1] == "unit"]
    registers = [r for r in ranges if r.arg[1] not in _LOOPS and r.arg[1] != "unit"]
    if loops or units:
        combine = [m.arg[0] for m in members]
        stored = [_without_effects(op, value) for op, value in zip(combine, values, strict=True)]
        effects = list(dict.fromkeys(effect for _, found in stored for effect in found))
        values = _carry(loops, combine, [value for value, _ in stored], units, effects, target)
    results = []
    for member, value in zip(members, values, strict=True):
        if registers:
            value = UOp(ops.REDUCE, value.dtype, (value, *registers), member.arg)
        results.append(value)
    return results


def _without_effects(op: ops.Op, value: UOp) -> tuple[UOp, tuple[UOp, ...]]:
    """A reduced value, and the stores that it says are to be done with it."""
    inner = split_gate(op, value)[1]
    if inner.op is not ops.AFTER:
        return value, ()
    return substitute([value], {inner: inner.src[0]})[0], inner.src[1:]


def _carry(
    loops: Sequence[UOp], combine: Sequence[ops.Op], values: Sequence[UOp], units: Sequence[UOp],
    effects: Sequence[UOp], target: Target,
) -> list[UOp]:  # fmt: skip
    """The values combined over the loops, outermost first: each loop's state begins as the one around it.

    A gate keeps the state that was there in the innermost loop that it varies with: further in, all turns are done,
    and where it is false what came of them is left.  Where it says the same of all rows and lanes there are no turns.
    """
    if not units and not effects:
        loops, values = without_idle_turns(loops, combine, values)
    gates = [_gate_outside(op, value, loops) for op, value in zip(combine, values, strict=True)]
    states = [[UOp.const(v.dtype, op.identity(v.dtype)) for op, v in zip(combine, values, strict=True) if op.identity]]
    for loop in loops:
        states.append([UOp(ops.CARRY, s.dtype, (loop, s), k) for k, s in enumerate(states[-1])])
    results = [
        _multiply(s, v, units) if units else _combine(op, s, v, target)
        for op, s, (_, _, v) in zip(combine, states[-1], gates, strict=True)
    ]
    for depth in range(len(loops), -1, -1):
        results = [
            result if gate is None or level != depth else gate.where(result, states[depth][k])
            for k, (result, (gate, level, _)) in enumerate(zip(results, gates, strict=True))
        ]
        if depth:
            turn = UOp(ops.FOR, dtypes.void, (loops[depth - 1], *results, *effects), len(results))
            effects = ()
            results = [UOp(ops.FINAL, r.dtype, (turn,), k) for k, r in enumerate(results)]
    return results


def _gate_outside(op: ops.Op, value: UOp, loops: Sequence[UOp]) -> tuple[UOp | None, int, UOp]:
    """A gate that does not vary with the innermost loop, in how many of the loops it does, and the value behind it."""
    gate, inner = split_gate(op, value)
    if gate is None:
        return None, 0, value
    level = depth_of(gate, loops)
    return (gate, level, inner) if level < len(loops) else (None, 0, value)


def _combine(op: ops.Op, state: UOp, value: UOp, target: Target) -> UOp:
    """The next state; a gate keeps the old one, which on wide targets is a mask of the same instruction."""
    gate, value = split_gate(op, value)
    if op is ops.ADD and value.op is ops.MUL and target.has(ops.FMA, value.dtype):
        following = UOp.apply(ops.FMA, *sorted(value.src, key=_is_scalar), state)  # alike where the products are
    else:
        following = UOp.apply(op, state, value)
    return following if gate is None else gate.where(following, state)


def _is_scalar(node: UOp) -> bool:
    return not any(r.arg[1] == "lane" for r in node.ranges)


def _multiply(state: UOp, value: UOp, units: Sequence[UOp]) -> UOp:
    """The next state where a matrix unit adds products of what memory holds, which it converts itself."""
    if value.op is not ops.MUL:
        raise StageError("lower.loops", f"a matrix unit adds products, not {value.op.name}")
    factors = [factor.src[0] if factor.op is ops.CAST else factor for factor in value.src]
    return UOp(ops.MMA, state.dtype, (state, *factors, *units))


# --- statements ---------------------------------------------------------------------------------


def _in_loops(sink: UOp) -> UOp:
    return sink.replace(src=tuple(nested(sink.src)))


def _separate(sink: UOp) -> UOp:
    """Give every `FOR` a `RANGE` of its own."""
    nodes = nodes_of(sink)
    loops = [node for node in nodes if node.op is ops.FOR]
    if len({loop.src[0].arg[0] for loop in loops}) == len(loops):
        return sink
    orders = Counter([loop.src[0].arg[0] for loop in loops])
    unclear = _unclear(loops, {loop.src[0] for loop in loops if orders[loop.src[0].arg[0]] > 1})
    return _Separation(nodes, unclear).renamed([sink], {})[0]


def _unclear(loops: Sequence[UOp], ranges: set[UOp]) -> set[UOp]:
    """These ranges, and those of the loops that vary with one: there may be several of these in the end."""
    while more := {loop.src[0] for loop in loops if not ranges.isdisjoint(loop.ranges)} - ranges:
        ranges |= more
    return ranges


_Names = Mapping[UOp, UOp]
"""What ranges of the loops around a node are called, those that have kept their names left out."""


class _Separation:
    """Names for loops, given from the outside in.

    A loop over a range is known by that name in its own body only.  So what it closes over is left alone where it is
    closed inside of the body again, and a loop is made once for each set of names of the ranges that it varies with:
    of these there are as many as there are places in the nest, each of which is visited once.  Recursion is as deep
    as loops feed one another, which a kernel's size bounds.
    """

    def __init__(self, nodes: Iterable[UOp], ranges: Set[UOp]) -> None:
        """Takes in sources before users, and the ranges that may need other names."""
        self.loops: dict[tuple[UOp, frozenset[tuple[UOp, UOp]]], UOp] = {}
        self.taken: set[tuple[int, ...]] = set()
        self.above: set[UOp] = set()
        """The loops over these, and all that needs some."""
        for node in nodes:
            if (node.op is ops.FOR and node.src[0] in ranges) or not self.above.isdisjoint(node.src):
                self.above.add(node)

    def renamed(self, roots: Sequence[UOp], names: _Names) -> list[UOp]:
        """The nodes in a place where ranges have these names."""
        done, moved, above = dict(names), names.keys(), self.above

        def changes(node: UOp) -> bool:
            return node.op is not ops.FOR and (node in above or not moved.isdisjoint(node.ranges))

        for node in toposort(*roots, enter=changes):
            if node.op is ops.FOR:
                done[node] = self._loop(node, names) if node in above else node
            elif node not in done:
                src = tuple([done.get(s, s) for s in node.src])
                done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        return [done[root] for root in roots]

    def _loop(self, loop: UOp, names: _Names) -> UOp:
        key = loop, frozenset([(r, names[r]) for r in loop.ranges if r in names])
        if key not in self.loops:
            r = loop.src[0]
            turns = self.renamed(r.src, names) if r.src[0].ranges else r.src
            own = UOp(ops.RANGE, r.dtype, tuple(turns), (self._order(r.arg[0]), r.arg[1]))
            inside = {old: new for old, new in names.items() if old is not r} | ({} if own is r else {r: own})
            self.loops[key] = loop.replace(src=(own, *self.renamed(loop.src[1:], inside)))
        return self.loops[key]

    def _order(self, order: tuple[int, ...]) -> tuple[int, ...]:
        """A place in the nest that no loop has yet: this one, or just behind it."""
        own = order if order not in self.taken else (*order, -len(self.taken))
        self.taken.add(own)
        return own
