"""Batching: a graph for one example becomes the graph for many.

Takes and gives `TENSOR` graphs.  Some leaves have a value with one more axis, the first, along which the
examples lie; every node that depends on one gets that axis, and all others stay as they are.  A rule takes a
node, its sources with or without the axis, and the number of examples.  Invariant: entry i of a batched value
is what the graph gives for example i.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazulite.autograd.batching_kernels import batched_kernel
from lazulite.autograd.rules import move, reduced, spread
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.calls import parsed
from lazulite.ir.dtype import dtypes
from lazulite.ir.functions import Derivative
from lazulite.ir.infer import Shape
from lazulite.ir.ops import Op
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, toposort

Sources = Sequence[UOp | None]
"""For each source of a node its batched value; None where it is the same for every example."""
Rule = Callable[[UOp, Sources, int], UOp]


def batched(roots: Sequence[UOp], lanes: Mapping[UOp, UOp], size: int) -> list[UOp | None]:
    """The roots for `size` examples, where some nodes have the batched values `lanes`; None for one that
    depends on none of them."""
    known: dict[UOp, UOp | None] = dict(lanes)
    for node in toposort(*roots, enter=lambda n: n not in lanes):
        if node not in known:
            sources = [known[source] for source in node.src]
            known[node] = _batched(node, sources, size) if any(s is not None for s in sources) else None
    return [known[root] for root in roots]


def _batched(node: UOp, sources: Sources, size: int) -> UOp:
    rule = BATCHING.get(node.op)
    if rule is None:
        raise GradientError("vmap", f"{node.op.name} cannot be done for several examples at once")
    return rule(node, sources, size)


# --- axes ----------------------------------------------------------------------------------------


def beside(node: UOp, shape: Shape, size: int) -> UOp:
    """A batched value of rank 0, or of the shape, as one of the shape."""
    if node.shape == (size, *shape):
        return node
    return spread(move(ops.RESHAPE, node, (size, *[1 for _ in shape])), (size, *shape))


def repeated(node: UOp, size: int) -> UOp:
    """What is the same for every example, once for each."""
    return spread(node, (size, *node.shape))


def _whole(node: UOp, value: UOp | None, size: int) -> UOp:
    return repeated(node, size) if value is None else value


def lifted(name: str, arg: Any, size: int) -> Any:
    """The argument of a movement that leaves one more axis in front as it is."""
    if name in ("reshape", "expand"):
        return (size, *arg)
    if name == "permute":
        return (0, *[axis + 1 for axis in arg])
    if name == "pad":
        return ((0, 0), *arg)
    if name == "shrink":
        return ((0, size), *arg)
    return tuple([axis + 1 for axis in arg])


# --- rules ---------------------------------------------------------------------------------------


def _elementwise(node: UOp, sources: Sources, size: int) -> UOp:
    """Operands that are the same for all examples are repeated, those of rank 0 stand beside the others."""
    src = []
    for source, value in zip(node.src, sources, strict=True):
        if value is None:
            src.append(source if source.shape == () else repeated(source, size))
        else:
            src.append(beside(value, node.shape, size) if source.shape == () else value)
    return UOp(node.op, node.dtype, tuple(src), node.arg)


def _movement(node: UOp, sources: Sources, size: int) -> UOp:
    (value,) = sources
    assert value is not None
    if node.op is ops.EXPAND:
        inner = node.src[0].shape
        value = move(ops.RESHAPE, value, (size, *[1] * (len(node.shape) - len(inner)), *inner))
    return move(node.op, value, lifted(node.op.name, node.arg, size))


def _same(node: UOp, sources: Sources, size: int) -> UOp:
    """An op that looks at no axis."""
    (value,) = sources
    assert value is not None
    return UOp(node.op, node.dtype, (value,), node.arg)


def _reduce(node: UOp, sources: Sources, size: int) -> UOp:
    (value,), (op, axes) = sources, node.arg
    assert value is not None
    return UOp(ops.REDUCE, node.dtype, (value,), (op, tuple([axis + 1 for axis in axes])))


def _gather(node: UOp, sources: Sources, size: int) -> UOp:
    """With the same positions for all examples these become an axis behind those that are picked from."""
    x, *positions = node.src
    value, *places = sources
    if all(place is None for place in places):
        assert value is not None
        count, rank = len(positions), len(positions[0].shape)
        behind = move(ops.PERMUTE, value, (*range(1, count + 1), 0, *range(count + 1, len(value.shape))))
        picked = UOp(ops.GATHER, node.dtype, (behind, *positions))
        return move(ops.PERMUTE, picked, (rank, *range(rank), *range(rank + 1, len(picked.shape))))
    each = [_whole(position, place, size) for position, place in zip(positions, places, strict=True)]
    if value is None:
        return UOp(ops.GATHER, node.dtype, (x, *each))
    numbers = move(ops.RESHAPE, UOp(ops.IOTA, dtypes.int32, (), size), (size, *[1 for _ in positions[0].shape]))
    return UOp(ops.GATHER, node.dtype, (value, spread(numbers, each[0].shape), *each))


def _write(node: UOp, sources: Sources, size: int) -> UOp:
    previous, value = sources
    region = tuple([(name, lifted(name, arg, size)) for name, arg in node.arg])
    new = node.src[1] if value is None else value
    if node.src[1].shape or value is not None:
        view = node.src[0]
        for name, arg in node.arg:
            view = UOp(ops.OPS[name], view.dtype, (view,), arg)
        new = repeated(spread(node.src[1], view.shape), size) if value is None else beside(value, view.shape, size)
    return UOp(ops.WRITE, node.dtype, (_whole(node.src[0], previous, size), new), region)


# --- values with a gradient of their own -----------------------------------------------------------


def _launch(node: UOp, sources: Sources, size: int) -> UOp:
    """The kernel in a loop over the examples; memory that it writes is there for each."""
    run = node.arg
    values = [
        _whole(source, value, size) if i in run.writes else value
        for i, (source, value) in enumerate(zip(node.src, sources, strict=True))
    ]
    each = [value is not None for value in values]
    kernel = batched_kernel(
        parsed(run.kernel), {slot for slot, many in zip(run.slots, each, strict=True) if many}, size
    )
    flags = each + [i in run.writes for i in range(len(each))] * 2  # arguments, results, what reaches these
    text, wrt = _gradient(run.gradient, run.wrt, flags, size)
    run = run._replace(kernel=to_text(kernel, "KERNEL"), gradient=text, wrt=wrt, pure=True)
    src = tuple([source if value is None else value for source, value in zip(node.src, values, strict=True)])
    return UOp(ops.LAUNCH, node.dtype, src, run)


def _function(node: UOp, sources: Sources, size: int) -> UOp:
    value, *operands = sources
    flags = [operand is not None for operand in operands]
    text, wrt = _gradient(node.arg.gradient, node.arg.wrt, [*flags, True, True], size)
    own = [source if operand is None else operand for source, operand in zip(node.src[1:], operands, strict=True)]
    return UOp(ops.FUNCTION, node.dtype, (_whole(node.src[0], value, size), *own), Derivative(text, wrt, node.arg.mark))


def _gradient(text: str, wrt: tuple[int, ...], each: Sequence[bool], size: int) -> tuple[str, tuple[int, ...]]:
    """A traced gradient for many examples; `each` says which of its PARAMs differ from example to example.

    What is the same for all examples gets the sum of their gradients.
    """
    if not text:
        return text, wrt
    body = parsed(text)
    params = [param for param in toposort(body) if param.op is ops.PARAM and each[param.arg[0]]]
    lanes = {p: p.replace(arg=(p.arg[0], (size, *p.arg[1]), *p.arg[2:])) for p in params}
    parts = []
    for slot, part, value in zip(wrt, body.src, batched(body.src, lanes, size), strict=True):
        whole = _whole(part, value, size)
        parts.append(whole if each[slot] else move(ops.RESHAPE, reduced(ops.ADD, whole, (0,)), part.shape))
    return to_text(UOp(ops.SINK, dtypes.void, tuple(parts)), "TENSOR"), wrt


BATCHING: dict[Op, Rule] = {
    **dict.fromkeys(ops.ELEMENTWISE - ops.ONLY_LOWERED, _elementwise),
    **dict.fromkeys(ops.MOVEMENT, _movement),
    **dict.fromkeys([ops.COPY, ops.DETACH, ops.CAST, ops.BITCAST], _same),
    ops.REDUCE: _reduce,
    ops.GATHER: _gather,
    ops.WRITE: _write,
    ops.LAUNCH: _launch,
    ops.FUNCTION: _function,
}
"""The rule of every op that can depend on an example."""
