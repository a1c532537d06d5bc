"""Learning rates over twelve steps are torch's."""

from __future__ import annotations

from typing import Any

import pytest

from lazulite import ArgumentError, Tensor
from lazulite.nn import optim, schedulers

torch = pytest.importorskip("torch", reason="notimpl: torch is not installed here")

PLANS: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}), ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}), ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.01}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 4}), ("ConstantLR", {"total_iters": 3}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}), ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12, "anneal_strategy": "linear"}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts"), PLANS)
@pytest.mark.filterwarnings("ignore")
def test_the_rates_are_torchs(name: str, facts: dict[str, Any]) -> None:
    own = optim.SGD([Tensor([1.0])], lr=0.5)
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    plan = getattr(schedulers, name)(own, **facts)
    theirs = getattr(torch.optim.lr_scheduler, name)(other, **facts)
    for _ in range(11):
        assert theirs.get_last_lr() == pytest.approx(plan.get_last_lr())
        plan.step()
        theirs.step()


@pytest.mark.filterwarnings("ignore")
def test_a_plateau_is_where_torch_sees_it() -> None:
    own = optim.SGD([Tensor([1.0])], lr=1.0)
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    facts = {"factor": 0.5, "patience": 1, "cooldown": 1}
    plan = schedulers.ReduceLROnPlateau(own, **facts)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(other, **facts)
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0):
        plan.step(loss)
        theirs.step(loss)
        assert other.param_groups[0]["lr"] == own.lr


def test_plans_follow_one_another_and_go_on_from_a_state() -> None:
    own = optim.SGD([Tensor([1.0])], lr=1.0)
    warm = schedulers.LinearLR(own, 0.25, total_iters=3)
    plan = schedulers.SequentialLR(own, [warm, schedulers.ExponentialLR(own, 0.5)], [3])
    rates = []
    for _ in range(5):
        rates.append(own.lr)
        plan.step()
    later = schedulers.ExponentialLR(optim.SGD([Tensor([1.0])], lr=1.0), 0.5)
    later.load_state_dict({"last_epoch": 3})

    assert pytest.approx([0.25, 0.5, 0.75, 1.0, 0.5]) == rates
    assert 0.125 == later.optimizer.lr


def test_plans_without_meaning_are_refused() -> None:
    own = optim.SGD([Tensor([1.0])])
    with pytest.raises(ArgumentError, match="'cos' or 'linear'"):
        schedulers.OneCycleLR(own, 1.0, 5, anneal_strategy="up")
    with pytest.raises(ArgumentError, match="one milestone fewer"):
        schedulers.SequentialLR(own, [], [])
    with pytest.raises(ArgumentError, match="mode is 'min' or 'max'"):
        schedulers.ReduceLROnPlateau(own, mode="best")
