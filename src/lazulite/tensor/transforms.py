"""Functions made of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`.

They take a function of tensors, and of lists, tuples, dictionaries and dataclasses of them, and give another
function.  What the function holds beside its arguments is constant for it.  Writes inside it follow program
order as everywhere; those of an argument stay inside, those of other tensors are done.  The results are lazy
graphs, so that every transform applies to what another one gives.  `vmap` is in `tensor/vmap.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from lazulite.autograd.backward import gradient
from lazulite.autograd.batching import batched
from lazulite.autograd.forward import tangents
from lazulite.autograd.rules import move, spread, total
from lazulite.base.errors import ArgumentError, GradientError, ShapeError
from lazulite.engine.effects import with_calls
from lazulite.engine.handles import recomputed
from lazulite.ir import ops
from lazulite.ir.calls import device_of
from lazulite.ir.dtype import DType, dtypes, promote
from lazulite.ir.infer import Shape
from lazulite.ir.uop import UOp
from lazulite.tensor.stand_ins import Call, flat, with_floats
from lazulite.tensor.structure import Outline, filled
from lazulite.tensor.tensor import Tensor

Function = Callable[..., Any]
Argnums = int | Sequence[int]
_DIRECTION = -2
"""The slot of what stands for a direction while a Jacobian is built."""


def grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of another one, which gives a number, for some of its arguments.

    `argnums` says which: one position, or several for a tuple of gradients.  Each has the form of its argument.
    With `has_aux` the function gives a pair, and so does the result: (gradient, the second of the pair).

    >>> grad(lambda x: (x * x).sum())(Tensor([2.0, 3.0])).tolist()
    [4.0, 6.0]
    """

    def gradients(*args: Any, **kwargs: Any) -> Any:
        _, aux, parts = _with_gradient("grad", function, args, kwargs, argnums, has_aux)
        return (parts, aux) if has_aux else parts

    return _named(gradients, function)


def value_and_grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the value of another one and its gradient; see `grad`.

    With `has_aux` the first of the result is the pair that the function gives.

    >>> value, slope = value_and_grad(lambda x: x * x)(Tensor(3.0))
    >>> value.item(), slope.item()
    (9.0, 6.0)
    """

    def both(*args: Any, **kwargs: Any) -> Any:
        value, aux, parts = _with_gradient("value_and_grad", function, args, kwargs, argnums, has_aux)
        return ((value, aux) if has_aux else value), parts

    return _named(both, function)


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """What a function gives for arguments, and a function that pulls a weight of each result back to the arguments.

    The second takes one cotangent in the form of the result and gives a tuple, one gradient for each argument.
    With `has_aux` the function gives a pair, and its second is the third of the result.

    >>> value, pull_back = vjp(lambda x: x.sin(), Tensor([0.0, 0.0]))
    >>> [each.tolist() for each in pull_back(Tensor([1.0, 3.0]))]
    [[1.0, 3.0]]
    """
    call = Call("vjp", function, primals, {}, range(len(primals)), has_aux)

    def pull_back(cotangent: Any) -> tuple[Any, ...]:
        given = _matching("vjp", "cotangent", cotangent, call.form, call.outputs)
        return tuple(_pulled_back(call, [each.uop for each in given]))

    return (call.value, pull_back, call.aux) if has_aux else (call.value, pull_back)


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """What a function gives for arguments, and how that changes when these change by the tangents.

    Both are sequences with one entry an argument; a tangent has the form of its argument.  With `has_aux` the
    function gives a pair, and its second is the third of the result.

    >>> value, change = jvp(lambda x, y: x * y, (Tensor(2.0), Tensor(5.0)), (Tensor(1.0), Tensor(0.0)))
    >>> value.item(), change.item()
    (10.0, 5.0)
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list) or len(primals) != len(tangents):
        raise ArgumentError("jvp", "primals and tangents are two tuples with one entry for each argument")
    call = Call("jvp", function, primals, {}, range(len(primals)), has_aux)
    given: list[UOp] = []
    for form, primal, tangent in zip(call.outlines, primals, tangents, strict=True):
        given += [each.uop for each in _matching("jvp", "tangent", tangent, form, flat("jvp", with_floats(primal))[1])]
    change = _pushed_forward(call, dict(zip(call.variables.nodes, given, strict=True)))
    found = filled(call.form, [_tensor(call, p, each.uop) for p, each in zip(change, call.outputs, strict=True)])
    return (call.value, found, call.aux) if has_aux else (call.value, found)


def jacobian(function: Function, argnums: Argnums = 0, has_aux: bool = False, mode: str = "reverse") -> Function:
    """A function that gives all derivatives of another one: shape of the result, then shape of the argument.

    In mode "reverse" one backward pass for all elements of the result, in mode "forward" one forward pass for all
    elements of the arguments: take that of which there are fewer.  Each tensor of the result stands for the form
    of the argument (a tuple of them for several `argnums`).

    >>> jacobian(lambda x: x * x)(Tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if mode not in ("reverse", "forward"):
        raise ArgumentError("jacobian", f"a mode is 'reverse' or 'forward', got {mode!r}")
    build = _rows if mode == "reverse" else _columns

    def derivatives(*args: Any, **kwargs: Any) -> Any:
        numbers = _positions("jacobian", argnums, args)
        call = Call("jacobian", function, args, kwargs, numbers, has_aux)
        for each in call.outputs:
            _float_result("jacobian", each)
        rows = [_in_form(call, row) for row in build(call)]
        found = filled(call.form, [row[0] if isinstance(argnums, int) else tuple(row) for row in rows])
        return (found, call.aux) if has_aux else found

    return _named(derivatives, function)


jacrev = jacobian


def jacfwd(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """`jacobian` in mode "forward".

    >>> jacfwd(lambda x: x.sum())(Tensor([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    return jacobian(function, argnums, has_aux, mode="forward")


def hessian(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the second derivatives of another one: forward over reverse mode.

    >>> hessian(lambda x: (x * x * x).sum())(Tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacobian(function, argnums, has_aux), argnums, has_aux)


# --- one pass --------------------------------------------------------------------------------------


def _with_gradient(
    name: str, function: Function, args: Sequence[Any], kwargs: dict[str, Any], argnums: Argnums, has_aux: bool
) -> tuple[Any, Any, Any]:
    """The value, what came beside it, and the gradients in the form of the arguments."""
    numbers = _positions(name, argnums, args)
    call = Call(name, function, args, kwargs, numbers, has_aux)
    if not isinstance(call.value, Tensor) or math.prod(call.value.shape) != 1:
        found = call.value.shape if isinstance(call.value, Tensor) else type(call.value).__name__
        raise ShapeError(
            name, f"the function gives one number, got {found}",
            hint="reduce it first, for instance with .sum() or .mean(), or use jacobian",
        )  # fmt: skip
    _float_result(name, call.value)
    parts = _pulled_back(call, [UOp.const(call.value.dtype, 1)])
    return call.value, call.aux, parts[0] if isinstance(argnums, int) else tuple(parts)


def _pulled_back(call: Call, cotangents: Sequence[UOp]) -> list[Any]:
    """The gradient of the weighted sum of the results for each argument, in its form."""
    values, launches = call.differentiable()
    wide = promote(dtypes.float32, *[value.dtype for value in values if value.dtype.is_float])
    root = UOp.const(wide, 0)
    for value, weight in zip(values, cotangents, strict=True):
        if value.dtype.is_float:
            root = root + total(value * spread(weight, value.shape)).cast(wide)
    nodes = call.variables.nodes
    found = with_calls(recomputed(gradient(root, nodes)), launches)
    return _in_form(call, [_tensor(call, part, node) for part, node in zip(found, nodes, strict=True)])


def _pushed_forward(call: Call, given: dict[UOp, UOp]) -> list[UOp | None]:
    """The tangent of each result."""
    values, launches = call.differentiable()
    return with_calls(recomputed(tangents(values, given)), launches)


def _in_form(call: Call, tensors: Sequence[Any]) -> list[Any]:
    """One thing for each variable, in the form of the arguments."""
    found, begin = [], 0
    for form, count in zip(call.outlines, call.counts, strict=True):
        found.append(filled(form, tensors[begin : begin + count]))
        begin += count
    return found


def _tensor(call: Call, part: UOp | None, like: UOp) -> Tensor:
    """A derivative as a tensor without stand-ins; zeros where there is no path."""
    found = spread(UOp.const(like.dtype, 0), like.shape) if part is None else spread(part, like.shape)
    (node,) = call.variables.released([found])
    return Tensor(node, device=device_of(node) or None)


# --- all directions --------------------------------------------------------------------------------


def _rows(call: Call) -> list[list[Tensor]]:
    """For each result its derivatives by each variable, all elements of the result at once."""
    values, launches = call.differentiable()
    found = []
    for value in values:
        direction = _direction(value)
        parts = gradient(value, call.variables.nodes, direction)
        many = with_calls(recomputed(_in_all_directions(parts, direction)), launches)
        shapes = [(*value.shape, *node.shape) for node in call.variables.nodes]
        found.append([_shaped(call, part, node.dtype, shape)
                      for part, node, shape in zip(many, call.variables.nodes, shapes, strict=True)])  # fmt: skip
    return found


def _columns(call: Call) -> list[list[Tensor]]:
    """The same by all elements of each variable at once."""
    values, launches = call.differentiable()
    found: list[list[Tensor]] = [[] for _ in values]
    for node in call.variables.nodes:
        direction = _direction(node)
        parts = tangents(values, {node: direction})
        many = with_calls(recomputed(_in_all_directions(parts, direction)), launches)
        for row, part, value in zip(found, many, values, strict=True):
            if part is not None:
                part = move(ops.PERMUTE, part, (*range(1, len(part.shape)), 0))
            row.append(_shaped(call, part, value.dtype, (*value.shape, *node.shape)))
    return found


def _direction(like: UOp) -> UOp:
    """What stands for one direction in the space of a value."""
    return UOp(ops.PARAM, like.dtype, (), (_DIRECTION, like.shape, ""))


def _in_all_directions(parts: Sequence[UOp | None], direction: UOp) -> list[UOp | None]:
    """The values for each direction along an axis; None where they depend on none."""
    count = math.prod(direction.shape)
    numbers = UOp(ops.IOTA, dtypes.int32, (), count)
    rows = move(ops.EXPAND, move(ops.RESHAPE, numbers, (count, 1)), (count, count))
    each = rows.eq(move(ops.EXPAND, numbers, (count, count))).cast(direction.dtype)
    known = [part for part in parts if part is not None]
    found = iter(batched(known, {direction: move(ops.RESHAPE, each, (count, *direction.shape))}, count))
    return [None if part is None else next(found) for part in parts]


def _shaped(call: Call, part: UOp | None, dtype: DType, shape: Shape) -> Tensor:
    """A block of a Jacobian in its shape; zeros where there is no path."""
    nothing = UOp.const(dtype, 0)
    return _tensor(call, None if part is None else move(ops.RESHAPE, part, shape), spread(nothing, shape))


# --- arguments and results -------------------------------------------------------------------------


def _positions(name: str, argnums: Argnums, args: Sequence[Any]) -> list[int]:
    """The positions of the arguments to differentiate by, counted from the front."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for number in numbers:
        if not isinstance(number, int) or not -len(args) <= number < len(args):
            raise ArgumentError(
                name, f"argnums names argument {number!r}, and there are {len(args)}",
                rule="Positions count the arguments that are not named in the call, from 0.",
            )  # fmt: skip
    return [number % len(args) for number in numbers]


def _float_result(name: str, value: Tensor) -> None:
    if not value.dtype.is_float:
        raise GradientError(name, f"the function gives floats, got {value.dtype.name}", about={"result": value})


def _matching(name: str, kind: str, given: Any, form: Outline, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors of a tangent or cotangent, each of the shape of what it belongs to, in its type."""
    found, weights = flat(name, with_floats(given))
    if found != form:
        raise ArgumentError(name, f"a {kind} has the form of what it belongs to, got {type(given).__name__}")
    for weight, tensor in zip(weights, tensors, strict=True):
        if weight.shape not in ((), tensor.shape):
            raise ShapeError(
                name, f"a {kind} of shape {weight.shape} belongs to a value of shape {tensor.shape}",
                about={kind: weight, "value": tensor},
            )  # fmt: skip
    return [w.cast(t.dtype).expand(t.shape) for w, t in zip(weights, tensors, strict=True)]


def _named(made: Function, function: Function) -> Function:
    """The made function with the name and text of what it was made from."""
    return update_wrapper(made, function) if hasattr(function, "__name__") else made
