"""A shortcut is taken only where the long way would do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lazulite import Context, Tensor, jit
from support.capture import captured


@pytest.fixture(autouse=True)
def no_sizes_that_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sizes vary there are no shortcuts, and other tests make some in this process."""
    monkeypatch.setattr("lazulite.tensor.shortcut.sizes_exist", lambda: False)


def mix(x: Tensor, y: Tensor) -> Tensor:
    return x * 2 + y


def ready(function: Callable[..., Tensor]) -> tuple[Any, list[Tensor]]:
    """A function that goes by a shortcut, and its arguments."""
    arguments = [Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()]
    step = jit(function)
    for _ in range(3):
        step(*arguments)
    assert captured(step) == 1 and step._shortcut is not None
    return step, arguments


def pending(x: Tensor, y: Tensor) -> list[Tensor]:
    x += 1
    return [x, y]


def written_base(x: Tensor, y: Tensor) -> list[Tensor]:
    base = Tensor([[1.0, 2.0], [5.0, 6.0]]).realize()
    row = base[1]
    base[1] = y
    return [row, base[1]]


def with_gradient(x: Tensor, y: Tensor) -> list[Tensor]:
    (x * y).sum().backward()
    return [x, y]


OTHERS: dict[str, Callable[[Tensor, Tensor], list[Tensor]]] = {
    "the same": lambda x, y: [x, y],
    "other tensors": lambda x, y: [y, x + 1],
    "one tensor twice": lambda x, y: [y, y],
    "a pending write": pending,
    "views of what was written": written_base,
    "gradients": with_gradient,
    "another shape": lambda x, y: [x[:1], y],
    "another type": lambda x, y: [x.cast("int32"), y],
    "another device": lambda x, y: [x.to("PYTHON"), y.to("PYTHON")],
    "a constant": lambda x, y: [Tensor.ones(2), y],
    "a number": lambda x, y: [x, 3],  # type: ignore[list-item]
    "an expanded tensor": lambda x, y: [x, y[:1].expand(2)],
}


@pytest.mark.parametrize("kind", OTHERS)
def test_the_result_is_that_of_the_function(kind: str) -> None:
    """A24"""
    step, arguments = ready(mix)
    wanted = mix(*[each.clone() if isinstance(each, Tensor) else each for each in OTHERS[kind](*ready(mix)[1])])
    given = OTHERS[kind](*arguments)

    for _ in range(4):
        assert wanted.tolist() == step(*given).tolist()
    assert [5.0, 8.0] == step(Tensor([1.0, 2.0]), Tensor([3.0, 4.0])).tolist()


def test_results_that_are_held_stay() -> None:
    """A24"""
    step, (x, y) = ready(mix)
    held = [step(x, y) for _ in range(3)]
    x = step(x, y)
    x = step(x, y)

    assert [[5.0, 8.0]] * 3 == [each.tolist() for each in held]
    assert [13.0, 20.0] == x.tolist()


def test_what_the_function_reaches_is_looked_at() -> None:
    """A24"""
    weight, factor = Tensor([1.0, 1.0]).realize(), 2.0
    step = jit(lambda x: x * factor + weight)
    x = Tensor([1.0, 2.0]).realize()
    for _ in range(4):
        assert [3.0, 5.0] == step(x).tolist()
    assert step._shortcut is not None
    weight += 1
    assert [4.0, 6.0] == step(x).tolist()
    factor = 3.0
    assert [5.0, 8.0] == step(x).tolist()
    weight = Tensor([0.0, 0.0])
    assert [3.0, 6.0] == step(x).tolist()


def test_settings_keywords_and_a_wrong_number_of_arguments_go_the_long_way() -> None:
    step, (x, y) = ready(mix)
    with Context(TRAINING=1):
        assert [5.0, 8.0] == step(x, y).tolist()
    assert [5.0, 8.0] == step(x, y=y).tolist()
    with pytest.raises(TypeError):
        step(x)
    step.reset()
    assert step._shortcut is None


def test_calls_that_do_more_than_make_a_tensor_have_none() -> None:
    state = Tensor([0.0]).realize()

    def count(x: Tensor) -> Tensor:
        state.assign(state + x)
        return state * 1

    for function in (count, lambda x: (x, x + 1), lambda x: x + Tensor.rand(1), lambda x: x):
        step, x = jit(function), Tensor([1.0]).realize()
        for _ in range(4):
            step(x)
        assert step._shortcut is None
    assert [4.0] == state.tolist()
