"""Choose the schedule of a sum of products that an instruction of the target sums over several turns at once.

Takes the facts of a kernel, gives its steps; None where no instruction multiplies these types, where members of a
group would be missing, or where too much of its tiles would be empty.  The right operand is packed, as the
instruction wants it, in blocks of columns that stay in the second cache; the left one is read in place where its
rows are whole tiles of neighbours, else it is packed too.  Small integers that no matrix unit multiplies are left to
the dot products of vector instructions, for which they are widened, or moved into the range of the type that the
instruction wants, while they are packed.  A tile of results is several instructions along each axis, so that each
operand that was loaded is used again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lazulite.analysis.contraction import contraction
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.target import MatrixInstruction, Target
from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import by_order, count, extent
from lazulite.kernel.steps import MatrixUnit, Name, Parallel, Reorder, Split, Stage, Step, Tile, Vectorize

_TOGETHER, _MOST_ROWS = 2, 14
"""Tiles of results along each axis; for vectors, how many there are along the columns, and the most rows."""
_SMALL = frozenset({dtypes.int8, dtypes.uint8, dtypes.int16})
"""Types whose values have a place in int16."""
_LEAST_FILLED = 0.25
"""How much of the tiles must be in use: a unit is several times as fast as vectors, not more."""
_LEAST_WORK, _SHARED_WORK = 1 << 17, 1 << 24
"""Multiplications below which the unit's set-up and the copies are not worth it, and those below which other threads
are not (about 50 microseconds of one)."""
_BLOCKS, _LEAST_BLOCK = 8, 64
"""Into how many blocks of columns the result is cut, so that threads have something to share, and the fewest columns
of one."""


@dataclass(frozen=True, slots=True)
class _Product:
    """A sum of products and the ranges that become rows, columns and depth of tiles."""

    node: UOp
    left: UOp
    right: UOp
    row: UOp
    column: UOp
    depth: UOp
    unit: MatrixInstruction
    rows_together: int

    @property
    def in_vectors(self) -> bool:
        """Whether results are vectors, and not tiles of a matrix unit."""
        return self.unit.rows == 1


def choose_matrix_unit(facts: KernelFacts) -> tuple[Step, ...] | None:
    """The steps for a kernel whose one reduction a matrix unit computes."""
    if len(facts.reductions) != 1:
        return None
    product = _find_product(facts, facts.reductions[0])
    return None if product is None or not _is_worth_it(product) else _steps(facts, product)


def _find_product(facts: KernelFacts, node: UOp) -> _Product | None:
    found = contraction(node)
    if found is None or found.gate is not None or node.src[0] is not found.product:
        return None
    loads = [factor.src[0] for factor in found.factors if factor.op is ops.CAST and factor.src[0].op is ops.LOAD]
    if len(loads) != 2:
        return None
    column = next((r for r in facts.outer if r in found.left | found.right and _is_beside(facts, r)), None)
    if column is None:
        return None
    left, right = loads if column in loads[1].ranges else loads[::-1]
    rows = [r for r in by_order(left.ranges - right.ranges) if r not in found.reduction]
    shared = [r for r in by_order(found.reduction) if r in left.ranges and r in right.ranges]
    if not rows or not shared or any(load.src[0].op is not ops.PARAM for load in (left, right)):
        return None
    row = max(rows, key=extent)
    for unit in _instructions(facts.target, left, right, node):
        if _is_turned(unit, left, right):
            unit = replace(unit, left=unit.right, right=unit.left)
        depth = max(shared, key=lambda r: (min(extent(r), unit.depth), facts.stride(left, r) == 1, extent(r)))
        walked = ((left, row), (left, depth), (right, column), (right, depth))
        if extent(depth) % unit.group == 0 and all(facts.stride(load, r) is not None for load, r in walked):
            return _Product(node, left, right, row, column, depth, unit, _rows_together(facts.target, row, unit))
    return None


def _instructions(target: Target, left: UOp, right: UOp, node: UOp) -> list[MatrixInstruction]:
    """Those that multiply these types, the best one first."""
    found = [unit for unit in target.matrix if unit.types == (left.dtype, right.dtype, node.dtype)]
    types = {left.dtype, right.dtype}
    if node.dtype not in (dtypes.int32, dtypes.uint32) or not types <= _SMALL:
        return found
    return [*found, *[unit for unit in target.dot_products if _takes(unit, types)]]


def _takes(unit: MatrixInstruction, types: set[DType]) -> bool:
    """Whether a dot product is one of factors of these types: as they are, widened, or one of two signed ones moved."""
    if unit.left is unit.right:
        return all(dtype is unit.left or dtype.bits < unit.left.bits for dtype in types)
    return types <= {unit.left, unit.right} and unit.right in types


def _is_turned(unit: MatrixInstruction, left: UOp, right: UOp) -> bool:
    """Whether the factors of an instruction change places, which for one row are the same."""
    return unit.rows == 1 and left.dtype is unit.right is not unit.left and right.dtype is unit.left


def _rows_together(target: Target, row: UOp, unit: MatrixInstruction) -> int:
    """How many tiles of results there are along the rows; of vectors, as many as registers hold, in equal panels."""
    if unit.rows > 1:
        return _TOGETHER
    most = min(_MOST_ROWS, (target.registers - 1) // _TOGETHER - 1)
    return -(-extent(row) // -(-extent(row) // most))


def _is_beside(facts: KernelFacts, r: UOp) -> bool:
    """Whether turns of the range write neighbours."""
    return all(facts.stride(access, r) == 1 for access in facts.accesses if access.op is ops.STORE)


def _is_worth_it(product: _Product) -> bool:
    unit, filled = product.unit, 1.0
    for r, size in ((product.row, unit.rows), (product.column, unit.columns), (product.depth, unit.depth)):
        filled *= extent(r) / _whole(extent(r), size)
    return filled >= _LEAST_FILLED and count(product.node.src[0].ranges) >= _LEAST_WORK


def _whole(extent: int, size: int) -> int:
    """The least multiple of a size that holds an extent."""
    return -(-extent // size) * size


# --- steps --------------------------------------------------------------------------------------


def _steps(facts: KernelFacts, product: _Product) -> tuple[Step, ...]:
    unit, k = product.unit, product.depth.arg[0]
    steps: list[Step] = [Split(k, unit.group), Split((*k, 0), unit.depth // unit.group)]
    groups = (*k, 0, 1), (*k, 1)
    blocks, column = _cut(steps, product.column, unit.columns, _TOGETHER, _block(facts, product))
    panels, row = _cut(steps, product.row, unit.rows, product.rows_together)
    steps += [Tile(column[0]), Vectorize(column[1])]
    if product.in_vectors:
        steps.append(Tile(row[0]))
    others = [(r.arg[0], extent(r)) for r in facts.outer if r not in (product.row, product.column)]
    loops = [*others, *blocks[:-1], *panels, blocks[-1]]
    steps.append(Reorder((*[name for name, _ in loops], *row, *column)))
    if not _reads_in_place(facts, product):
        steps.append(Stage(product.left.src[0].arg[0], (*_sums(product, product.left), *row, *groups)))
    packed = (blocks[-1][0], *_sums(product, product.right), column[0], groups[0], column[1], groups[1])
    steps.append(Stage(product.right.src[0].arg[0], packed))
    steps.append(MatrixUnit(row, column, groups, (unit.left.name, unit.right.name) if product.in_vectors else ()))
    if count(product.node.src[0].ranges) >= _SHARED_WORK:
        steps += [Parallel(name) for name, turns in loops if turns > 1][:1]
    return tuple(steps)


_Loop = tuple[Name, int]
"""The name of a loop, and how many turns it has."""


def _cut(steps: list[Step], r: UOp, size: int, most: int, block: int = 0) -> tuple[list[_Loop], tuple[Name, Name]]:
    """Cut a range into blocks (0: none), tiles, and what is inside of one.

    Gives the loops over blocks and over tiles that are worked on together, each with its turns; and the ranges of
    these tiles and of the inside.
    """
    name, turns, loops = r.arg[0], extent(r), list[_Loop]()
    if block:
        steps.append(Split(name, block))
        loops, name, turns = [((*name, 0), -(-turns // block))], (*name, 1), block
    together = min(most, -(-turns // size))
    steps += [Split(name, together * size), Split((*name, 1), size)]
    loops.append(((*name, 0), -(-turns // (together * size))))
    return loops, ((*name, 1, 0), (*name, 1, 1))


def _block(facts: KernelFacts, product: _Product) -> int:
    """How many columns are packed at a time; 0 for all."""
    columns, step = extent(product.column), _TOGETHER * product.unit.columns
    bytes_each = count(r for r in product.node.src[1:] if r in product.right.ranges) * product.unit.right.itemsize
    fitting = facts.target.l2 // 2 // bytes_each // step * step
    blocks = _BLOCKS if _reads_in_place(facts, product) else _BLOCKS // 2  # the left one is packed for each
    even = _whole(max(-(-columns // blocks), _LEAST_BLOCK), step)
    block = max(step, min(fitting, even))
    return block if block < columns else 0


def _sums(product: _Product, load: UOp) -> list[Name]:
    """The loops of the sum over which an operand varies, the blocks of its depth innermost."""
    others = [r.arg[0] for r in by_order(product.node.src[1:]) if r is not product.depth and r in load.ranges]
    return [*others, (*product.depth.arg[0], 0, 0)]


def _reads_in_place(facts: KernelFacts, product: _Product) -> bool:
    """Whether every tile of the left operand lies in memory as the unit reads it."""
    unit, load = product.unit, product.left
    if load.dtype is not unit.left:
        return False
    rows = extent(product.row)
    whole = rows % (min(product.rows_together, -(-rows // unit.rows)) * unit.rows) == 0
    return whole and extent(product.depth) % unit.depth == 0 and len(load.src) == 2 and (
        facts.stride(load, product.depth) == 1)  # fmt: skip
