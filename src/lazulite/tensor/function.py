"""What a gradient passes, and how: `function`, `checkpoint`, `no_grad`.

`function` gives a function a gradient that its user writes; `checkpoint` one that computes the function anew,
so that nothing of it is kept for the backward pass; under `no_grad` nothing passes a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from functools import update_wrapper
from types import MethodType
from typing import Any, Self

from lazulite.autograd.backward import fitted, gradient
from lazulite.autograd.rules import zeros
from lazulite.base.errors import DTypeError, GradientError
from lazulite.engine.effects import differentiable
from lazulite.engine.tracing import THREAD, transformed
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo, device_of
from lazulite.ir.functions import function_of
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp, index, substitute, toposort
from lazulite.tensor.stand_ins import Variables, flat, unfolded
from lazulite.tensor.structure import filled
from lazulite.tensor.tensor import Tensor


class function:
    """A function of tensors whose gradient is what `grad_fxn` says.

    `grad_fxn(upstream.., call)` gets what reaches each tensor of the result, and in ``call.src[1:]`` the tensors among
    the arguments, each once; it gives a gradient, or None, for each of these.  Without a `grad_fxn` the gradient is
    that of what the function does.  As tinygrad's, it decorates functions and methods, with or without options;
    those for compiling apart (`precompile`, `precompile_backward`, `allow_implicit`) are accepted and change nothing.

    >>> @function(grad_fxn=lambda upstream, call: (upstream * 100,))
    ... def double(x):
    ...     return x * 2
    >>> x = Tensor([1.0, 2.0])
    >>> double(x).tolist(), double(x).sum().gradient(x)[0].tolist()
    ([2.0, 4.0], [100.0, 100.0])
    """

    def __new__(cls, fxn: Callable[..., Any] | None = None, **options: Any) -> Any:
        return super().__new__(cls) if fxn is not None else lambda fxn: cls(fxn, **options)

    def __init__(
        self, fxn: Callable[..., Any], *, precompile: bool = False, precompile_backward: bool = False,
        allow_implicit: bool = True, grad_fxn: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.fxn, self.grad_fxn = fxn, grad_fxn
        update_wrapper(self, fxn)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.fxn(*args, **kwargs)
        if self.grad_fxn is None:
            return result
        operands = list({tensor.uop: tensor for tensor in _arguments(args, kwargs)}.values())
        form, results = flat("function", result)
        params = [_param(tensor.uop, slot) for slot, tensor in enumerate(operands)]
        upstream = [_param(tensor.uop, _UPSTREAM - place) for place, tensor in enumerate(results)]
        parts = self._gradients(operands, params, results, upstream)
        nodes, made = [tensor.uop for tensor in operands], []
        for tensor, own in zip(results, upstream, strict=True):
            alone = _alone(parts, own, upstream)
            made.append(tensor._derived(_with_gradient(tensor.uop, nodes, params, own, alone)))
        return filled(form, made)

    def _gradients(
        self, operands: Sequence[Tensor], params: Sequence[UOp], results: Sequence[Tensor], upstream: Sequence[UOp]
    ) -> list[UOp | None]:
        """What `grad_fxn` gives, over PARAMs for the operands and for what reaches the results."""
        assert self.grad_fxn is not None
        inner = [tensor._derived(node) for tensor, node in zip(operands, params, strict=True)]
        reaching = [tensor._derived(node) for tensor, node in zip(results, upstream, strict=True)]
        given = self.grad_fxn(*reaching, _Call((self, *inner)))
        parts = [getattr(part, "uop", part) for part in (given if isinstance(given, tuple | list) else (given,))]
        if len(parts) != len(operands):
            raise GradientError(
                "function", f"grad_fxn gives one gradient or None for each of {len(operands)} tensors, got {len(parts)}"
            )
        return [None if p is None else fitted(p, param) for p, param in zip(parts, params, strict=True)]


class _Call:
    """What a `grad_fxn` gets: the tensors among the arguments stand behind the function."""

    def __init__(self, src: tuple[Any, ...]) -> None:
        self.src = src


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which nothing is kept for the backward pass but its arguments: there it is computed anew.

    That costs the time of the function once more and saves the memory of all that lies between its arguments and
    its results.  Gradients of tensors that it holds beside its arguments are right as well.

    >>> x = Tensor([1.0, 2.0])
    >>> checkpoint(lambda x: x * x * x)(x).sum().gradient(x)[0].tolist()
    [3.0, 12.0]
    """

    def kept(*args: Any, **kwargs: Any) -> Any:
        variables = Variables()
        outline, tensors = flat("checkpoint", (args, kwargs))
        with transformed() as depth:
            try:
                own, named = filled(outline, [variables.stand_in(tensor, depth) for tensor in tensors])
                form, outputs = flat("checkpoint", function(*own, **named))
                graphs = [differentiable(graph)[0] for graph in unfolded([tensor.uop for tensor in outputs])]
            finally:
                variables.close()
        return filled(form, [t._derived(_checkpointed(g, variables)) for t, g in zip(outputs, graphs, strict=True)])

    return update_wrapper(kept, function) if hasattr(function, "__name__") else kept


class no_grad(ContextDecorator):
    """``with no_grad():`` what is computed here passes no gradient; as a decorator, what a function computes.

    >>> x = Tensor([2.0])
    >>> with no_grad():
    ...     square = x * x
    >>> (square * x).gradient(x)[0].tolist()
    [4.0]
    """

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> Self:
        self._before.append(THREAD.constant)
        THREAD.constant = True
        return self

    def __exit__(self, *error: object) -> None:
        THREAD.constant = self._before.pop()


# --- gradients over operands -----------------------------------------------------------------------

_UPSTREAM = -1
"""The slot of what reaches a value while its gradient is built."""


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors among the arguments of a call; an object that is none of the containers counts as constant."""
    found: list[Tensor] = []
    for value in (*args, *kwargs.values()):
        try:
            found += flat("function", value)[1]
        except DTypeError:
            continue
    return found


def _alone(parts: Sequence[UOp | None], upstream: UOp, all_upstream: Sequence[UOp]) -> list[UOp | None]:
    """The gradients through one result: nothing reaches the others."""
    nothing = {other: zeros(other) for other in all_upstream if other is not upstream}
    found = iter(substitute([part for part in parts if part is not None], nothing))
    return [None if part is None else next(found) for part in parts]


def _param(like: UOp, slot: int) -> UOp:
    return UOp(ops.PARAM, like.dtype, (), (slot, like.shape, device_of(like)))


def _with_gradient(
    value: UOp, operands: Sequence[UOp], params: Sequence[UOp], upstream: UOp, gradients: Sequence[UOp | None]
) -> UOp:
    """The value with gradients over the PARAMs of its operands; what else they are made of become operands too."""
    known = [part for part in gradients if part is not None]
    more = _around(known, [*params, upstream])
    count = len(operands) + len(more)
    table = {node: _param(node, len(operands) + place) for place, node in enumerate(more)}
    table[upstream] = upstream.replace(arg=(count, *upstream.arg[1:]))
    found = iter(substitute(known, table))
    own = [None if part is None else next(found) for part in gradients]
    return function_of(value, [*operands, *more], [*own, *[None for _ in more]])


def _around(roots: Sequence[UOp], inner: Sequence[UOp]) -> list[UOp]:
    """The values that the roots are made of beside the inner nodes and constants: the last before they meet these."""
    reaching, constant = set(inner), set[UOp]()
    found: dict[UOp, None] = {}
    for node in toposort(*roots, enter=lambda n: n not in inner):
        if node in reaching:
            continue
        if any(source in reaching for source in node.src):
            reaching.add(node)
            found |= dict.fromkeys([s for s in node.src if s not in reaching and s not in constant])
        elif node.op in (ops.CONST, ops.IOTA) or (node.src and all(source in constant for source in node.src)):
            constant.add(node)
    return list(found | dict.fromkeys([root for root in roots if root not in reaching and root not in constant]))


def _checkpointed(graph: UOp, variables: Variables) -> UOp:
    """A result whose gradient computes it anew from its operands, once it is known what reaches it."""
    below = set(toposort(graph))
    nodes = [node for node in variables.nodes if node in below]
    operands = [*nodes, *_around([graph], nodes)]
    params = [_param(node, slot) for slot, node in enumerate(operands)]
    upstream = _param(graph, _UPSTREAM)
    late = {node: _behind(param, upstream) for node, param in zip(nodes, params, strict=False)}
    table = dict(zip(operands, params, strict=True)) | late
    (again,) = substitute([graph], table)
    parts = gradient(again, [table[node] for node in operands], upstream) if graph.dtype.is_float else []
    (value, *own) = variables.released([graph, *operands])
    return _with_gradient(value, own, params, upstream, parts or [None] * len(own))


def _behind(value: UOp, other: UOp) -> UOp:
    """The same value, in memory once the other one has been computed."""
    if 0 in value.shape or 0 in other.shape:
        return value
    first = UOp(ops.SHRINK, other.dtype, (other,), tuple([(0, 1) for _ in other.shape])) if other.shape else other
    memory, late = [
        UOp(ops.PARAM, node.dtype, (), (slot, (math.prod(node.shape),), "")) for slot, node in enumerate((value, first))
    ]
    place, seen = memory[index(0)], late[index(0)]
    kernel = UOp.sink(place.store(seen.eq(seen).where(place, place)), arg=KernelInfo("wait_for"))
    reaching = UOp(ops.PARAM, value.dtype, (), (4, value.shape, ""))
    return launch(kernel, value, first, gradient=[reaching, None])[0]
