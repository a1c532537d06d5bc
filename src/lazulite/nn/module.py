"""`Module`: an optional base for models, with what users of PyTorch expect of one.

A model needs no base: `nn.state` finds the tensors of any object.  What derives from `Module` is called by its
`forward`, prints as a tree, and knows `parameters`, `state_dict`, `train` and `eval`.  Whether layers behave as in
training is asked of `Tensor.training()`; a module on which `train` or `eval` was called decides for all that runs
inside its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Self

from lazulite.ir.dtype import DType
from lazulite.nn.state import get_state_dict, load_state_dict, parts_of
from lazulite.tensor.tensor import Tensor


class Module:
    """A model or a part of one; derive from it and define `forward`.

    >>> class Double(Module):
    ...     def __init__(self): self.factor = Tensor([2.0])
    ...     def forward(self, x): return x * self.factor
    >>> model = Double(); model(Tensor([3.0])).tolist(), [name for name, _ in model.named_parameters()]
    ([6.0], ['factor'])
    """

    training: bool | None = None
    """What `train` and `eval` said; None leaves it to `Tensor.train()`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with nullcontext() if self.training is None else Tensor.train(self.training):
            return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module computes."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    # --- tensors ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Every tensor by its path, named as PyTorch names it."""
        return get_state_dict(self)

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> list[Tensor]:
        """`nn.state.load_state_dict`: write named values into the tensors."""
        return load_state_dict(self, state_dict, strict)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors that are learned (floats that do not say `requires_grad=False`), each once."""
        seen = set()
        for name, tensor in get_state_dict(self).items():
            if tensor.is_floating_point() and tensor.requires_grad is not False and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def parameters(self) -> list[Tensor]:
        """The tensors that are learned."""
        return [tensor for _, tensor in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors that are kept and not learned."""
        learned = {id(tensor) for tensor in self.parameters()}
        yield from ((name, t) for name, t in get_state_dict(self).items() if id(t) not in learned)

    def requires_grad_(self, wanted: bool = True) -> Self:
        """Say of all parameters whether they are learned."""
        for tensor in get_state_dict(self).values():
            if tensor.is_floating_point():
                tensor.requires_grad = wanted
        return self

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for tensor in self.parameters():
            tensor.grad = None

    def to(self, target: str | DType) -> Self:
        """All tensors on another device, or all floats in another type, in place."""
        for tensor in get_state_dict(self).values():
            if isinstance(target, DType):
                moved = tensor.cast(target) if tensor.is_floating_point() else tensor
            else:
                moved = tensor.to(target)
            tensor.replace(moved.realize() if moved is not tensor else tensor)
        return self

    # --- parts --------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The parts that are called, one level deep, with their names."""
        for name, part in parts_of(self):
            if callable(part) and not isinstance(part, Tensor | type) and hasattr(part, "__dict__"):
                yield name, part

    def children(self) -> list[Any]:
        """The parts that are called, one level deep."""
        return [part for _, part in self.named_children()]

    def modules(self) -> Iterator[Any]:
        """This module and all that it is made of."""
        yield self
        for part in self.children():
            if isinstance(part, Module):
                yield from part.modules()
            else:
                yield part

    def apply(self, function: Callable[[Any], Any]) -> Self:
        """Call a function on every part and at last on this module, as for initialising."""
        for part in self.children():
            part.apply(function) if isinstance(part, Module) else function(part)
        function(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Behave as in training from now on, with all parts."""
        for part in self.modules():
            if isinstance(part, Module):
                part.training = mode
        return self

    def eval(self) -> Self:
        """Behave as outside of training from now on, with all parts."""
        return self.train(False)

    # --- words --------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands between the brackets of the printout, beside the parts."""
        facts = [f"{k}={v!r}" for k, v in vars(self).items() if isinstance(v, bool | int | float | str | tuple)]
        return ", ".join(fact for fact in facts if not fact.startswith(("_", "training=")))

    def __repr__(self) -> str:
        lines = [f"({name}): {part!r}".replace("\n", "\n  ") for name, part in self.named_children()]
        head = type(self).__name__
        return f"{head}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{head}({self.extra_repr()})"

    def summary(self) -> str:
        """A table of all tensors: name, shape, type, elements; and how many are learned.

        >>> class Two(Module):
        ...     def __init__(self): self.w = Tensor.ones(2, 3)
        >>> print(Two().summary())
        w  (2, 3)  float32  6
        6 elements, 6 of them learned
        """
        rows = [(n, str(t.shape), t.dtype.name, f"{t.numel():,}") for n, t in get_state_dict(self).items()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
        lines = ["  ".join(part.ljust(w) for part, w in zip(row, wide, strict=True)).rstrip() for row in rows]
        total = sum(t.numel() for t in get_state_dict(self).values())
        learned = sum(t.numel() for t in self.parameters())
        return "\n".join([*lines, f"{total:,} elements, {learned:,} of them learned"])
