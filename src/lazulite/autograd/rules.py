"""The gradient of each operation, one rule an op.

A rule takes `(upstream, result, *operands)`: the gradient of the target with respect to the node, the
node itself and its sources.  It gives the gradient for the operand, a tuple of them where there are
several, and None for an operand through which nothing flows.  Everything is a `TENSOR` node, so the
gradient of a gradient needs no further rule.  `upstream` has the shape of `result`; a gradient for an
operand of rank 0 may have the shape of `result` (`backward` sums it).  Rules use `result` where that
spares a computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lazulite.autograd.scatter import scattered
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.calls import device_of, parsed
from lazulite.ir.dtype import dtypes
from lazulite.ir.infer import Shape
from lazulite.ir.ops import Op
from lazulite.ir.size import most
from lazulite.ir.uop import UOp, substitute, toposort

Gradients = UOp | tuple[UOp | None, ...] | None
Rule = Callable[..., Gradients]

GRADIENTS: dict[Op, Rule] = {}
"""The rule of every op that a gradient can meet; an op without one raises there."""


def gradient(*operations: Op) -> Callable[[Rule], Rule]:
    """Enter a function as the rule of these operations."""

    def enter(rule: Rule) -> Rule:
        GRADIENTS.update(dict.fromkeys(operations, rule))
        return rule

    return enter


# --- building blocks ---------------------------------------------------------------------------


def move(op: Op, node: UOp, arg: Any) -> UOp:
    """A movement node; none where it would change nothing."""
    moved = UOp(op, node.dtype, (node,), arg)
    return node if op in (ops.RESHAPE, ops.EXPAND) and moved.shape == node.shape else moved


def spread(node: UOp, shape: Shape) -> UOp:
    """The value broadcast to the shape."""
    return move(ops.EXPAND, node, shape)


def zeros(like: UOp) -> UOp:
    """Zeros with the type and shape of a node."""
    return spread(UOp.const(like.dtype, 0), like.shape)


def reduced(op: Op, node: UOp, axes: tuple[int, ...]) -> UOp:
    """The reduction over the axes, which stay with size 1."""
    return UOp(ops.REDUCE, node.dtype, (node,), (op, axes)) if axes else node


def total(node: UOp) -> UOp:
    """The sum of all elements, with rank 0."""
    return move(ops.RESHAPE, reduced(ops.ADD, node, tuple(range(len(node.shape)))), ())


def _call(op: Op, x: UOp) -> UOp:
    return UOp.apply(op, x)


# --- arithmetic --------------------------------------------------------------------------------


@gradient(ops.ADD)
def add_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    return upstream, upstream


@gradient(ops.SUB)
def sub_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    return upstream, -upstream


@gradient(ops.NEG)
def neg_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return -upstream


@gradient(ops.MUL)
def mul_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    return upstream * y, upstream * x


@gradient(ops.DIV)
def div_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    share = upstream / y
    return share, -(share * result)


@gradient(ops.FMA)
def fma_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp, z: UOp) -> Gradients:
    return upstream * y, upstream * x, upstream


@gradient(ops.MAX)
def max_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    """Equal operands get half each."""
    half = x.eq(y).where(upstream * 0.5, zeros(upstream))
    return (x > y).where(upstream, half), (y > x).where(upstream, half)


@gradient(ops.MIN)
def min_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    """Equal operands get half each."""
    half = x.eq(y).where(upstream * 0.5, zeros(upstream))
    return (x < y).where(upstream, half), (y < x).where(upstream, half)


@gradient(ops.WHERE)
def where_gradient(upstream: UOp, result: UOp, gate: UOp, x: UOp, y: UOp) -> Gradients:
    nothing = zeros(upstream)
    return None, gate.where(upstream, nothing), gate.where(nothing, upstream)


@gradient(ops.CAST)
def cast_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream.cast(x.dtype) if x.dtype.is_float else None


@gradient(ops.FLOOR, ops.TRUNC, ops.ROUND)
def step_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    """Flat almost everywhere: a gradient of zeros, not none."""
    return zeros(x)


@gradient(ops.BITCAST, ops.DETACH)
def no_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    """Nothing passes; bits read anew have no derivative."""
    return None


# --- functions ---------------------------------------------------------------------------------


@gradient(ops.SQRT)
def sqrt_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream / (result * 2)


@gradient(ops.EXP)
def exp_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream * result


@gradient(ops.EXP2)
def exp2_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream * (result * math.log(2))


@gradient(ops.LOG)
def log_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream / x


@gradient(ops.LOG2)
def log2_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream / (x * math.log(2))


@gradient(ops.SIN)
def sin_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream * _call(ops.COS, x)


@gradient(ops.COS)
def cos_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return -(upstream * _call(ops.SIN, x))


@gradient(ops.TAN)
def tan_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream * (result * result + 1)


@gradient(ops.TANH)
def tanh_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream * (1 - result * result)


@gradient(ops.ERF)
def erf_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return upstream * (_call(ops.EXP, -(x * x)) * (2 / math.sqrt(math.pi)))


@gradient(ops.POW)
def pow_gradient(upstream: UOp, result: UOp, x: UOp, y: UOp) -> Gradients:
    """x**0 is flat in x, and 0**y with y not below 0 is flat in y (also at y = 0)."""
    nothing = zeros(upstream)
    lower = UOp.const(y.dtype, y.value - 1) if y.op is ops.CONST else y - 1
    for_base = y.eq(0).where(nothing, upstream * (y * UOp.apply(ops.POW, x, lower)))
    flat = x.eq(0) & (y >= 0)
    return for_base, flat.where(nothing, upstream * (result * _call(ops.LOG, x)))


# --- movement: each is the adjoint of the other way ----------------------------------------------


@gradient(ops.RESHAPE)
def reshape_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return move(ops.RESHAPE, upstream, x.shape)


@gradient(ops.PERMUTE)
def permute_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    order = result.arg
    return move(ops.PERMUTE, upstream, tuple(sorted(range(len(order)), key=order.__getitem__)))


@gradient(ops.EXPAND)
def expand_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    """What was repeated is summed."""
    added = len(result.shape) - len(x.shape)
    before = (1,) * added + x.shape
    repeated = tuple([axis for axis, size in enumerate(before) if axis < added or size != result.shape[axis]])
    return move(ops.RESHAPE, reduced(ops.ADD, upstream, repeated), x.shape)


@gradient(ops.PAD)
def pad_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    box = tuple([(before, before + size) for (before, _), size in zip(result.arg, x.shape, strict=True)])
    return move(ops.SHRINK, upstream, box)


@gradient(ops.SHRINK)
def shrink_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    around = tuple([(begin, size - end) for (begin, end), size in zip(result.arg, x.shape, strict=True)])
    return move(ops.PAD, upstream, around)


@gradient(ops.FLIP)
def flip_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    return move(ops.FLIP, upstream, result.arg)


@gradient(ops.WRITE)
def write_gradient(upstream: UOp, result: UOp, previous: UOp, value: UOp) -> Gradients:
    """What was overwritten gets nothing; the value gets the view of the upstream."""
    view = upstream
    for name, arg in result.arg:
        view = UOp(ops.OPS[name], view.dtype, (view,), arg)
    return UOp(ops.WRITE, upstream.dtype, (upstream, zeros(view)), result.arg), view


@gradient(ops.COPY)
def copy_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    """The gradient travels back to where the value came from."""
    device = device_of(x)
    return upstream if device in ("", result.arg) else UOp(ops.COPY, upstream.dtype, (upstream,), device)


@gradient(ops.GATHER)
def gather_gradient(upstream: UOp, result: UOp, x: UOp, *positions: UOp) -> Gradients:
    """What was picked several times gets the sum of its gradients."""
    share = scattered(ops.ADD, zeros(x), positions, upstream)
    return share, *[None for _ in positions]


# --- kernels written by hand ---------------------------------------------------------------------


@gradient(ops.LAUNCH)
def launch_gradient(upstream: UOp, result: UOp, *arguments: UOp) -> Gradients:
    """The gradient that was traced when the call was built; what reaches its other results comes by theirs."""
    run = result.arg
    if not run.gradient:
        raise GradientError(
            "gradient", "the result depends on the target through a kernel without a gradient",
            hint="give the call a grad_fxn, or detach() its result",
        )  # fmt: skip
    body = parsed(run.gradient)
    table = {param: _meant(param, upstream, result) for param in toposort(body) if param.op is ops.PARAM}
    parts: list[UOp | None] = [None] * len(arguments)
    for slot, value in zip(run.wrt, substitute(body.src, table), strict=True):
        parts[slot] = move(ops.RESHAPE, value, arguments[slot].shape) if value.shape else value
    return tuple(parts)


def _meant(param: UOp, upstream: UOp, result: UOp) -> UOp:
    """What a PARAM of a traced gradient stands for: an argument, a result, or the gradient of a result."""
    kind, i = divmod(param.arg[0], len(result.src))
    if kind == 0:
        meant = result.src[i]
    elif kind == 1:
        meant = UOp(ops.LAUNCH, result.src[i].dtype, result.src, result.arg._replace(result=i))
    else:
        meant = upstream if i == result.arg.result else zeros(result.src[i])
    return move(ops.RESHAPE, meant, param.shape)


@gradient(ops.FUNCTION)
def function_gradient(upstream: UOp, result: UOp, value: UOp, *operands: UOp) -> Gradients:
    """Nothing for the value; for the operands what the function's own gradient says, which itself has one."""
    derivative = result.arg
    parts: list[UOp | None] = [None] * len(result.src)
    if derivative.gradient:
        body = parsed(derivative.gradient)
        meant = (*operands, upstream, result)
        table = {param: meant[param.arg[0]] for param in toposort(body) if param.op is ops.PARAM}
        for slot, part in zip(derivative.wrt, substitute(body.src, table), strict=True):
            parts[1 + slot] = part
    return tuple(parts)


# --- reductions --------------------------------------------------------------------------------


@gradient(ops.REDUCE)
def reduce_gradient(upstream: UOp, result: UOp, x: UOp) -> Gradients:
    op, axes = result.arg
    if op is ops.ADD:
        return spread(upstream, x.shape)
    return _product_gradient(upstream, x, axes) if op is ops.MUL else _extremum_gradient(upstream, result, x, axes)


def _extremum_gradient(upstream: UOp, result: UOp, x: UOp, axes: tuple[int, ...]) -> UOp:
    """Ties share equally.  They are counted in at least float32: a half cannot count to 70,000."""
    wide = dtypes.promote(x.dtype, dtypes.float32)
    chosen = x.eq(spread(result, x.shape))
    count = reduced(ops.ADD, chosen.cast(wide), axes)
    share = (upstream.cast(wide) / count).cast(x.dtype)
    return chosen.where(spread(share, x.shape), zeros(x))


def _product_gradient(upstream: UOp, x: UOp, axes: tuple[int, ...]) -> UOp:
    """The product of all other elements, by a tree without division: right for zeros, in every order.

    The factors, filled up with ones to a power of two, are multiplied half by half upwards; on the
    way down each half gets what came from above times the other half.
    """
    order = tuple([axis for axis in range(len(x.shape)) if axis not in axes]) + axes
    moved = move(ops.PERMUTE, x, order)
    kept = moved.shape[: len(order) - len(axes)]
    size = math.prod(x.shape[axis] for axis in axes)
    levels = [_filled_with_ones(move(ops.RESHAPE, moved, (*kept, size)), 1 << (most(size) - 1).bit_length())]
    while levels[-1].shape[-1] > 1:
        first, second = _halves(levels[-1])
        levels.append(first * second)
    share = move(ops.RESHAPE, upstream, (*kept, 1))
    for level in reversed(levels[:-1]):
        first, second = _halves(level)
        half = first.shape[-1]
        share = _padded(share * second, 0, half) + _padded(share * first, half, 0)
    share = move(ops.RESHAPE, _cut(share, 0, size), moved.shape)
    return move(ops.PERMUTE, share, tuple(sorted(range(len(order)), key=order.__getitem__)))


def _filled_with_ones(node: UOp, size: int) -> UOp:
    missing = size - node.shape[-1]
    if not missing:
        return node
    inside = _padded(spread(UOp.const(dtypes.bool, True), node.shape), 0, missing)
    return inside.where(_padded(node, 0, missing), 1)


def _halves(node: UOp) -> tuple[UOp, UOp]:
    size = node.shape[-1]
    return _cut(node, 0, size // 2), _cut(node, size // 2, size)


def _cut(node: UOp, begin: int, end: int) -> UOp:
    return move(ops.SHRINK, node, (*[(0, size) for size in node.shape[:-1]], (begin, end)))


def _padded(node: UOp, before: int, after: int) -> UOp:
    return move(ops.PAD, node, (*[(0, 0) for _ in node.shape[:-1]], (before, after)))
