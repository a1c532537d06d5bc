"""The node of every language: `UOp(op, dtype, src, arg)`, immutable and interned.

Equal nodes are the same object, so identity is equality, a dictionary keyed by nodes is a value
table, and common subexpressions never exist twice.  What follows from a node (its shape, bounds,
free ranges) is derived on demand by rules of other modules and kept in the node; derivation is
iterative, so a chain of any depth is safe.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.ops import Op

_Key = tuple[Op, DType, tuple["UOp", ...], Any]


class _Entry(weakref.ref["UOp"]):
    """A weak reference that knows its place in the table."""

    __slots__ = ("key",)
    key: _Key


_table: dict[_Key, _Entry] = {}
_NO_RANGES: frozenset[UOp] = frozenset()
_new = object.__new__
_EFFECTS = frozenset({ops.AFTER, ops.STORE, ops.CALL})


def _forget(entry: weakref.ref[UOp], table: dict[_Key, _Entry] = _table) -> None:
    key = entry.key  # type: ignore[attr-defined]
    if table.get(key) is entry:
        del table[key]


class UOp:
    """A node: an operation, the type of its value, its sources, and a plain value `arg`.

    Arithmetic on nodes builds nodes; a Python number beside a node takes the node's type.
    `==` is identity (use `eq`).
    """

    __slots__ = (
        "__weakref__", "_below", "_bounds", "_linear", "_shape", "arg", "dtype", "has_effects", "memory", "op",
        "origin", "ranges", "src",
    )  # fmt: skip
    op: Op
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    origin: object
    """The line of the user's program that first made this value, or None; for messages, not part of the node."""
    _shape: tuple[int, ...] | None
    _bounds: tuple[Scalar, Scalar] | None
    _below: tuple[UOp, ...] | None
    _linear: Any
    memory: Any
    """What the engine notes about where this value is in memory, or None; not part of the node."""
    has_effects: bool
    """Whether stores or calls of a hand-written graph lie in or below this node."""
    ranges: frozenset[UOp]
    """The free RANGEs: those over which this value or effect still varies."""

    def __new__(cls, op: Op, dtype: DType, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        key = (op, dtype, src, arg)
        entry = _table.get(key)
        if entry is not None:
            known = entry()
            if known is not None:
                return known
        self = _new(cls)
        self.op, self.dtype = op, dtype
        self.src, self.arg = src, arg
        self.origin = self.memory = self._shape = self._bounds = self._below = self._linear = None
        effects, free = op in _EFFECTS, _NO_RANGES
        for source in src:
            if source.has_effects:
                effects = True
            inner = source.ranges
            if inner is not free and not inner <= free:
                free = free | inner if free else inner
        self.has_effects = effects
        self.ranges = _left_free(self, free) if op in _BINDING else free
        entry = _Entry(self, _forget)
        entry.key = key
        while True:  # another thread may have entered an equal node meanwhile: the first one stays
            winner = _table.setdefault(key, entry)
            if winner is entry:
                return self
            known = winner()
            if known is not None:
                return known
            _forget(winner)

    def __reduce__(self) -> tuple[object, ...]:
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def __repr__(self) -> str:
        inner = "".join(f", {x}" for x in (self.arg,) if x is not None)
        return f"<{self.op.name} {self.dtype.name}{inner} of {len(self.src)}>"

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value; compare nodes with `is`")

    # --- construction ---------------------------------------------------------------------------

    @staticmethod
    def const(dtype: DType, value: Scalar) -> UOp:
        """A constant; the value is rounded to the type and keyed by its bits."""
        rounded = dtype.round(value)
        return UOp(ops.CONST, dtype, (), dtype.to_bits(rounded) if dtype.is_float else int(rounded))

    @staticmethod
    def apply(op: Op, *src: UOp) -> UOp:
        """An elementwise node whose type follows from its operands."""
        if op.result is None:
            raise TypeError(f"{op} needs an explicit type")
        return UOp(op, op.result(*[s.dtype for s in src]), src)

    def replace(self, **changes: Any) -> UOp:
        """The node with other `op`, `dtype`, `src` or `arg`."""
        new = changes.get
        return UOp(new("op", self.op), new("dtype", self.dtype), new("src", self.src), new("arg", self.arg))

    @property
    def value(self) -> Scalar:
        """The Python value of a CONST."""
        if self.op is not ops.CONST:
            raise TypeError(f"{self!r} is not a constant")
        if self.dtype.is_float:
            return self.dtype.from_bits(self.arg)
        return bool(self.arg) if self.dtype is dtypes.bool else self.arg

    def is_const(self, value: Scalar) -> bool:
        """Whether this is the constant `value` (by number: -0.0 is 0.0)."""
        return self.op is ops.CONST and bool(self.value == value)

    # --- derived --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a `TENSOR` value."""
        if self._shape is None:
            from lazulite.ir.infer import shape_of

            derive(self, "_shape", shape_of)
        return self._shape  # type: ignore[return-value]

    @property
    def bounds(self) -> tuple[Scalar, Scalar]:
        """The least and the greatest value that an integral node can have."""
        if self._bounds is None:
            from lazulite.ir.bounds import bounds_of

            derive(self, "_bounds", bounds_of)
        return self._bounds  # type: ignore[return-value]

    @property
    def vmin(self) -> Scalar:
        return (self._bounds or self.bounds)[0]

    @property
    def vmax(self) -> Scalar:
        return (self._bounds or self.bounds)[1]

    @property
    def base(self) -> UOp:
        """What a view is of: the value below the movements."""
        node = self
        while node.op in ops.MOVEMENT:
            node = node.src[0]
        return node

    @property
    def device(self) -> str | tuple[str, ...]:
        """The device (or the devices) of a `TENSOR` value; empty for constants."""
        from lazulite.ir.calls import device_of

        return device_of(self)

    @property
    def is_realized(self) -> bool:
        """Whether a `TENSOR` value is a view of memory, or a constant."""
        return self.base.op in (ops.BUFFER, ops.CONST)

    # --- effects of hand-written graphs -----------------------------------------------------------

    def store(self, value: UOp | Scalar) -> UOp:
        """The effect of writing a value to this memory (a storage or a view of one); `after` orders it.

        In a kernel the place is written ``memory[i]``.
        """
        if self.op is ops.LOAD:
            memory, place, *gate = self.src
            return UOp(ops.STORE, dtypes.void, (memory, place, self._operand(value), *gate))
        return UOp(ops.STORE, dtypes.void, (self, self._operand(value)))

    def after(self, *dependencies: UOp) -> UOp:
        """This value in the state of memory that the dependencies leave."""
        return UOp(ops.AFTER, self.dtype, (self, *dependencies)) if dependencies else self

    @staticmethod
    def sink(*effects: UOp, arg: Any = None) -> UOp:
        """Several effects as one node; the `arg` of a kernel is a `KernelInfo`."""
        return UOp(ops.SINK, dtypes.void, effects, arg)

    def call(self, *arguments: UOp, grad_fxn: Callable[..., Any] | None = None) -> UOp:
        """The effect of running this body (a SINK, LINEAR, COPY or PROGRAM) on arguments.

        `grad_fxn(upstream.., call)` gives the gradient, or None, for each of `call.src[1:]`; `upstream` is
        what reaches the memory that the body writes.  It is called here, once.
        """
        from lazulite.ir.calls import make_call

        return make_call(self, arguments, grad_fxn)

    def call_access(self) -> tuple[tuple[UOp, ...], tuple[UOp, ...]]:
        """The memory that a CALL reads, and the memory that it writes, as its body shows."""
        from lazulite.ir.calls import call_access

        return call_access(self)

    # --- kernels written by hand ------------------------------------------------------------------

    @staticmethod
    def range(extent: int, order: int) -> UOp:
        """A number that runs from 0 to below `extent`; the loops of a kernel nest by `order`."""
        return UOp(ops.RANGE, dtypes.index, (index(extent),), ((order,), "loop"))

    def __getitem__(self, position: UOp | int | tuple[UOp | int, ...]) -> UOp:
        """An element of a kernel's memory, one index for each axis: its value, or where to `store` one."""
        parts = position if isinstance(position, tuple) else (position,)
        if self.op is not ops.PARAM or len(parts) != len(self.shape):
            raise TypeError(f"{self!r} takes no index of {len(parts)} parts; memory takes one for each axis")
        place = index(0)
        for size, part in zip(self.shape, parts, strict=True):
            place = place * size + part
        return UOp(ops.LOAD, self.dtype, (self, place))

    __iter__ = None
    """An index makes no sequence."""

    def reduce(self, *ranges: UOp, op: Op = ops.ADD) -> UOp:
        """The values over all turns of ranges of a kernel combined, by default added up."""
        return UOp(ops.REDUCE, self.dtype, (self, *ranges), (op, ()))

    # --- arithmetic -----------------------------------------------------------------------------

    def _operand(self, other: UOp | Scalar) -> UOp:
        if isinstance(other, UOp):
            return other
        varying: UOp | None = getattr(other, "node", None)  # a `Size`
        return UOp.const(self.dtype, other) if varying is None else varying.cast(self.dtype)

    def __add__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.ADD, self, self._operand(other))

    def __radd__(self, other: Scalar) -> UOp:
        return UOp.apply(ops.ADD, self._operand(other), self)

    def __sub__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.SUB, self, self._operand(other))

    def __rsub__(self, other: Scalar) -> UOp:
        return UOp.apply(ops.SUB, self._operand(other), self)

    def __mul__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.MUL, self, self._operand(other))

    def __rmul__(self, other: Scalar) -> UOp:
        return UOp.apply(ops.MUL, self._operand(other), self)

    def __truediv__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.DIV, self, self._operand(other))

    def __rtruediv__(self, other: Scalar) -> UOp:
        return UOp.apply(ops.DIV, self._operand(other), self)

    def __floordiv__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.FLOORDIV, self, self._operand(other))

    def __mod__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.MOD, self, self._operand(other))

    def __neg__(self) -> UOp:
        return self * -1 if self.dtype is dtypes.index else UOp.apply(ops.NEG, self)

    def __lt__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.LT, self, self._operand(other))

    def __le__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.LE, self, self._operand(other))

    def __gt__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.LT, self._operand(other), self)

    def __ge__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.LE, self._operand(other), self)

    def eq(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.EQ, self, self._operand(other))

    def ne(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.NE, self, self._operand(other))

    def __and__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.AND, self, self._operand(other))

    def __or__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.OR, self, self._operand(other))

    def __xor__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.XOR, self, self._operand(other))

    def __invert__(self) -> UOp:
        return UOp.apply(ops.NOT, self)

    def __lshift__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.SHL, self, self._operand(other))

    def __rshift__(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.SHR, self, self._operand(other))

    def maximum(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.MAX, self, self._operand(other))

    def minimum(self, other: UOp | Scalar) -> UOp:
        return UOp.apply(ops.MIN, self, self._operand(other))

    def where(self, yes: UOp, no: UOp | Scalar) -> UOp:
        """`yes` where this bool is true, else `no`."""
        return UOp.apply(ops.WHERE, self, yes, yes._operand(no))

    def cast(self, dtype: DType) -> UOp:
        return self if dtype is self.dtype else UOp(ops.CAST, dtype, (self,))


def index(value: int) -> UOp:
    """An INDEX constant."""
    return UOp(ops.CONST, dtypes.index, (), value)


def live_nodes() -> int:
    """How many nodes exist now."""
    return len(_table)


def some_nodes(most: int) -> list[UOp]:
    """Some of the nodes that exist now."""
    entries = [entry() for entry in list(islice(_table.values(), most))]
    return [node for node in entries if node is not None]


_BINDING = frozenset({ops.RANGE, ops.REDUCE, ops.MMA, ops.FOR, ops.STORE})


def _left_free(node: UOp, free: frozenset[UOp]) -> frozenset[UOp]:
    """The free ranges of a node, given those of its sources.

    A range varies with what its extent varies with.  A `REDUCE` and an `MMA` close their ranges, a `FOR` its own,
    and a `STORE` ends what it writes from registers.
    """
    op, src = node.op, node.src
    if op is ops.RANGE:
        return free | {node}
    if op is ops.REDUCE:
        return free.difference(src[1:])
    if op is ops.MMA:
        return free.difference(src[3:])
    if op is ops.FOR:
        return free - {src[0]}
    return frozenset([r for r in free if r.arg[1] in ("loop", "parallel")])


# --- walking -----------------------------------------------------------------------------------


def toposort(*roots: UOp, enter: Callable[[UOp], bool] | None = None) -> list[UOp]:
    """Every node that the roots reach, sources before users, each once, in order of first visit.

    Below a node for which `enter` is false nothing is visited.
    """
    order: list[UOp] = []
    done: set[UOp] = set()
    stack: list[tuple[UOp | None, Iterator[UOp]]] = []
    user: UOp | None = None
    pending = iter(roots)
    while True:
        for node in pending:
            if node not in done:
                done.add(node)
                if node.src and (enter is None or enter(node)):
                    stack.append((user, pending))
                    user, pending = node, iter(node.src)
                    break
                order.append(node)
        else:
            if user is None:
                return order
            order.append(user)
            user, pending = stack.pop()


def nodes_of(root: UOp) -> list[UOp]:
    """The walk from a root that many passes look at one after the other, such as a kernel: it is kept with the node."""
    below = root._below
    if below is None:
        below = root._below = tuple(toposort(root)[:-1])  # without itself: a cycle would outlive its last user
    return [*below, root]


def derive(node: UOp, slot: str, rule: Callable[[UOp], object]) -> None:
    """Fill the slot of the node and of everything below that lacks it; `rule` sees filled sources."""
    for source in node.src:
        if getattr(source, slot) is None:
            break
    else:  # nearly always: nodes are made from what was asked before
        setattr(node, slot, rule(node))
        return
    pending = [node]
    while pending:
        each = pending[-1]
        missing = [source for source in each.src if getattr(source, slot) is None]
        if missing:
            pending += missing
            continue
        if getattr(each, slot) is None:
            setattr(each, slot, rule(each))
        pending.pop()


def substitute(roots: Iterable[UOp], table: Mapping[UOp, UOp]) -> list[UOp]:
    """The roots with every node of the table replaced; replacements are not searched again."""
    roots, done = list(roots), dict(table)
    if len(roots) != 1 or roots[0]._below is None:
        return rebuild(roots, done)
    for node in nodes_of(roots[0]):  # there is a walk already: only what is above the replaced nodes is looked into
        if not done.keys().isdisjoint(node.src) and node not in done:
            done[node] = UOp(node.op, node.dtype, tuple([done.get(s, s) for s in node.src]), node.arg)
    return [done.get(roots[0], roots[0])]


def rebuild(roots: Sequence[UOp], done: dict[UOp, UOp]) -> list[UOp]:
    """The roots with every node of `done` replaced; it takes in what becomes of the nodes on the way.

    So what several calls have in common is rebuilt once, as long as nothing else is entered that was met before.
    """
    stack: list[tuple[UOp | None, Iterator[UOp]]] = []
    user: UOp | None = None
    pending = iter(roots)
    while True:  # the walk of `toposort`; a node is rebuilt as soon as its sources are
        for node in pending:
            if node not in done:
                if node.src:
                    stack.append((user, pending))
                    user, pending = node, iter(node.src)
                    break
                done[node] = node
        else:
            if user is None:
                return [done[root] for root in roots]
            src = tuple([done[source] for source in user.src])
            done[user] = user if src == user.src else UOp(user.op, user.dtype, src, user.arg)
            user, pending = stack.pop()


def transform(root: UOp, which: Container[Op], change: Callable[[UOp], UOp]) -> UOp:
    """The root with every node of these operations, over what became of its sources, changed."""
    changed: dict[UOp, UOp] = {}
    for node in nodes_of(root):
        now = node
        if changed and not changed.keys().isdisjoint(node.src):
            now = UOp(node.op, node.dtype, tuple([changed.get(s, s) for s in node.src]), node.arg)
        if node.op in which:
            now = change(now)
        if now is not node:
            changed[node] = now
    return changed.get(root, root)


def replace_ranges(roots: Sequence[UOp], table: Mapping[UOp, UOp]) -> list[UOp]:
    """The roots with free RANGEs replaced; what does not vary with them is not looked at."""
    keys, top = table.keys(), set(roots)
    done: dict[UOp, UOp] = dict(table)

    def varies(node: UOp) -> bool:
        return node not in keys and (node in top or not keys.isdisjoint(node.ranges))

    for node in toposort(*roots, enter=varies):
        if varies(node):
            done[node] = UOp(node.op, node.dtype, tuple([done.get(s, s) for s in node.src]), node.arg)
    return [done.get(root, root) for root in roots]
