"""Optimisers: objects that change parameters by their gradients.

`step` writes every parameter that has a gradient, and the optimiser's own state, in one realize.  The
writes are detached: no gradient flows through an update.  Step sizes enter the program as numbers that
change without compiling anything.  What changes by itself from step to step lies in tensors, so that a
captured step does what a plain one does, and a state dictionary holds all that training goes on from.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.base.errors import DTypeError, GradientError
from lazulite.tensor.tensor import Tensor


class Optimizer:
    """What all optimisers share: the parameters, `zero_grad` and `step`.

    Parameters are named once each.  A parameter without a gradient is left as it is; GradientError where
    none has one.  Gradients are wanted for every parameter unless it says `requires_grad=False`.
    """

    def __init__(self, params: Sequence[Tensor], lr: float) -> None:
        self.params = list({id(param): param for param in params if param.requires_grad is not False}.values())
        self.lr = lr
        for param in self.params:
            if not param.is_floating_point():
                raise DTypeError(
                    type(self).__name__, f"parameters are floats, got {param.dtype.name}", about={"parameter": param}
                )
            param.requires_grad = True
        if self.params:
            self.params[0].realize(*self.params[1:])

    def zero_grad(self) -> None:
        """Forget all gradients.

        >>> w = Tensor([1.0]); opt = SGD([w]); _ = w.sum().backward(); opt.zero_grad(); print(w.grad)
        None
        """
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Change the parameters by their gradients.

        >>> w = Tensor([1.0]); opt = SGD([w], lr=0.5); _ = w.sum().backward(); opt.step(); w.tolist()
        [0.5]
        """
        written = self.schedule_step()
        written[0].realize(*written[1:])

    def schedule_step(self) -> list[Tensor]:
        """The assignments of one step, not realized: every tensor that was written."""
        active = [number for number, param in enumerate(self.params) if param.grad is not None]
        if not active:
            raise GradientError(
                f"{type(self).__name__}.step", "no parameter has a gradient", hint="call loss.backward() before step()"
            )
        written, shared = self._begin_step()
        for number in active:
            written += self._update(number, self.params[number], _gradient(self.params[number]), *shared)
        return written

    def _begin_step(self) -> tuple[list[Tensor], list[Tensor]]:
        """Write the state that all parameters share; the tensors written, and what `_update` needs of it."""
        return [], []

    def _update(self, number: int, param: Tensor, grad: Tensor, *shared: Tensor) -> list[Tensor]:
        """Write one parameter and its state; the tensors written."""
        raise NotImplementedError

    def _state(self) -> list[Tensor]:
        """A zero for each element of each parameter."""
        zeros = [param.zeros_like() for param in self.params]
        for each in zeros:
            each.requires_grad = False
        return zeros


def _gradient(param: Tensor) -> Tensor:
    grad: Tensor = param.grad
    return grad.detach().cast(param.dtype)


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Nesterov's if asked) and weight decay, as torch does it.

    >>> w = Tensor([1.0]); opt = SGD([w], lr=0.1, momentum=0.9); _ = w.square().sum().backward(); opt.step()
    >>> round(w.item(), 4)
    0.8
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr)
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.b = self._state() if momentum else []

    def _update(self, number: int, param: Tensor, grad: Tensor, *shared: Tensor) -> list[Tensor]:
        value = param.detach()
        if self.weight_decay:
            grad = grad + value * self.weight_decay
        if not self.momentum:
            return [param.assign(value - grad * self.lr)]
        velocity = self.b[number].assign(self.b[number] * self.momentum + grad)
        grad = grad + velocity * self.momentum if self.nesterov else velocity
        return [param.assign(value - grad * self.lr), velocity]


class AdamW(Optimizer):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter).

    >>> w = Tensor([1.0]); opt = AdamW([w], lr=0.1, weight_decay=0.0); _ = w.square().sum().backward(); opt.step()
    >>> round(w.item(), 4)
    0.9
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:  # fmt: skip
        super().__init__(params, lr)
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        self.b1_t, self.b2_t = self._one(), self._one()
        """The decay rates to the power of the number of steps: tensors, as the state of a captured step has to be."""
        self.m, self.v = self._state(), self._state()

    def _one(self) -> Tensor:
        device = self.params[0].device if self.params else None
        return Tensor(1.0, dtype="float64", device=device, requires_grad=False)

    def _begin_step(self) -> tuple[list[Tensor], list[Tensor]]:
        """The corrections for the zeros that the means begin with are put into the two numbers of the step."""
        b1_t, b2_t = self.b1_t.assign(self.b1_t * self.b1), self.b2_t.assign(self.b2_t * self.b2)
        begun = (1 - b2_t).sqrt()
        return [b1_t, b2_t], [begun * self.lr / (1 - b1_t), begun * self.eps]

    def _update(self, number: int, param: Tensor, grad: Tensor, *shared: Tensor) -> list[Tensor]:
        size, eps = [each.cast(param.dtype).to(param.device) for each in shared]
        m = self.m[number].assign(self.m[number] * self.b1 + grad * (1 - self.b1))
        v = self.v[number].assign(self.v[number] * self.b2 + grad * grad * (1 - self.b2))
        value = param.detach()
        if self.weight_decay:
            value = value * (1 - self.lr * self.weight_decay)
        return [param.assign(value - m * size / (v.sqrt() + eps)), m, v]


class Adam(AdamW):
    """Adam (Kingma and Ba).

    >>> w = Tensor([1.0]); opt = Adam([w], lr=0.1); _ = w.square().sum().backward(); opt.step(); round(w.item(), 4)
    0.9
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay=0.0)


class LARS(Optimizer):
    """SGD whose step of each parameter is scaled by the ratio of its norm and its gradient's (You et al.).

    `classic` puts the rate into the velocity, as the paper does; with `tcoef` 0 this is SGD; `ns_steps` brings the
    gradient of a matrix near an orthogonal one first.

    >>> w = Tensor([1.0]); opt = LARS([w], lr=0.1, momentum=0.0, weight_decay=0.0)
    >>> _ = w.square().sum().backward(); opt.step(); round(w.item(), 6)
    0.9999
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
        ns_steps: int = 0, ns_coefficients: tuple[float, ...] | None = None, nesterov: bool = False,
        classic: bool = True, pre_wd: bool = True, tcoef: float = 0.001,
    ) -> None:  # fmt: skip
        super().__init__(params, lr)
        self.momentum, self.weight_decay, self.nesterov, self.classic = momentum, weight_decay, nesterov, classic
        self.ns_steps, self.ns_coefficients, self.pre_wd, self.tcoef = ns_steps, ns_coefficients, pre_wd, tcoef
        self.b = self._state() if momentum else []

    def _update(self, number: int, param: Tensor, grad: Tensor, *shared: Tensor) -> list[Tensor]:
        value = param.detach()
        rate = self._trust(value, grad) * self.lr if self.tcoef else self.lr
        if self.pre_wd and self.weight_decay:
            grad = grad + value * self.weight_decay
        written = []
        if self.classic:
            grad = grad * rate
        if self.momentum:
            velocity = self.b[number].assign(self.b[number] * self.momentum + grad)
            grad = grad + velocity * self.momentum if self.nesterov else velocity
            written.append(velocity)
        if self.ns_coefficients:
            grad = grad.reshape((grad.shape[0], -1)).newton_schulz(self.ns_steps, self.ns_coefficients)
            grad = grad.reshape(param.shape)
        if not self.pre_wd and self.weight_decay:
            value = value * (1 - self.weight_decay * self.lr)
        return [param.assign((value - (grad if self.classic else grad * rate)).cast(param.dtype)), *written]

    def _trust(self, value: Tensor, grad: Tensor) -> Tensor:
        own, slope = value.vector_norm(), grad.vector_norm()
        ratio = own * self.tcoef / (slope + own * self.weight_decay)
        return ((own > 0) & (slope > 0)).where(ratio, 1.0)


class Muon(LARS):
    """Momentum whose step is brought near an orthogonal matrix by Newton and Schulz (Jordan), with weight decay apart.

    >>> w = Tensor([[1.0, 0.0], [0.0, 1.0]]); opt = Muon([w], lr=0.1); _ = w.square().sum().backward(); opt.step()
    >>> w[0, 0].item() < 1.0
    True
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, momentum: float = 0.95, weight_decay: float = 0.1,
        ns_steps: int = 5, ns_coefficients: tuple[float, ...] = (3.4445, -4.775, 2.0315), nesterov: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, momentum, weight_decay, ns_steps, ns_coefficients, nesterov, classic=False, pre_wd=False,
            tcoef=0.0,
        )  # fmt: skip


class LAMB(AdamW):
    """AdamW whose step of each parameter is scaled by the ratio of its norm and the step's (You et al.).

    >>> w = Tensor([2.0]); opt = LAMB([w], lr=0.1); _ = w.square().sum().backward(); opt.step(); round(w.item(), 4)
    1.8
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, b1, b2, eps, weight_decay)

    def _begin_step(self) -> tuple[list[Tensor], list[Tensor]]:
        b1_t, b2_t = self.b1_t.assign(self.b1_t * self.b1), self.b2_t.assign(self.b2_t * self.b2)
        return [b1_t, b2_t], [1 / (1 - b1_t), 1 / (1 - b2_t)]

    def _update(self, number: int, param: Tensor, grad: Tensor, *shared: Tensor) -> list[Tensor]:
        first, second = [each.cast(param.dtype).to(param.device) for each in shared]
        m = self.m[number].assign(self.m[number] * self.b1 + grad * (1 - self.b1))
        v = self.v[number].assign(self.v[number] * self.b2 + grad * grad * (1 - self.b2))
        value = param.detach()
        step = m * first / ((v * second).sqrt() + self.eps) + value * self.weight_decay
        own, length = value.vector_norm(), step.vector_norm()
        trust = ((own > 0) & (length > 0)).where(own / length, 1.0)
        return [param.assign((value - step * trust * self.lr).cast(param.dtype)), m, v]


class OptimizerGroup:
    """Several optimisers as one: each steps its own parameters.

    >>> a, b = Tensor([1.0]), Tensor([1.0]); opt = OptimizerGroup(SGD([a], lr=0.5), SGD([b], lr=0.25))
    >>> _ = (a + b).sum().backward(); opt.step(); a.item(), b.item()
    (0.5, 0.75)
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        self.optimizers = list(optimizers)

    @property
    def params(self) -> list[Tensor]:
        """The parameters of all."""
        return [param for each in self.optimizers for param in each.params]

    def __getitem__(self, number: int) -> Optimizer:
        return self.optimizers[number]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for each in self.optimizers:
            each.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        """The assignments of one step of all, not realized."""
        return [tensor for each in self.optimizers for tensor in each.schedule_step()]

    def step(self) -> None:
        """Change the parameters of all in one realize."""
        written = self.schedule_step()
        written[0].realize(*written[1:])
