"""One program gives the same numbers however it is run: eagerly or captured, fused or not, on one thread or two.

Bit by bit where only the threads, or capturing, differ; and for integers and elementwise floats always.  Sums of floats
that fusion adds up in another order stay within their bound of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from lazulite import Context, Tensor, UOp, jit, nn

Program = Callable[[], list[Tensor]]
"""Makes its own state, so that each way of running it begins with the same."""
STEPS = 4
"""How often a program is called: it is captured in the second call."""
_SEED = np.random.default_rng(3)
IMAGES = _SEED.standard_normal((8, 3, 18, 18)).astype(np.float32)
ROWS = _SEED.standard_normal((96, 160)).astype(np.float32)
INTEGERS = _SEED.integers(-1000, 1000, (96, 160)).astype(np.int32)
PLACES = _SEED.integers(0, 96, (64,)).astype(np.int32)


def stepped(setup: Callable[[], Callable[..., Any]], *arguments: np.ndarray) -> Callable[[bool], list[np.ndarray]]:
    """A run of a program: what each of its calls gave."""

    def run(captured: bool) -> list[np.ndarray]:
        Tensor.manual_seed(11)
        function, given = setup(), [Tensor(argument).realize() for argument in arguments]
        call = jit(function) if captured else function
        found: list[np.ndarray] = []
        for _ in range(STEPS):
            results = call(*given)
            found += [each.numpy().copy() for each in (results if isinstance(results, list) else [results])]
        assert not captured or repr(call).endswith(": 1 captured>")
        return found

    return run


def in_place() -> Callable[..., Any]:
    state = Tensor.zeros(96, 160, dtype="int32").contiguous().realize()

    def step(x: Tensor) -> list[Tensor]:
        state[1:] = state[:-1] + x[1:]
        state[0] += x[0] * 3
        state.assign(state.flip(1))
        return [state + 0, state.sum(0)]

    return step


def by_hand() -> Callable[..., Any]:
    def doubled(out: UOp, x: UOp) -> UOp:
        i, j = UOp.range(96, 0), UOp.range(160, 1)
        return out[i, j].store(out[i, j] + x[i, j] * 2)

    out = Tensor.zeros(96, 160, dtype="int32").contiguous().realize()

    def step(x: Tensor) -> Tensor:
        before = out + x
        out.custom_kernel(x, fxn=doubled)
        return before + out

    return step


def training() -> Callable[..., Any]:
    first, second = nn.Conv2d(3, 8, 3), nn.Linear(8 * 8 * 8, 10)
    optimizer = nn.optim.Adam(nn.state.get_parameters([first, second]), lr=0.01)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        with Tensor.train():
            scores = second(first(x).relu().max_pool2d().flatten(1).dropout(0.2))
            loss = scores.sparse_categorical_crossentropy(Tensor.arange(8))
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step


EXACT = {
    "integers": stepped(lambda: lambda x: [(x * 7 // 3 - x % 5) ^ (x >> 2), x.sum(1), x.max(0), x.cumsum(1)], INTEGERS),
    "products of integers": stepped(lambda: lambda x: x @ x.T, INTEGERS),
    "an order": stepped(lambda: lambda x: [*x.sort(1), x.argmax(1)], INTEGERS),
    "places": stepped(lambda: lambda x, p: [x[p], Tensor.zeros(96, dtype="int32").scatter_reduce(0, p, p, "sum")],
                      INTEGERS, PLACES),
    "writes in place": stepped(in_place, INTEGERS),
    "a kernel written by hand": stepped(by_hand, INTEGERS),
    "elements": stepped(lambda: lambda x: (x.exp() + x.sin() * x.sigmoid()).tanh() / (x.abs() + 1).sqrt(), ROWS),
    "random numbers": stepped(lambda: lambda x: x + Tensor.rand(96, 160), ROWS),
}  # fmt: skip
BOUNDED = {
    "rows": stepped(lambda: lambda x: [x.softmax(1), x.layernorm(), x.logsumexp(0), x.std(1)], ROWS),
    "products": stepped(lambda: lambda x: ((x @ x.T).relu() @ x).mean(1), ROWS),
    "attention": stepped(lambda: lambda x: x.scaled_dot_product_attention(x, x, is_causal=True),
                         ROWS.reshape(2, 3, 80, 32)),
    "convolution": stepped(lambda: lambda x: x.conv2d(Tensor.ones(4, 3, 3, 3) * 0.1).max_pool2d(), IMAGES),
    "training": stepped(training, IMAGES),
}  # fmt: skip
WAYS = [(captured, threads) for captured, threads in product([False, True], [1, 2])]


@pytest.mark.parametrize("program", EXACT)
def test_numbers_are_equal_bit_by_bit(program: str) -> None:
    """A1, A24"""
    wanted: list[np.ndarray] | None = None
    for fuse, (captured, threads) in product([1, 0], WAYS):
        with Context(FUSE=fuse, THREADS=threads):
            found = EXACT[program](captured)
        wanted = wanted or found
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(one, other, f"fuse {fuse}, captured {captured}, threads {threads}")


@pytest.mark.parametrize("program", BOUNDED)
def test_sums_of_floats_depend_on_fusion_alone(program: str) -> None:
    """A24"""
    by_fusion: list[list[np.ndarray]] = []
    for fuse in (1, 0):
        runs = []
        for captured, threads in WAYS:
            with Context(FUSE=fuse, THREADS=threads):
                runs.append(BOUNDED[program](captured))
        for run in runs[1:]:
            for one, other in zip(runs[0], run, strict=True):
                np.testing.assert_array_equal(one, other)
        by_fusion.append(runs[0])
    for one, other in zip(*by_fusion, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
