"""Optimisers take the steps that torch and the papers take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lazulite import DTypeError, GlobalCounters, GradientError, Tensor
from lazulite.nn.optim import LAMB, LARS, SGD, Adam, AdamW, Muon, OptimizerGroup
from lazulite.nn.state import get_state_dict, load_state_dict

START = [1.0, -2.0, 0.5]


def steps(kind: type, count: int = 5, **facts: Any) -> list[float]:
    """Minimise sum(w**4 / 4 + w), whose gradient is w**3 + 1."""
    w = Tensor(START)
    optimizer = kind([w], **facts)
    for _ in range(count):
        optimizer.zero_grad()
        (w.square().square() * 0.25 + w).sum().backward()
        optimizer.step()
    return w.tolist()  # type: ignore[no-any-return]


def slope(w: np.ndarray) -> np.ndarray:
    return w**3 + 1


def expected_sgd(lr: float, momentum: float, decay: float, nesterov: bool) -> list[float]:
    w, velocity = np.array(START), np.zeros(3)
    for _ in range(5):
        grad = slope(w) + decay * w
        velocity = momentum * velocity + grad
        w = w - lr * (grad + momentum * velocity if nesterov else velocity)
    return w.tolist()  # type: ignore[no-any-return]


def expected_adam(lr: float, decay: float) -> list[float]:
    w, m, v = np.array(START), np.zeros(3), np.zeros(3)
    for step in range(1, 6):
        grad = slope(w)
        m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
        w = w * (1 - lr * decay)
        w = w - lr * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return w.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_takes_its_steps(momentum: float, decay: float, nesterov: bool) -> None:
    found = steps(SGD, lr=0.01, momentum=momentum, weight_decay=decay, nesterov=nesterov)

    assert expected_sgd(0.01, momentum, decay, nesterov) == pytest.approx(found, rel=1e-5)


def test_adam_and_adamw_take_their_steps() -> None:
    assert expected_adam(0.02, 0.0) == pytest.approx(steps(Adam, lr=0.02), rel=1e-5)
    assert expected_adam(0.02, 0.5) == pytest.approx(steps(AdamW, lr=0.02, weight_decay=0.5), rel=1e-5)


@pytest.mark.parametrize("decay", [None, 0.1])
def test_fifty_steps_of_adam_are_those_of_torch(decay: float | None) -> None:
    torch = pytest.importorskip("torch")
    facts = {"lr": 0.02} if decay is None else {"lr": 0.02, "weight_decay": decay}
    theirs = torch.tensor(START, requires_grad=True)
    optimizer = (torch.optim.Adam if decay is None else torch.optim.AdamW)([theirs], **facts)
    for _ in range(50):
        optimizer.zero_grad()
        (theirs.square().square() * 0.25 + theirs).sum().backward()
        optimizer.step()

    assert theirs.tolist() == pytest.approx(steps(Adam if decay is None else AdamW, 50, **facts), rel=2e-6)


def test_adam_goes_on_from_its_state_dictionary() -> None:
    def trained(count: int, state: dict[str, Tensor] | None = None) -> tuple[list[float], dict[str, Tensor]]:
        w = Tensor(START)
        optimizer = Adam([w], lr=0.1)
        if state is not None:
            load_state_dict(optimizer, state)
        for _ in range(count):
            optimizer.zero_grad()
            w.square().sum().backward()
            optimizer.step()
        return w.tolist(), get_state_dict(optimizer)

    assert trained(7)[0] == trained(4, trained(3)[1])[0]


def test_a_parameter_keeps_its_memory_and_a_step_its_node_count() -> None:
    """B013"""
    w = Tensor(START)
    optimizer = Adam([w], lr=0.1)
    storages, nodes = set(), []
    for _ in range(5):
        optimizer.zero_grad()
        w.square().sum().backward()
        optimizer.step()
        storages.add(w.uop.arg[0])
        nodes.append(GlobalCounters.live_nodes)

    assert 1 == len(storages)
    assert nodes[2] == nodes[3] == nodes[4]


def test_a_new_step_size_compiles_nothing() -> None:
    w = Tensor(START)
    optimizer = SGD([w], lr=0.1, momentum=0.9)
    counts = []
    for step in range(6):
        optimizer.lr = 0.1 / (step + 1)
        optimizer.zero_grad()
        w.square().sum().backward()
        optimizer.step()
        counts.append((GlobalCounters.schedules_built, GlobalCounters.programs_compiled))

    assert counts[2] == counts[3] == counts[5]


def test_no_gradient_flows_through_a_step() -> None:
    w = Tensor([2.0])
    optimizer = SGD([w], lr=0.25)
    (w * w).sum().backward()
    optimizer.step()

    assert [2.0] == (w * w).sum().gradient(w)[0].tolist()


def test_parameters_without_a_gradient_stay() -> None:
    used, unused, frozen = Tensor([1.0]), Tensor([5.0]), Tensor([7.0], requires_grad=False)
    optimizer = SGD([used, unused, frozen, used], lr=0.5)
    used.sum().backward()
    optimizer.step()

    assert ([0.5], [5.0], [7.0]) == (used.tolist(), unused.tolist(), frozen.tolist())
    assert 2 == len(optimizer.params)


def test_a_step_without_any_gradient_raises() -> None:
    """O16"""
    with pytest.raises(GradientError, match=r"SGD\.step: no parameter has a gradient"):
        SGD([Tensor([1.0])]).step()


def test_parameters_are_floats() -> None:
    with pytest.raises(DTypeError, match="Adam: parameters are floats, got int32"):
        Adam([Tensor([1])])


def test_training_goes_on_from_equal_state() -> None:
    assert all(math.isfinite(value) for value in steps(Adam, count=300, lr=0.01))


TINYGRADS = [
    (LARS, {}, [[0.999638, 0.499638], [-0.998914, 2.000724]]),
    (LARS, {"classic": False, "nesterov": True, "tcoef": 0.01}, [[0.994796, 0.494802], [-0.984422, 2.010431]]),
    (LAMB, {"weight_decay": 0.01}, [[0.62198, 0.130473], [-0.62198, 2.370072]]),
    (Muon, {}, [[0.987945, 0.33041], [-0.783319, 2.010599]]),
    (Muon, {"nesterov": False}, [[1.062772, 0.227974], [-0.754287, 1.970916]]),
]
"""What tinygrad 0.14.0 gives after three steps of (w * w * factors).sum() at a rate of 0.1."""


@pytest.mark.parametrize(("kind", "facts", "expected"), TINYGRADS)
def test_three_steps_end_where_tinygrads_do(kind: Any, facts: dict[str, Any], expected: list[list[float]]) -> None:
    w, factors = Tensor([[1.0, 0.5], [-1.0, 2.0]], requires_grad=True), Tensor([[1.0, 2.0], [3.0, -1.0]])
    optimizer = kind([w], lr=0.1, **facts)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w * factors).sum().backward()
        optimizer.step()

    for row, wanted in zip(w.tolist(), expected, strict=True):
        assert wanted == pytest.approx(row, abs=3e-6)


def test_a_group_steps_each_of_its_optimisers() -> None:
    one, two = Tensor([1.0]), Tensor([1.0])
    group = OptimizerGroup(SGD([one], lr=0.5), SGD([two], lr=0.25))
    (one * 2 + two).sum().backward()
    group.step()
    group.zero_grad()

    assert [[0.0], [0.75]] == [one.tolist(), two.tolist()]
    assert [None, None] == [param.grad for param in group.params]
