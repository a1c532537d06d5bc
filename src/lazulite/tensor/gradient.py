"""Gradients of tensors: `gradient` for those named, `backward` for all that are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lazulite.autograd.backward import gradient
from lazulite.base.errors import GradientError, ShapeError
from lazulite.engine.effects import differentiable, with_calls
from lazulite.engine.handles import Handle, forget_history, history, live_handles, recomputed, stored
from lazulite.ir import ops
from lazulite.ir.calls import device_of
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Base, expanded


class GradientMethods(Base):
    """Reverse-mode differentiation."""

    __slots__ = ()
    _handle: Handle

    @property
    def grad(self) -> Any:
        """What `backward` left: a tensor, or None.

        >>> x = Tensor([3.0])
        >>> _ = (x * x).sum().backward()
        >>> x.grad.tolist()
        [6.0]
        """
        return self._handle.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        self._handle.grad = value

    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """The gradient of this float tensor for each target, lazily.

        `gradient` weighs the elements (needed unless there is one).  The gradient is zeros for a float target
        that this tensor does not depend on (PyTorch raises there); GradientError for a target of another type.

        >>> x = Tensor([2.0, 3.0])
        >>> x.square().sum().gradient(x)[0].tolist()
        [4.0, 6.0]
        """
        for target in targets:
            if not target.dtype.is_float:
                raise GradientError("gradient", f"{target.dtype.name} has no gradient", about={"target": target})
        _, aliases = _reached(differentiable(self.uop)[0])
        wanted = [aliases.get(t.uop, t.uop) for t in targets]
        found = _gradients(self, "gradient", wanted, gradient)
        zeros = [expanded(UOp.const(t.dtype, 0), t.shape) for t in targets]
        parts = zip(targets, found, zeros, strict=True)
        return [t._derived(zero if part is None else part) for t, part, zero in parts]

    def backward(self, gradient: Self | None = None) -> Self:
        """Add to `grad` of every live float tensor with storage that this one depends on.

        Tensors with `requires_grad=False` and what lies behind `detach` are left out.  The history kept
        for realized values on the way is dropped.  Returns this tensor, as tinygrad does (PyTorch returns nothing).

        >>> w = Tensor([1.0, 2.0], requires_grad=True)
        >>> _ = (w * 3).sum().backward()
        >>> w.grad.tolist()
        [3.0, 3.0]
        """
        nodes, aliases = _reached(differentiable(self.uop)[0])
        handles = [h for h in live_handles() if _is_target(h) and aliases.get(h.value, h.value) in nodes]
        found = _gradients(self, "backward", [aliases.get(h.value, h.value) for h in handles], gradient)
        for handle, part in zip(handles, found, strict=True):
            if part is not None:
                total = part if handle.grad is None else handle.grad.uop + part
                handle.grad = self._derived(total)
                handle.grad._device = device_of(handle.value) or self.device
        forget_history(node for node in nodes if node.op is ops.BUFFER)
        return self


def _is_target(handle: Handle) -> bool:
    if not handle.value.dtype.is_float or handle.requires_grad is False:
        return False
    return handle.storage is not None or handle.leaf or bool(handle.requires_grad)


def _gradients(tensor: GradientMethods, function: str, targets: list[UOp], upstream: Any) -> list[UOp | None]:
    if not tensor.dtype.is_float:
        raise GradientError(function, f"a float tensor is needed, got {tensor.dtype.name}", about={"tensor": tensor})
    if upstream is None and any(size != 1 for size in tensor.shape):
        raise ShapeError(
            function, f"a tensor of one element is needed, got {tensor.shape}", about={"tensor": tensor},
            hint="reduce it first, for instance with .sum() or .mean(), or pass gradient=",
        )  # fmt: skip
    if upstream is not None and not _broadcasts(upstream.shape, tensor.shape):
        raise ShapeError(
            function, f"the gradient of shape {upstream.shape} does not broadcast to {tensor.shape}",
            about={"tensor": tensor, "gradient": upstream}, hint="a gradient of the shape of the tensor",
        )  # fmt: skip
    weights = None if upstream is None else expanded(upstream.uop.cast(tensor.dtype), tensor.shape)
    value, launches = differentiable(tensor.uop)
    return with_calls(recomputed(gradient(value, targets, weights, history)), launches)


def _broadcasts(source: Sequence[int], target: Sequence[int]) -> bool:
    pairs = zip(reversed(source), reversed(target), strict=False)
    return len(source) <= len(target) and all(size in (1, wish) for size, wish in pairs)


def _reached(root: UOp) -> tuple[set[UOp], dict[UOp, UOp]]:
    """Every node below the root, through kept history but not through DETACH; and for each stored value
    whose expression is met, that expression."""
    nodes: set[UOp] = set()
    aliases: dict[UOp, UOp] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if node in nodes:
            continue
        nodes.add(node)
        buffer = stored(node)
        if buffer is not None:
            aliases[buffer] = node
        if node.op is ops.DETACH:
            continue
        past = history(node)
        pending.extend(node.src if past is None else (past,))
    return nodes, aliases
