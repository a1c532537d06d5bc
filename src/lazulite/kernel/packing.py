"""An operand of a blocked product in the order in which tiles read it, made once instead of by every launch.

Takes a `KERNEL` and the memory slots whose contents stay as they are from launch to launch.  Where it is a good part
of the work to copy such an operand into panels, gives the kernel that reads panels from memory, and the kernel that
fills this memory.  A panel has the turns of the sum one after another, and for each the vectors of one tile; behind
the end of the operand it has zeros.  Both are ordinary kernels: an operand in panels is an index map.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from lazulite.analysis.index_map import flat
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, index, replace_ranges, substitute
from lazulite.kernel.borders import regroup
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import by_order, extent, is_fixed
from lazulite.kernel.product_tile import Tile, best_tile, panel_share
from lazulite.kernel.statements import has_statements

_WORTH, _WORTH_LITTLE = 1 / 25, 1 / 100
"""The part of a product's work that a copy has to be: memory for good is dearer than a little time, unless it is
little memory, some part of the second cache."""
_LEAST = 40_000
"""The cycles of copying below which nothing is saved that is worth another kernel."""


@dataclass(frozen=True, slots=True)
class Packing:
    """A kernel one of whose operands lies in memory in panels."""

    kernel: UOp
    slot: int
    """The slot of the operand, which is now that of its panels."""
    nbytes: int
    """The size of the panels."""
    filling: UOp
    """The kernel that fills memory 0 with the panels of memory 1."""


def packing(kernel: UOp, target: Target, still: Collection[int]) -> Packing | None:
    """The kernel with an operand in panels; None where it is better copied by every launch."""
    if not still or has_statements(kernel):
        return None
    facts = KernelFacts(regroup(kernel), target)
    if not any(load.src[0].arg[0] in still for load in facts.hot if load.src[0].op is ops.PARAM):
        return None
    tile = best_tile(facts)
    if tile is None or extent(tile.lane) <= tile.vectors * facts.lanes:
        return None
    slots = [access.src[0].arg[0] for access in facts.accesses if access.src[0].op is ops.PARAM]
    for load in facts.hot:
        slot = load.src[0].arg[0] if load.src[0].op is ops.PARAM else -1
        if slot in still and slots.count(slot) == 1 and all(map(is_fixed, load.ranges)):
            little = load.src[0].arg[1][0] * load.dtype.itemsize <= target.l2 // 2
            share = panel_share(facts, tile, load)
            if share >= (_WORTH_LITTLE if little else _WORTH) and share * tile.cost >= _LEAST:
                return _packed(facts, tile, load)
    return None


def _packed(facts: KernelFacts, tile: Tile, load: UOp) -> Packing:
    """The kernel with this load from panels as wide as the tile."""
    lane, width, param = tile.lane, tile.vectors * facts.lanes, load.src[0]
    sums = [r for r in by_order(tile.node.src[1:]) if r in load.ranges]
    others = [r for r in by_order(load.ranges) if r is not lane and r not in sums]
    panels = -(-extent(lane) // width)
    shape = (*map(extent, others), panels, *map(extent, sums), width)
    memory = param.replace(arg=(param.arg[0], (prod(shape),), *param.arg[2:]))
    place = flat(shape, (*others, lane // width, *sums, lane % width))
    (sink,) = substitute([facts.sink], {load: load.replace(src=(memory, place))})
    filling = _filling(load, (*others, lane, *sums), lane, shape)
    return Packing(sink, param.arg[0], prod(shape) * param.dtype.itemsize, filling)


def _filling(load: UOp, ranges: Sequence[UOp], lane: UOp, shape: tuple[int, ...]) -> UOp:
    """The copy of an operand into panels; `ranges` are those of their shape, of the vectors only the panels."""
    loops = [UOp(ops.RANGE, dtypes.index, (index(n),), ((place,), "loop")) if n > 1 else index(0)
             for place, n in enumerate(shape)]  # fmt: skip
    table = dict(zip(ranges, loops, strict=False))
    turn = table[lane] = table[lane] * shape[-1] + loops[-1]
    gate = [] if turn.vmax < extent(lane) else [turn < extent(lane)]
    (place,) = replace_ranges([load.src[1]], table)
    operand, memory = (load.src[0].replace(arg=(slot, (size,), *load.src[0].arg[2:]))
                       for slot, size in ((1, load.src[0].arg[1][0]), (0, prod(shape))))  # fmt: skip
    value = UOp(ops.LOAD, load.dtype, (operand, place, *gate))
    return UOp(ops.SINK, dtypes.void, (UOp(ops.STORE, dtypes.void, (memory, flat(shape, tuple(loops)), value)),))
