"""Compute values into scratch memory, laid out as the loops that read them want it.

Takes the kernel after its other steps, whose ranges are named in their order (`kernel/apply.py`).
`Stage` copies an operand: the loads of one memory slot become a copy nest and loads of the copy, and
gates move into the copy, so the scratch memory holds the zeros.  `Keep` writes down a value that is needed
in a reduction and again afterwards: on the way, as the effect `AFTER(value, STORE)` that `lower/loops.py`
gives to the loop of the reduction, or in a nest of its own where that has no loop.  The lanes and rows of a
value are always axes of its copy: each element has a place.  A nest varies only with the loops that are not
its axes, so it is redone when one of those turns and no more often.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from lazulite.ir import ops
from lazulite.ir.dtype import DType, by_name, dtypes
from lazulite.ir.uop import UOp, nodes_of, replace_ranges, substitute, toposort
from lazulite.kernel.gates import split_gate
from lazulite.kernel.nest import by_order, count, extent
from lazulite.kernel.steps import Keep, MatrixUnit, Name, Stage, Step, names
from lazulite.lower.copy_nest import ALIGNMENT, INNERMOST, copied, flat, in_loops, own_ranges


def stage_memory(sink: UOp, steps: Iterable[Step]) -> UOp:
    """The kernel with every `Stage` and `Keep` carried out."""
    steps = tuple(steps)
    units = [step for step in steps if isinstance(step, MatrixUnit)]
    for unit in units:
        sink = _without_move(sink, unit)
    for step in steps:
        if isinstance(step, Stage):
            sink = _stage(sink, step, units)
        elif isinstance(step, Keep):
            sink = _keep(sink, step)
        elif isinstance(step, MatrixUnit):
            sink = _multiply_tiles(sink, step)
    return sink


def _stage(sink: UOp, step: Stage, units: Sequence[MatrixUnit]) -> UOp:
    """The kernel with an operand copied; a factor of a matrix unit as this wants it."""
    nodes = nodes_of(sink)
    named = _named(nodes)
    axes = [[named[name] for name in names(axis) if name in named] for axis in step.axes]
    reduced = {r for node in nodes if node.op is ops.REDUCE for r in node.src[1:]}
    plain = list(itertools.chain(*axes))
    own_axes = [axis for axis in plain if axis not in reduced] or plain  # two operands may read one slot
    loads = [node for node in nodes if _reads(node, step.slot) and node.ranges.intersection(own_axes)]
    lanes = max([extent(r) for r in named.values() if r.arg[1] == "lane"], default=1)
    table = {}
    for number, load in enumerate(loads, _first_free(nodes)):
        unit = next((unit for unit in units if _varies(load, unit.depth)), None)
        value = _converted(load, nodes, plain) if unit is None else load
        joint = [found for axis in axes if (found := [r for r in axis if r in value.ranges])]
        more = _further_axes(value, [r for axis in joint for r in axis])
        held = value if unit is None else _as_factor(load, unit)
        table[value] = copied(held, load, [*joint, *[[r] for r in more]], number, lanes)
    return substitute([sink], table)[0]


def _varies(load: UOp, names: Sequence[Name]) -> bool:
    return any(r.arg[0][1:] in names for r in load.ranges)


def _as_factor(load: UOp, unit: MatrixUnit) -> UOp:
    """A factor in the type that a unit multiplies: a signed one that becomes unsigned is moved by half of the range."""
    if not unit.factors:
        return load
    dtype = by_name(unit.factors[_varies(load, unit.columns)])
    return load.cast(dtype) ^ (1 << (dtype.bits - 1)) if _moves(load, dtype) else load.cast(dtype)


def _moves(load: UOp, dtype: DType) -> bool:
    return load.dtype.kind == "int" and dtype.kind == "uint"


def _without_move(sink: UOp, unit: MatrixUnit) -> UOp:
    """Sums of products with the part taken off again that comes of a left factor that will be moved up.

    The sum of (x + h) * y is that of x * y and h times the sum of y, which is a product with ones.
    """
    nodes = nodes_of(sink)
    depth = {r for name, r in _named(nodes).items() if name in unit.depth}
    table = {}
    for node in nodes if unit.factors else ():
        if node.op is ops.REDUCE and depth <= set(node.src[1:]):
            left, right = _factors(node, unit)
            dtype = by_name(unit.factors[0])
            if _moves(left.src[0], dtype):
                ones = UOp.const(dtype, 1).cast(node.dtype)
                table[node] = node - node.replace(src=(ones * right, *node.src[1:])) * (1 << (dtype.bits - 1))
    return substitute([sink], table)[0]


def _factors(node: UOp, unit: MatrixUnit) -> Sequence[UOp]:
    """The factors of a sum of products, that with the columns last."""
    factors = node.src[0].src
    return factors if _varies(factors[1], unit.columns) else factors[::-1]


def _converted(load: UOp, nodes: Sequence[UOp], axes: Sequence[UOp]) -> UOp:
    """The load with what varies with it and the axes alone (casts, scales): done once for each copied element."""
    varies = load.ranges.union(axes)
    reduced = {node.src[0] for node in nodes if node.op is ops.REDUCE}
    value = load
    while True:
        users = [node for node in nodes if value in node.src]
        if len(users) != 1 or users[0] in reduced or users[0].op not in ops.ELEMENTWISE:
            return value
        if not users[0].ranges <= varies or any(node.op is ops.REDUCE for node in toposort(users[0])):
            return value
        value = users[0]


def _keep(sink: UOp, step: Keep) -> UOp:
    nodes = nodes_of(sink)
    named, known = _named(nodes), set(nodes)
    table: dict[UOp, UOp] = {}
    numbers = itertools.count(_first_free(nodes))
    for node in nodes:
        axes = node.src[1:]
        if node.op is not ops.REDUCE or any(r.arg[0][1 : 1 + len(step.range)] != step.range for r in axes):
            continue
        value = split_gate(node.arg[0], node.src[0])[1]
        again = [named.get(step.again + r.arg[0][1 + len(step.range) :]) for r in axes]
        others = [r for r in again if r is not None]
        twin = substitute([value], dict(zip(axes, others, strict=False)))[0]
        if len(others) == len(axes) and all(map(_alike, axes, others)) and twin in known and twin not in table:
            places = _all_axes(axes, value)
            if any(r.arg[1] == "loop" for r in axes):
                table[node], filled = _stored_on_the_way(node, value, places, next(numbers))
            else:
                filled = _filled(value, places, next(numbers))
                table[value] = _read_back(filled, places)
            table[twin] = _read_back(filled, _all_axes(others, twin))
    return substitute([sink], table)[0]


def _stored_on_the_way(node: UOp, value: UOp, places: Sequence[UOp], number: int) -> tuple[UOp, UOp]:
    """The reduction that also stores its value, and the scratch memory once it is done."""
    scratch = UOp(ops.SCRATCH, value.dtype, (), (number, count(places), ALIGNMENT))
    noted = UOp(ops.AFTER, value.dtype, (value, UOp(ops.STORE, dtypes.void, (scratch, flat(places), value))))
    reduction = node.replace(src=(substitute([node.src[0]], {value: noted})[0], *node.src[1:]))
    return reduction, UOp(ops.AFTER, value.dtype, (scratch, reduction))


def _multiply_tiles(sink: UOp, step: MatrixUnit) -> UOp:
    """Ranges of a reduction become those inside of an instruction; tiles of results are left in scratch memory."""
    nodes = nodes_of(sink)
    named = _named(nodes)
    rows, columns, depth = ([named[n] for n in names if n in named] for names in (step.rows, step.columns, step.depth))
    sums = [node for node in nodes if node.op is ops.REDUCE and set(depth) <= set(node.src[1:])]
    of_rows = [r for node in sums if not node.ranges.isdisjoint(rows) for r in node.ranges]
    of_columns = frozenset[UOp]().union(*[node.ranges for node in sums if node.ranges.isdisjoint(rows)])
    outermost = min((r.arg[0] for r in of_rows if r not in of_columns), default=())
    inside = {r: r.replace(arg=(r.arg[0], "unit")) for r in depth}
    axes = [*rows, *columns]
    kinds = dict.fromkeys(axes, "row") | dict.fromkeys((*rows[-1:], columns[-1]), "unit")
    vectors = columns[-1].arg[1] == "lane" and all(r.arg[1] == "row" for r in rows)
    table = {}
    for number, node in enumerate(sums, _first_free(nodes)):
        (value,) = substitute([_left_first(node, columns[-1])], inside)
        if not vectors:
            table[node] = _read_back(_filled(value, axes, number, kinds), axes)
        elif node.ranges.isdisjoint(rows):  # the same for all rows: once for a block of columns
            own = [*[r for r in by_order(node.ranges) if r.arg[0] > outermost and r not in axes], *columns]
            table[node] = _read_back(_filled(_inside_of_copies(value, number), own, number), own)
        else:
            table[node] = value
    return substitute([sink], table)[0]


def _inside_of_copies(node: UOp, number: int) -> UOp:
    """A reduction whose loops come after all that a nest of copies has."""
    loops = [r for r in node.src[1:] if r.arg[1] == "loop"]
    table = {r: r.replace(arg=((INNERMOST, number, INNERMOST + place), "loop")) for place, r in enumerate(loops)}
    (value,) = replace_ranges([node.src[0]], table)
    return node.replace(src=(value, *[table.get(r, r) for r in node.src[1:]]))


def _left_first(node: UOp, column: UOp) -> UOp:
    """The sum of products with the factor that has the columns behind the other one."""
    product = node.src[0]
    if product.op is ops.MUL and column in product.src[0].ranges:
        return node.replace(src=(product.replace(src=product.src[::-1]), *node.src[1:]))
    return node


def _named(nodes: Iterable[UOp]) -> dict[Name, UOp]:
    """The ranges of the steps by name, without those of copies."""
    return {r.arg[0][1:]: r for r in nodes if r.op is ops.RANGE and r.arg[0][0] < INNERMOST}


def _first_free(nodes: Iterable[UOp]) -> int:
    """The first number that no scratch memory has."""
    return 1 + max((node.arg[0] for node in nodes if node.op is ops.SCRATCH), default=-1)


def _reads(node: UOp, slot: int) -> bool:
    return node.op is ops.LOAD and node.src[0].op is ops.PARAM and node.src[0].arg[0] == slot


def _alike(left: UOp, right: UOp) -> bool:
    return left.src == right.src and left.arg[1] == right.arg[1]


def _all_axes(axes: Sequence[UOp], value: UOp) -> list[UOp]:
    """These axes and, inside of them, the rows and lanes of the value."""
    return [*axes, *_further_axes(value, axes)]


def _further_axes(value: UOp, axes: Sequence[UOp]) -> list[UOp]:
    """The rows and lanes of the value that are not among these axes, and loops that end where one of these says."""
    ends = [r for r in value.ranges if r not in axes and r.src[0].ranges.intersection(axes)]
    more = [r for r in value.ranges if r.arg[1] in ("row", "lane") and r not in axes]
    return by_order(ends) + sorted(more, key=lambda r: (r.arg[1] == "lane", r.arg[0]))


def _filled(value: UOp, axes: Sequence[UOp], number: int, kinds: Mapping[UOp, str] | None = None) -> UOp:
    """Scratch memory that holds a value at every turn of its axes, which are run through as ranges of these kinds."""
    scratch = UOp(ops.SCRATCH, value.dtype, (), (number, count(axes), ALIGNMENT))
    copies = own_ranges(value, axes, number, kinds or {a: "loop" if a.arg[1] == "parallel" else a.arg[1] for a in axes})
    (held,) = replace_ranges([value], dict(zip(axes, copies, strict=True)))
    store = UOp(ops.STORE, dtypes.void, (scratch, flat(copies), held))
    return UOp(ops.AFTER, value.dtype, (scratch, in_loops(store, copies)))


def _read_back(filled: UOp, axes: Sequence[UOp]) -> UOp:
    return UOp(ops.LOAD, filled.dtype, (filled, flat(axes)))
