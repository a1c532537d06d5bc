"""Nothing but compiled kernels computes: between the first tensor and the last value no function of NumPy,
of a BLAS or of torch is called."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lazulite import Context, GlobalCounters, Tensor, nn

KEPT = {"frombuffer", "array", "asarray", "issubdtype"}
"""What only moves bytes or names types."""


class Net:
    """A small convolutional network with batch norm and pooling."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.last = nn.Linear(4 * 3 * 3, 5)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.conv(x)).relu().max_pool2d(2).flatten(1).dropout(0.1))


def _refused(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"numpy.{name} was called")

    return refuse


@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every computing function of NumPy raises, and torch cannot be imported."""
    replaced = []
    for module in (np, np.linalg, np.fft, np.random):
        for name, member in list(vars(module).items()):
            if name.startswith("_") or name in KEPT or isinstance(member, type) or not callable(member):
                continue
            monkeypatch.setattr(module, name, _refused(f"{module.__name__}.{name}"))
            replaced.append(name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "scipy", None)
    yield replaced


def test_the_guard_guards(without_numpy: list[str]) -> None:
    assert {"add", "multiply", "matmul", "dot", "sum", "einsum", "exp", "maximum", "where", "zeros"} <= set(
        without_numpy
    )
    with pytest.raises(AssertionError, match="dot was called"):
        np.dot(1, 2)


def test_two_steps_of_training_call_nothing_of_numpy(without_numpy: list[str]) -> None:
    GlobalCounters.reset()
    with Context(CACHE=0), Tensor.train():
        Tensor.manual_seed(5)
        net = Net()
        images, labels = Tensor.rand(8, 1, 8, 8), Tensor.randint(8, low=0, high=5)
        optimiser = nn.optim.Adam(nn.state.get_parameters(net), lr=0.01)
        losses = []
        for _ in range(2):
            optimiser.zero_grad()
            loss = net(images).sparse_categorical_crossentropy(labels)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    guesses = net(images).argmax(axis=1).tolist()
    assert GlobalCounters.kernel_count > 10
    assert all(0 < loss < 10 for loss in losses) and losses[0] != losses[1]
    assert 8 == len(guesses) and set(guesses) <= set(range(5))


def test_arrays_only_come_in_and_go_out(without_numpy: list[str]) -> None:
    """An array of NumPy does not compute either: its operators are not reached."""

    class Watched(np.ndarray):
        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("an operator of an array was called")

        def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("a function of NumPy was called on an array")

    array = np.frombuffer(bytes(range(24)), np.uint8).view(Watched)
    x = Tensor(array).cast("float32").reshape(4, 6)
    assert (4, 4) == (x @ x.T).softmax(-1).numpy().shape
    assert [12.5, 48.5, 84.5, 120.5] == ((x.T + 10).sum(0) - 62.5 + 0 * x.sum(1)).tolist()
