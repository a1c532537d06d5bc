"""Apply the steps of a kernel with intermediates that concern all of its statements: `Block`, `Strip`, `Parallel`.

`KERNEL` in, `KERNEL` out.  A block of a shared range becomes a range of every statement, its rows, and an
outermost axis of all scratch memory.  What the kernel computes stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, substitute
from lazulite.kernel.borders import regroup
from lazulite.kernel.flatten import flatten
from lazulite.kernel.limits import limited
from lazulite.kernel.nest import by_order, extent
from lazulite.kernel.statements import RECENT, Statements, has_statements, join_statements, split_statements
from lazulite.kernel.steps import Block, Name, Parallel, Step, Strip, Within, name_text
from lazulite.kernel.strips import Refused, strips
from lazulite.kernel.totals import check_totals, over_rows
from lazulite.simplify.normal import normal

_PAGE, _PADDING = 4096, 64
"""Rows a multiple of a page apart would share the same few lines of the nearest cache."""


def block_statements(root: UOp, steps: Iterable[Step]) -> UOp:
    """The kernel after the steps that are not those of one statement; any other kernel as it is."""
    if not has_statements(root):
        return root
    return _blocked_kernel(merged(root), tuple([step for step in steps if not isinstance(step, Within)]))


@lru_cache(maxsize=RECENT)
def merged(root: UOp) -> UOp:
    """The kernel with ranges that statements share merged where memory is walked through as if they were one, as with
    the heads of several sequences: so many turns are there for threads."""
    return flatten(root)


@lru_cache(maxsize=RECENT)
def _blocked_kernel(root: UOp, steps: tuple[Step, ...]) -> UOp:
    return join_statements(_blocked(split_statements(root), steps))


def _blocked(parts: Statements, steps: Iterable[Step]) -> Statements:
    """The statements after the steps, their ranges regrouped."""
    whole = True
    for step in steps:
        if isinstance(step, Block):
            parts = _block(parts, step)
        elif isinstance(step, Strip):
            parts, whole = _strip(limited(parts), step), False
        elif isinstance(step, Parallel):
            parts = _parallel(parts, step)
        else:
            raise StageError("kernel.blocks", f"a {type(step).__name__.lower()} belongs to one statement: say which")
    parts = limited(parts) if whole else parts
    return parts.with_kernels([regroup(kernel) for kernel in parts.kernels])


def _strip(parts: Statements, step: Strip) -> Statements:
    """Every statement over strips of an axis, as far as a mask leaves it."""
    if not parts.fills_once:
        raise StageError("kernel.strips", f"no strips of range {name_text(step.range)}: memory is filled in turns")
    if parts.totals:
        raise StageError("kernel.strips", f"no strips of range {name_text(step.range)}: turns add to a result")
    try:
        return strips(parts, step.range, step.factor)
    except Refused as reason:
        raise StageError("kernel.strips", f"no strips of range {name_text(step.range)}: {reason}") from reason


def _parallel(parts: Statements, step: Parallel) -> Statements:
    """A shared range whose turns threads share."""
    r = _shared(parts, step.range)
    if parts.scalars[parts.shared.index(r)] in parts.totals.values():
        raise StageError("kernel.blocks", f"the turns of range {name_text(step.range)} add to what others left")
    return replace(parts, shared=tuple(substitute(parts.shared, {r: r.replace(arg=(r.arg[0], "parallel"))})))


def _shared(parts: Statements, name: Name) -> UOp:
    found = [r for r in parts.shared if name in (r.arg[0], r.arg[0][1:])]
    if not found:
        raise StageError("kernel.blocks", f"the statements share no range {name_text(name)}")
    return found[0]


def _block(parts: Statements, step: Block) -> Statements:
    """Every statement over rows of its own; the loop over blocks is the innermost of the shared ones."""
    r, factor = _shared(parts, step.range), step.factor
    name, turns, last = r.arg[0], extent(r), parts.shared[-1].arg[0]
    outer = UOp(ops.RANGE, dtypes.index, (index(-(-turns // factor)),), ((last[0], *name, 0), "loop"))
    place = parts.shared.index(r)
    old = parts.scalars[place]
    new = old.replace(arg=(old.arg[0], 0, int(outer.vmax)))
    rows = index(factor) if turns % factor == 0 else index(factor).minimum(index(turns) + new * -factor)
    row = UOp(ops.RANGE, dtypes.index, (rows,), ((*name, 1), "loop"))
    strides = {memory: _stride(memory) for memory in parts.memory}
    table = {memory: memory.replace(arg=(memory.arg[0], (factor * stride,), "")) for memory, stride in strides.items()}
    adding = {memory for memory, scalar in parts.totals.items() if scalar is old}
    check_totals(parts.kernels, adding, old)
    kernels = [_over_rows(kernel, {old: new * factor + row} | table, row, strides) for kernel in parts.kernels]
    kernels = [over_rows(kernel, adding, new, row) for kernel in kernels]
    scratch = [s.replace(arg=(s.arg[0], table[m].arg[1][0], s.arg[2]))
               for s, m in zip(parts.scratch, parts.memory, strict=True)]  # fmt: skip
    around = {s: scalar for s, scalar in zip(parts.shared, parts.scalars, strict=True) if s is not r} | {outer: new}
    shared = by_order(around)
    scalars = [around[s] for s in shared]
    return replace(
        parts, shared=tuple(shared), scalars=tuple(scalars), scratch=tuple(scratch), memory=tuple(table.values()),
        kernels=tuple(kernels), totals={**parts.totals, **dict.fromkeys(adding, new)},
    )  # fmt: skip


def _stride(memory: UOp) -> int:
    """How far the rows of a block lie apart."""
    (size,), width = memory.arg[1], memory.dtype.itemsize
    return int(size) + (0 if size * width % _PAGE else _PADDING // width)


def _over_rows(kernel: UOp, table: Mapping[UOp, UOp], row: UOp, strides: Mapping[UOp, int]) -> UOp:
    """The statement for all rows: each has a place of its own in the intermediates."""
    done = dict(table)
    for node in nodes_of(kernel):
        if done.keys().isdisjoint(node.src) or node in done:
            continue
        src = tuple([done.get(s, s) for s in node.src])
        if node.op in (ops.LOAD, ops.STORE) and node.src[0] in strides:
            src = (src[0], row * strides[node.src[0]] + src[1], *src[2:])
        done[node] = _rebuilt(node, src)
    return done.get(kernel, kernel)


def _rebuilt(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node of other sources; a division that takes rows of a block together is none any more."""
    build = normal if node.op in (ops.FLOORDIV, ops.MOD) else UOp
    return build(node.op, node.dtype, src, node.arg)
