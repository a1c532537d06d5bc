"""What training does beside layers and optimisers: gradients clipped, averages of weights kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lazulite.nn.state import get_state_dict
from lazulite.tensor.tensor import Tensor


def clip_grad_norm_(parameters: Tensor | Sequence[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale all gradients down so that together they have at most a norm; gives what it was.

    >>> w = Tensor([1.0, 1.0]); _ = (w * Tensor([3.0, 4.0])).sum().backward(); clip_grad_norm_([w], 1.0).item()
    5.0
    >>> [round(g, 4) for g in w.grad.tolist()]
    [0.6, 0.8]
    """
    params = _with_gradient(parameters)
    if not params:
        return Tensor(0.0)
    parts = [param.grad.vector_norm(norm_type).to(params[0].device) for param in params]
    total: Tensor = parts[0].stack(*parts[1:]).vector_norm(norm_type)
    share = (max_norm / (total + 1e-6)).minimum(1.0)
    for param in params:
        param.grad = param.grad * share.cast(param.grad.dtype).to(param.device)
    return total


def clip_grad_value_(parameters: Tensor | Sequence[Tensor], clip_value: float) -> None:
    """Cut every element of the gradients to a size.

    >>> w = Tensor([1.0]); _ = (w * 9).sum().backward(); clip_grad_value_(w, 2.0); w.grad.tolist()
    [2.0]
    """
    for param in _with_gradient(parameters):
        param.grad = param.grad.clip(-clip_value, clip_value)


def _with_gradient(parameters: Tensor | Sequence[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [param for param in given if param.grad is not None]


class EMA:
    """Exponential moving averages of the tensors of a model, by name; `decay` is kept at every `update`.

    `warmup` begins with a smaller decay, (1 + n) / (10 + n) at update n, while that is less.

    >>> model = {"w": Tensor([0.0])}; ema = EMA(model, decay=0.5)
    >>> written = model["w"].assign(Tensor([4.0])); ema.update(); ema.state_dict()["w"].tolist()
    [2.0]
    """

    def __init__(self, model: Any, decay: float = 0.999, warmup: bool = False) -> None:
        self.model, self.decay, self.warmup, self.updates = model, decay, warmup, 0
        self.averages = {name: t.detach().clone() for name, t in get_state_dict(model).items()}
        for each in self.averages.values():
            each.requires_grad = False

    def update(self) -> None:
        """Move the averages a step; what is no float is copied."""
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates)) if self.warmup else self.decay
        written = []
        for name, tensor in get_state_dict(self.model).items():
            mean, value = self.averages[name], tensor.detach()
            written.append(mean.assign(mean * decay + value * (1 - decay) if value.is_floating_point() else value))
        if written:
            written[0].realize(*written[1:])

    def state_dict(self) -> dict[str, Tensor]:
        """The averages by name, as `load_state_dict` takes them."""
        return dict(self.averages)


def parameters_to_vector(parameters: Sequence[Tensor]) -> Tensor:
    """All parameters one behind the other.

    >>> parameters_to_vector([Tensor([1.0]), Tensor([[2.0, 3.0]])]).tolist()
    [1.0, 2.0, 3.0]
    """
    first, *rest = [param.flatten() for param in parameters]
    return first.cat(*rest)


def vector_to_parameters(vector: Tensor, parameters: Sequence[Tensor]) -> None:
    """Write what `parameters_to_vector` gave back.

    >>> a = Tensor([0.0, 0.0]); vector_to_parameters(Tensor([1.0, 2.0]), [a]); a.tolist()
    [1.0, 2.0]
    """
    begin = 0
    for param in parameters:
        end = begin + math.prod(param.shape)
        param.assign(vector[begin:end].reshape(param.shape).cast(param.dtype))
        begin = end
