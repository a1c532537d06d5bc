"""Learning rates that change: a scheduler sets `lr` of an optimiser at every `step`.

A rate enters the program as a number that changes without compiling anything.  The schedules are those of
torch.optim.lr_scheduler, in closed form: the rate after n steps is a function of n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lazulite.base.errors import ArgumentError


class Scheduler:
    """The rate at step n is `rate(n)`; the optimiser's rate when the scheduler is made is the base."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer, self.base, self.last_epoch = optimizer, float(optimizer.lr), last_epoch
        self.step()

    def rate(self, n: int) -> float:
        """The rate after n steps."""
        raise NotImplementedError

    def step(self) -> None:
        """Go on by one step."""
        self.last_epoch += 1
        self.optimizer.lr = self.rate(self.last_epoch)

    def get_last_lr(self) -> list[float]:
        """The rate set last."""
        return [self.optimizer.lr]

    def state_dict(self) -> dict[str, Any]:
        """What training goes on from, beside the optimiser: plain numbers."""
        return {k: v for k, v in vars(self).items() if isinstance(v, int | float | str | bool | None)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        vars(self).update(state)
        self.optimizer.lr = self.rate(self.last_epoch)


class LambdaLR(Scheduler):
    """base * lr_lambda(n).

    >>> from lazulite.nn.optim import SGD; from lazulite import Tensor
    >>> plan = LambdaLR(SGD([Tensor([1.0])], lr=1.0), lambda n: 1 / (n + 1)); plan.step(); plan.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Any, lr_lambda: Callable[[int], float], last_epoch: int = -1) -> None:
        self.factor = lr_lambda
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return self.base * self.factor(n)


class StepLR(Scheduler):
    """Times gamma every `step_size` steps."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return float(self.base * self.gamma ** (n // self.step_size))


class MultiStepLR(Scheduler):
    """Times gamma at each of the milestones."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return float(self.base * self.gamma ** sum(n >= each for each in self.milestones))


class ConstantLR(Scheduler):
    """Times `factor` for the first `total_iters` steps."""

    def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return self.base * (self.factor if n < self.total_iters else 1.0)


class LinearLR(Scheduler):
    """The factor moves from `start_factor` to `end_factor` over `total_iters` steps: a warm-up, for instance."""

    def __init__(
        self, optimizer: Any, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        share = min(n, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return self.base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class ExponentialLR(Scheduler):
    """Times gamma every step."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return float(self.base * self.gamma**n)


class PolynomialLR(Scheduler):
    """To zero over `total_iters` steps as a power of what is left."""

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return float(self.base * (1 - min(n, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(Scheduler):
    """Half a cosine from the base to `eta_min` over `T_max` steps, and back."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        return self.eta_min + (self.base - self.eta_min) * (1 + math.cos(math.pi * n / self.T_max)) / 2


class CosineAnnealingWarmRestarts(Scheduler):
    """Half cosines from the base to `eta_min`, each `T_mult` times as long as the last (Loshchilov and Hutter)."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        length = self.T_0
        while n >= length:
            n, length = n - length, length * self.T_mult
        return self.eta_min + (self.base - self.eta_min) * (1 + math.cos(math.pi * n / length)) / 2


class OneCycleLR(Scheduler):
    """Up from max_lr / div_factor to `max_lr`, then down to a `final_div_factor`-th of the start (Smith and Topin)."""

    def __init__(
        self, optimizer: Any, max_lr: float, total_steps: int, pct_start: float = 0.3, anneal_strategy: str = "cos",
        div_factor: float = 25.0, final_div_factor: float = 1e4, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError("OneCycleLR", f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.max_lr, self.total_steps, self.anneal_strategy = max_lr, total_steps, anneal_strategy
        self.top = float(pct_start * total_steps) - 1
        self.first = max_lr / div_factor
        self.final = self.first / final_div_factor
        super().__init__(optimizer, last_epoch)

    def rate(self, n: int) -> float:
        n = min(n, self.total_steps - 1)
        if n <= self.top:
            return self._between(self.first, self.max_lr, n / self.top if self.top else 1.0)
        return self._between(self.max_lr, self.final, (n - self.top) / (self.total_steps - 1 - self.top))

    def _between(self, begin: float, end: float, share: float) -> float:
        share = share if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2
        return begin + (end - begin) * share


class SequentialLR:
    """Schedulers one after the other, each from its milestone on; each counts from zero."""

    def __init__(self, optimizer: Any, schedulers: Sequence[Any], milestones: Sequence[int]) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError("SequentialLR", "there is one milestone fewer than schedulers")
        self.optimizer, self.schedulers, self.milestones, self.last_epoch = optimizer, schedulers, list(milestones), 0
        for each in schedulers:
            each.base = schedulers[0].base
        self._set()

    def _set(self) -> None:
        number = sum(self.last_epoch >= each for each in self.milestones)
        scheduler = self.schedulers[number]
        scheduler.last_epoch = self.last_epoch - (self.milestones[number - 1] if number else 0)
        self.optimizer.lr = scheduler.rate(scheduler.last_epoch)

    def step(self) -> None:
        """Go on by one step."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self) -> list[float]:
        """The rate set last."""
        return [self.optimizer.lr]


class ReduceLROnPlateau:
    """Times `factor` when a measure has not become better for more than `patience` steps.

    >>> from lazulite.nn.optim import SGD; from lazulite import Tensor
    >>> opt = SGD([Tensor([1.0])], lr=1.0); plan = ReduceLROnPlateau(opt, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0): plan.step(loss)
    >>> opt.lr
    0.5
    """

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError("ReduceLROnPlateau", "mode is 'min' or 'max', threshold_mode 'rel' or 'abs'")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps, self.best, self.bad, self.waiting = min_lr, eps, math.nan, 0, 0

    def step(self, metrics: Any) -> None:
        """Say what the measure is now."""
        value = float(metrics.item() if hasattr(metrics, "item") else metrics)
        if self.best != self.best or self._is_better(value):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.waiting:
            self.waiting, self.bad = self.waiting - 1, 0
        if self.bad > self.patience:
            lower = max(self.optimizer.lr * self.factor, self.min_lr)
            if self.optimizer.lr - lower > self.eps:
                self.optimizer.lr = lower
            self.waiting, self.bad = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        gain = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        return value < self.best - gain if self.mode == "min" else value > self.best + gain

    def get_last_lr(self) -> list[float]:
        """The rate set last."""
        return [self.optimizer.lr]
