"""Run the statements of a kernel over strips of an axis that all of them reduce.

Takes `Statements` and gives `Statements` with one more shared range, the innermost: its turns are strips of an
axis of the intermediates.  Of these, scratch memory then holds a strip.  Every reduction over the axis becomes a
statement of its own, which keeps the running result in scratch memory from strip to strip; results are stored
after the last one.  How a running result follows a maximum that grows is the law in `kernel/rescaling.py`.

What cannot be shown to be of this form is refused with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from math import gcd, inf

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import NARROW, DType, dtypes
from lazulite.ir.uop import UOp, index, nodes_of, substitute
from lazulite.kernel.nest import by_order, extent, grain
from lazulite.kernel.rescaling import Factors, Scales, read_alike, shrinkage
from lazulite.kernel.statements import Statements
from lazulite.simplify.division import quotient
from lazulite.simplify.facts import NOTHING
from lazulite.simplify.terms import sum_of

_PAGE, _PADDING = 4096, 64
_ACCESSES = (ops.LOAD, ops.STORE)
_WIDER = dict.fromkeys(NARROW, dtypes.float32)


class Refused(Exception):
    """Why statements cannot run over strips."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of intermediates: the ranges of each statement that run along it, and its stride in each memory."""

    size: UOp
    along: tuple[frozenset[UOp], ...]
    strides: Mapping[UOp, int]


def strips(parts: Statements, name: tuple[int, ...], factor: int) -> Statements:
    """The statements over strips of so many turns of a range of the first one."""
    first = next((r for r in nodes_of(parts.kernels[0]) if r.op is ops.RANGE and r.arg[0] == name), None)
    if first is None:
        raise Refused("the first statement has no such range")
    return _Strips(parts, find_axis(parts, first), factor).statements()


# --- the axis ----------------------------------------------------------------------------------


def find_axis(parts: Statements, first: UOp) -> Axis:
    """The axis that a range of the first statement runs along."""
    accesses = [
        [(n.src[0], linear(n.src[1]), n) for n in nodes_of(kernel) if n.op in _ACCESSES and n.src[0] in parts.memory]
        for kernel in parts.kernels
    ]
    along: list[set[UOp]] = [set() for _ in parts.kernels]
    strides: dict[UOp, int] = {}
    pending = [(0, first)]
    while pending:
        number, r = pending.pop()
        if r in along[number]:
            continue
        if r.src[0] is not first.src[0]:
            raise Refused("the ranges along the axis are not equally long")
        along[number].add(r)
        for memory, form, access in accesses[number]:
            if r not in access.src[1].ranges:
                continue
            stride = form.terms.get(r)
            if stride is None or strides.setdefault(memory, stride) != stride:
                raise Refused("an intermediate is read across the axis")
            for k, each in enumerate(accesses):
                pending += [(k, _walker(other, stride)) for also, other, _ in each if also is memory]
    results = range(len(parts.memory), len(parts.kernels))
    if any(not store.ranges.isdisjoint(along[number]) for number in results for store in parts.kernels[number].src):
        raise Refused("results have the axis")
    return Axis(first.src[0], tuple(map(frozenset, along)), strides)


def _walker(place: Linear, stride: int) -> UOp:
    """The range along which a place in an intermediate moves by the stride."""
    found = [t for t, factor in place.terms.items() if factor == stride and t.op is ops.RANGE]
    if len(found) != 1:
        raise Refused("an intermediate is not walked by one range")
    return found[0]


# --- statements --------------------------------------------------------------------------------


class _Strips:
    """The statements in the making."""

    def __init__(self, parts: Statements, axis: Axis, factor: int) -> None:
        self.parts, self.axis, self.factor = parts, axis, factor
        nodes = chain(*map(nodes_of, parts.kernels), parts.scalars, parts.memory)
        self.slot: int = 1 + max(node.arg[0] for node in nodes if node.op in (ops.PARAM, ops.SCALAR))
        self.number: int = 1 + max(s.arg[0] for s in parts.scratch)
        turns = sum_of(quotient(linear(axis.size) + Linear(factor - 1), factor, NOTHING))
        self.turns = turns if turns.vmin >= 1 else turns.maximum(1)
        self.turn = UOp(ops.SCALAR, dtypes.index, (), (self._fresh(), 0, int(self.turns.vmax) - 1))
        self.inside, self.begun = self._turns_inside(), index(0) < self.turn
        self.scratch: list[UOp] = []
        self.memory: list[UOp] = []
        self.kernels: list[UOp] = []
        self.results: list[UOp] = []
        """The statements that write results, which come after all others."""
        self.totals: dict[UOp, UOp] = {}
        self.scales = Scales()
        self.copies: dict[UOp, tuple[UOp, UOp]] = {}
        """Intermediates that would copy a running result, which is read instead: a load of each, and of that."""
        self.layout = {m: _Layout(m, s, factor, self._store_of(m)) for m, s in axis.strides.items()}

    def _fresh(self) -> int:
        self.slot += 1
        return self.slot - 1

    def _store_of(self, memory: UOp) -> UOp:
        return self.parts.kernels[self.parts.memory.index(memory)].src[0]

    def statements(self) -> Statements:
        parts = self.parts
        for number in range(len(parts.kernels)):
            self._statement(number)
        last = parts.shared[-1].arg[0]
        strip = UOp(ops.RANGE, dtypes.index, (self._in_loops(self.turns),), ((*last, 0), "loop"))
        return Statements(
            (*parts.shared, strip), (*parts.scalars, self.turn), tuple(self.scratch), tuple(self.memory),
            (*self.kernels, *self.results), self.totals,
        )  # fmt: skip

    def _in_loops(self, expression: UOp) -> UOp:
        """An expression of the statements in terms of the shared ranges."""
        return substitute([expression], dict(zip(self.parts.scalars, self.parts.shared, strict=True)))[0]

    def _statement(self, number: int) -> None:
        """A statement of the kernel, after those that keep its running results."""
        along = self.axis.along[number]
        done = {r: self._within(r) + self.turn * self.factor for r in along}
        self.scales.along = frozenset(r for place in done.values() for r in place.ranges)
        old = self.parts.kernels[number]
        totals = self._totals(old) if number >= len(self.parts.memory) else {}
        for node in nodes_of(old):
            if node in done:
                continue
            src = tuple([done[s] for s in node.src])
            if node.op in _ACCESSES and node.src[0] in self.layout:
                layout = self.layout[node.src[0]]
                src = (layout.memory, layout.place(node.src[1], along, done), *src[2:])
            elif node.op is ops.LOAD and node.src[0] in self.copies:
                done[node] = self._read(node)
                continue
            elif node.op is ops.REDUCE and not along.isdisjoint(node.src[1:]):
                part = node.replace(src=(src[0], *[r for s in src[1:] for r in s.ranges]))
                store = totals.get(node)
                if store is None or self.scales.is_running(src[0]):
                    done[node] = self._running(part)
                else:
                    done[node] = _load(*store.src[:2], self.begun) + part
                    self.totals[store.src[0]] = self.turn
                continue
            done[node] = node if src == node.src else node.replace(src=src)
        if number < len(self.parts.memory):
            self._intermediate(number, done[old])
        else:
            stores = [done[s] if s.src[0] in self.totals else self._at_last(done[s]) for s in old.src]
            self.results.append(old.replace(src=tuple(stores)))

    def _totals(self, kernel: UOp) -> dict[UOp, UOp]:
        """The sums that are results as they are, with their stores: the memory of these, which nobody else reads
        or writes, keeps what the sums are up to a strip."""
        nodes = nodes_of(kernel)
        read = {n.src[0] for each in self.parts.kernels for n in nodes_of(each) if n.op is ops.LOAD}
        results = [s.src[0] for each in self.parts.kernels[len(self.parts.memory) :] for s in each.src]
        found = {}
        for store in kernel.src:
            memory, _, total, *gate = store.src
            adds = total.op is ops.REDUCE and total.arg[0] is ops.ADD and total.dtype.is_float
            fits = memory not in read and results.count(memory) == 1 and total.dtype not in NARROW and not gate
            if adds and fits and 1 == sum(total in node.src for node in nodes):
                found[total] = store
        return found

    def _at_last(self, store: UOp) -> UOp:
        """The store after the last strip only."""
        last = self.turns <= self.turn + 1
        return store.replace(src=(*store.src[:3], store.src[3] & last if len(store.src) > 3 else last))

    def _read(self, load: UOp) -> UOp:
        """The running result that an intermediate would be a copy of."""
        found = read_alike(load, *self.copies[load.src[0]])
        if found is None:
            raise Refused("a running result is read in another way than it is written")
        return found

    def _within(self, r: UOp) -> UOp:
        """What is left of a range along the axis: the turns of a strip."""
        return UOp(ops.RANGE, dtypes.index, (self.inside,), ((*r.arg[0], 1), r.arg[1]))

    def _turns_inside(self) -> UOp:
        """How many turns a strip has, the last one perhaps fewer."""
        size = self.axis.size
        if size.op is ops.CONST and int(size.vmax) % self.factor == 0:
            return index(self.factor)
        step = gcd(grain(size), self.factor)
        left = sum_of(quotient(linear(size) + Linear(0, {self.turn: -self.factor}), step, NOTHING))
        return sum_of(linear(left.minimum(self.factor // step).maximum(0)).scaled(step))

    def _intermediate(self, number: int, kernel: UOp) -> None:
        """Enter the statement that fills an intermediate, whose reductions over the axis are running ones by now."""
        (store,) = kernel.src
        memory, value = store.src[0], store.src[2]
        if self.parts.memory[number] in self.layout:
            factors = self.scales.factors(value)
            if factors is None or factors.core is None:
                raise Refused("an intermediate depends on a running result in another way than by a factor")
            self.scales.stored[memory] = store.src[1], factors
            kernel = kernel.replace(src=(store.replace(src=(memory, store.src[1], factors.core, *store.src[3:])),))
        elif value.op is ops.LOAD and self.scales.is_running(value):
            self.copies[memory] = _load(memory, store.src[1]), value
            return
        elif self.scales.is_running(value):
            self.scales.running.add(memory)
        else:
            raise Refused("an intermediate without the axis would be made anew for each strip")
        self._enter(memory, self.parts.scratch[number], kernel)

    def _enter(self, memory: UOp, scratch: UOp, kernel: UOp) -> None:
        self.scratch.append(scratch.replace(arg=(scratch.arg[0], memory.arg[1][0], scratch.arg[2])))
        self.memory.append(memory)
        self.kernels.append(kernel)

    # --- running results ------------------------------------------------------------------------

    def _running(self, node: UOp) -> UOp:
        """What a reduction over the axis is up to this strip, after the statement that keeps it."""
        factors = self.scales.factors(node.src[0])
        if factors is None or factors.core is None or not node.ranges.isdisjoint(self.scales.along):
            raise Refused("a reduction depends on a running result in another way than by a factor")
        if node.arg[0] is ops.ADD and node.dtype.is_float:
            return self._sum(node, factors, factors.core)
        if node.arg[0] is ops.MAX and factors.is_plain:
            return self._maximum(node)
        raise Refused(f"no running result of this kind: {node.arg[0].name}")

    def _maximum(self, node: UOp) -> UOp:
        """A running maximum; what it was before this strip stays beside it, for the ratio of the two."""
        size, place = _dense(node.ranges)
        memory, scratch = self._scratch(node.dtype, 2 * size)
        now, before = [(self.turn + strip) % 2 * size + place for strip in (0, 1)]
        old = self.begun.where(_load(memory, before, self.begun), UOp.const(node.dtype, -inf))
        self._keep(memory, scratch, now, UOp.apply(ops.MAX, old, node))
        top = _load(memory, now)
        ratio, scratch = self._scratch(node.dtype, size)
        self._keep(ratio, scratch, place, shrinkage(old, top))
        self.scales.ratios[memory] = top, _load(ratio, place)
        return top

    def _sum(self, node: UOp, factors: Factors, core: UOp) -> UOp:
        """A running sum; what all its terms share is left for its reader."""
        size, place = _dense(node.ranges)
        dtype = _WIDER.get(node.dtype, node.dtype)
        memory, scratch = self._scratch(dtype, size)
        old = _load(memory, place, self.begun)
        if factors.ratio is not None:
            old = old * factors.ratio.cast(dtype)
        more = UOp(ops.REDUCE, dtype, (core.cast(dtype), *node.src[1:]), node.arg)
        self._keep(memory, scratch, place, old + more)
        return factors.finished(_load(memory, place)).cast(node.dtype)

    def _scratch(self, dtype: DType, size: int) -> tuple[UOp, UOp]:
        memory = UOp(ops.PARAM, dtype, (), (self._fresh(), (size,), ""))
        self.number += 1
        return memory, UOp(ops.SCRATCH, dtype, (), (self.number - 1, size, self.parts.scratch[0].arg[2]))

    def _keep(self, memory: UOp, scratch: UOp, place: UOp, value: UOp) -> None:
        """A statement that brings a running result up to date."""
        self.scales.running.add(memory)
        self._enter(memory, scratch, UOp(ops.SINK, dtypes.void, (UOp(ops.STORE, dtypes.void, (memory, place, value)),)))


def _load(memory: UOp, place: UOp, *gate: UOp) -> UOp:
    return UOp(ops.LOAD, memory.dtype, (memory, place, *gate))


def _dense(ranges: Iterable[UOp]) -> tuple[int, UOp]:
    """How many elements ranges have together, and the place of each."""
    size, form = 1, Linear(0)
    for r in reversed(by_order(ranges)):
        form = form + Linear(0, {r: size})
        size *= extent(r)
    return size, sum_of(form)


class _Layout:
    """An intermediate of which memory holds a strip."""

    def __init__(self, memory: UOp, stride: int, factor: int, store: UOp) -> None:
        self.strides: dict[int, int] = {}
        outer = sorted({f for f in linear(store.src[1]).terms.values() if f > stride})
        (size,), width, new = memory.arg[1], memory.dtype.itemsize, stride * factor
        for before, old in zip([0, *outer], outer, strict=False):
            new = new * (old // before) if before else new + (0 if new * width % _PAGE else _PADDING // width)
            self.strides[old] = new
        total = size // outer[0] * self.strides[outer[0]] if outer else new
        self.memory = memory.replace(arg=(memory.arg[0], (total,), memory.arg[2]))

    def place(self, index: UOp, along: frozenset[UOp], done: Mapping[UOp, UOp]) -> UOp:
        """Where what lay at a place lies now."""
        old = linear(index)
        form = Linear(old.constant)
        for term, factor in old.terms.items():
            part = next(r for r in done[term].ranges) if term in along else done[term]
            form = form + linear(part).scaled(self.strides.get(factor, factor))
        return sum_of(form)
