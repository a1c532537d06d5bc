"""Several threads that build graphs and realize them at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pytest

from lazulite import Context, Tensor, nn

T = TypeVar("T")
THREADS = 4


@pytest.fixture(autouse=True)
def switched_often() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], T]) -> list[T]:
    """What each of several threads gives, which all begin together; an error of any is raised."""
    ready = threading.Barrier(THREADS)

    def begin(number: int) -> T:
        ready.wait()
        with Context(CACHE=0):
            return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def one_after_another(work: Callable[[int], T]) -> list[T]:
    with Context(CACHE=0):
        return [work(number) for number in range(THREADS)]


def written_in_place(number: int) -> list[float]:
    """Pending writes at every moment, while other threads realize."""
    tensor, other = Tensor(np.zeros(3, np.float32)), Tensor([float(number)])
    for _ in range(20):
        tensor += number
        tensor[0:1] = tensor[1:2] * 2
        assert (other * 2).item() == 2 * number
    return list(tensor.tolist())


def trained(number: int) -> list[float]:
    """A few steps of a small training, with a backward pass in each."""
    random = np.random.default_rng(number)
    x, answer = Tensor(random.standard_normal((8, 6), np.float32)), Tensor(random.standard_normal((8, 3), np.float32))
    weight = Tensor(random.standard_normal((6, 3), np.float32), requires_grad=True)
    optimiser = nn.optim.SGD([weight], lr=0.1)
    losses = []
    with Tensor.train():
        for _ in range(10):
            optimiser.zero_grad()
            loss = (x @ weight - answer).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    return losses


def kernels_of_its_own(number: int) -> list[list[float]]:
    """Shapes that no other thread has, so that every thread compiles."""
    return [(Tensor(np.ones((size, number + 2), np.float32)) * 3).sum(axis=1).tolist() for size in range(1, 6)]


@pytest.mark.parametrize("work", [written_in_place, trained, kernels_of_its_own], ids=lambda work: work.__name__)
def test_threads_with_tensors_of_their_own_do_not_notice_one_another(work: Callable[[int], object]) -> None:
    assert one_after_another(work) == at_once(work)


def test_threads_read_one_tensor() -> None:
    shared = Tensor(np.arange(10, dtype=np.float32))
    lazy = shared * 2

    assert [[45.0 * number + 90.0] * 5 for number in range(THREADS)] == at_once(
        lambda number: [(shared * number + lazy).sum().item() for _ in range(5)]
    )


def test_equal_nodes_of_several_threads_are_one_node() -> None:
    base = Tensor([1, 2, 3]).uop

    found = at_once(lambda number: [base * 3 + step for step in range(200)])

    assert all(len(set(nodes)) == 1 for nodes in zip(*found, strict=True))


def test_a_pending_write_is_taken_along_by_its_own_thread_only() -> None:
    tensor = Tensor([1, 2, 3]).realize()

    def write_and_wait() -> None:
        nonlocal tensor
        tensor += 1

    thread = threading.Thread(target=write_and_wait)
    thread.start()
    thread.join()
    (Tensor([1.0]) * 2).realize()
    assert tensor._handle.pending

    tensor += 1
    (Tensor([1.0]) * 3).realize()
    assert not tensor._handle.pending
    assert [3, 4, 5] == tensor.tolist()
