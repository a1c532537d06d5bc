"""`vmap`: a function of one example becomes one of many.

The function runs once, on tensors that stand for any example; the graph it leaves is batched
(`autograd/batching.py`), so the many examples are as few kernels as one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

from lazulite.autograd.batching import batched, repeated
from lazulite.autograd.rules import move
from lazulite.base.errors import ArgumentError, AxisError, ShapeError
from lazulite.engine.effects import differentiable, with_calls
from lazulite.engine.handles import Handle, live_handles, pending_writes
from lazulite.engine.tracing import BATCHED, THREAD, traced, transformed
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.tensor.base import one_axis
from lazulite.tensor.stand_ins import flat
from lazulite.tensor.structure import Group, Outline, Place, filled
from lazulite.tensor.tensor import Tensor

_EXAMPLE = 1 << 24
"""The first slot of what stands for an example; each level of nesting has as many again."""


def vmap(
    function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, randomness: str = "different"
) -> Callable[..., Any]:
    """A function that does for every example along an axis what another one does for one of them.

    `in_axes` says along which axis of each argument the examples lie: one number for all, or one for each, in which
    a list, tuple or dictionary goes into an argument of that form; None is an argument that is the same for all.
    Arguments given by name have them along axis 0.  `out_axes` says the same of the results.  Draws are
    different for each example, or with `randomness="same"` the same for all.  Inside, no value may be looked
    at (a CaptureError), and a tensor from outside must not be given what depends on an example.

    >>> vmap(lambda row, n: row.sum() * n, in_axes=(0, None))(Tensor([[1, 2], [3, 4]]), 10).tolist()
    [30, 70]
    """
    if randomness not in ("different", "same"):
        raise ArgumentError("vmap", f"randomness is 'different' or 'same', got {randomness!r}")

    def vmapped(*args: Any, **kwargs: Any) -> Any:
        with transformed() as depth:
            examples = _Examples(depth)
            own, named = examples.of(args, kwargs, in_axes)
            with examples.inside(function, randomness == "different"):
                result = function(*own, **kwargs | named)
        return examples.gathered(result, out_axes)

    return update_wrapper(vmapped, function) if hasattr(function, "__name__") else vmapped


class _Examples:
    """What stands for an example in one call, and what it stands for."""

    def __init__(self, depth: int) -> None:
        self.first = _EXAMPLE * (depth + 1)
        self.lanes: dict[UOp, UOp] = {}
        """For each stand-in the examples, along the first axis."""
        self.size = -1

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for one example."""
        axes = list(in_axes) if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ArgumentError("vmap", f"in_axes has one entry for each of {len(args)} arguments, got {len(axes)}")
        own = [self._argument(value, axis) for value, axis in zip(args, axes, strict=True)]
        named = {name: self._argument(value, 0) for name, value in kwargs.items()}
        if not self.lanes:
            raise ArgumentError("vmap", "no tensor among the arguments has examples", hint="give in_axes a number")
        return own, named

    def _argument(self, value: Any, axes: Any) -> Any:
        form, tensors = flat("vmap", value)
        along = list(_axes(form, axes))
        return filled(form, [t if axis is None else self._one(t, axis) for t, axis in zip(tensors, along, strict=True)])

    def _one(self, tensor: Tensor, axis: int) -> Tensor:
        if not tensor.shape:
            raise AxisError("vmap", "a tensor of rank 0 has no axis of examples", hint="in_axes=None for this argument")
        place = one_axis("vmap", axis, len(tensor.shape))
        size = tensor.shape[place]
        if self.size not in (-1, size):
            raise ShapeError(
                "vmap", f"the arguments have different numbers of examples, {self.size} and {size}",
                about={"argument": tensor},
            )  # fmt: skip
        self.size = size
        shape = (*tensor.shape[:place], *tensor.shape[place + 1 :])
        node = UOp(ops.PARAM, tensor.dtype, (), (self.first + len(self.lanes), shape, tensor.device))
        others = [each for each in range(len(tensor.shape)) if each != place]
        self.lanes[node] = move(ops.PERMUTE, tensor.uop, (place, *others)) if place else tensor.uop
        return tensor._made(Handle(node), tensor.device)

    @contextmanager
    def inside(self, function: Callable[..., Any], different: bool) -> Iterator[None]:
        """While the function runs: no value is looked at, and each example has a number to draw by."""
        before, outside = THREAD.examples, set(live_handles())
        written = {handle: handle.value for handle in pending_writes()}
        if different:
            number = UOp(ops.PARAM, dtypes.uint64, (), (self.first + len(self.lanes), (), ""))
            self.lanes[number] = UOp(ops.IOTA, dtypes.uint64, (), self.size)
            THREAD.examples = (*before, number)
        try:
            with traced(getattr(function, "__name__", type(function).__name__), BATCHED):
                yield
        finally:
            THREAD.examples = before
            self._refuse_writes(outside, written)

    def _refuse_writes(self, outside: set[Handle], written: dict[Handle, UOp]) -> None:
        for handle in pending_writes():
            if handle not in outside or self.lanes.keys().isdisjoint(toposort(handle.value)):
                continue
            assert handle.storage is not None
            handle.value = written.get(handle, handle.storage.node())
            raise ArgumentError(
                "vmap", "a tensor from outside of the function was given a value that depends on an example",
                hint="return the value, and write it outside",
            )  # fmt: skip

    def gathered(self, result: Any, out_axes: Any) -> Any:
        """The results for all examples, these along the axes that are asked for."""
        form, tensors = flat("vmap", result)
        along = list(_axes(form, out_axes))
        values, launches = [], dict[UOp, UOp]()
        for tensor in tensors:
            value, own = differentiable(tensor.uop)
            values.append(value)
            launches |= own
        found = []
        for tensor, many, axis in zip(
            tensors, with_calls(batched(values, self.lanes, self.size), launches), along, strict=True
        ):
            if axis is not None:
                found.append(_placed(tensor, repeated(tensor.uop, self.size) if many is None else many, axis))
            elif many is None:
                found.append(tensor)
            else:
                raise ArgumentError("vmap", "out_axes is None for a result that depends on the example")
        return filled(form, found)


def _placed(tensor: Tensor, value: UOp, axis: int) -> Tensor:
    """A batched result with the examples along an axis."""
    place = one_axis("vmap", axis, len(value.shape))
    order = list(range(1, len(value.shape)))
    order.insert(place, 0)
    return tensor._made(Handle(move(ops.PERMUTE, value, tuple(order)) if place else value), tensor.device)


def _axes(form: Outline, axes: Any) -> Iterator[int | None]:
    """The axis of each tensor in a form, from a form of axes that may end further out."""
    if isinstance(form, Place):
        yield _axis(axes)
    elif isinstance(form, Group):
        parts: Sequence[Any] = [axes] * len(form.items)
        if isinstance(axes, dict):
            parts = [axes.get(name) for name in form.names]
        elif isinstance(axes, tuple | list):
            parts = axes
        if len(parts) != len(form.items):
            raise ArgumentError("vmap", f"{len(parts)} axes are given for {len(form.items)} parts of a container")
        for item, part in zip(form.items, parts, strict=True):
            yield from _axes(item, part)


def _axis(axis: Any) -> int | None:
    if axis is None:
        return None
    try:
        return operator.index(axis)
    except TypeError:
        raise ArgumentError("vmap", f"an axis is an integer or None, got {axis!r}") from None
