"""Program order is the meaning: random programs of reads, writes, views and realizes equal a model in NumPy.

In the model every read copies, and a write through a view goes to the base.  Integers are equal bit by bit.
Programs of floats carry a derivative along in the model, by the product rule; the gradients must agree with it,
wherever values are realized on the way.  FUZZ_EXAMPLES=n runs n programs of each kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite import Context, GradientError, Tensor, UOp
from lazulite.runtime.allocator import Allocator
from lazulite.runtime.memory import Handle
from lazulite.runtime.registry import Device

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
SHAPE = (3, 4)
Step = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""One step to a view: of a tensor, and of an array with planes in front (the values, and their derivative)."""


@dataclass(eq=False)
class Item:
    """A tensor, what it should hold, and what it is a view of."""

    tensor: Tensor
    value: np.ndarray
    parent: Item | None = None
    take: Callable[[np.ndarray], np.ndarray] = lambda array: array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def place(self) -> np.ndarray:
        """Where the view lies in its base, as an array that shares its memory."""
        return self.value if self.parent is None else self.take(self.parent.place())

    def write(self, value: np.ndarray) -> None:
        """The base, this view, and the views between have the new value."""
        new = np.broadcast_to(value, self.place().shape).copy()
        self.place()[...] = new
        above = self
        while above.parent is not None:
            above.value = above.place().copy()
            above = above.parent


def _steps(random: Random, item: Item) -> Step | None:
    """A step to a view of the item, if the kind that was drawn fits."""
    rank = len(item.shape)
    kind = random.choice(["rows", "row", "column", "transposed", "flipped", "strided", "flat", "new axis"])
    if rank == 0 or 0 in item.shape or (kind in ("column", "strided") and rank != 2):
        return None
    low = random.randrange(item.shape[0])
    high = random.randint(low + 1, item.shape[0])
    if kind == "rows":
        return (lambda t: t[low:high]), (lambda m: m[:, low:high])
    if kind == "row":
        return (lambda t: t[low]), (lambda m: m[:, low])
    if kind == "column":
        at = random.randrange(item.shape[1])
        return (lambda t: t[:, at]), (lambda m: m[:, :, at])
    if kind == "transposed":
        return (lambda t: t.permute(*range(rank)[::-1])), (lambda m: m.transpose(0, *range(rank, 0, -1)))
    if kind == "flipped":
        return (lambda t: t.flip(rank - 1)), (lambda m: m[..., ::-1])
    if kind == "strided":
        return (lambda t: t[:, ::2]), (lambda m: m[:, :, ::2])
    if kind == "new axis":
        return (lambda t: t.unsqueeze(0)), (lambda m: m[:, None])
    size = int(np.prod(item.shape))
    flat = item.place().reshape(len(item.value), size)
    return ((lambda t: t.reshape(size)), (lambda m: m.reshape(len(m), size))) if flat.base is not None else None


class Machine:
    """Runs a random program on tensors and on the model at once."""

    def __init__(self, random: Random, roots: list[Item], planes: int) -> None:
        self.random, self.items, self.planes = random, roots, planes

    def pick(self, shape: tuple[int, ...] | None = None) -> Item:
        found = [item for item in self.items if shape is None or item.shape == shape]
        return self.random.choice(found)

    def view(self, item: Item) -> Item:
        """A view of the item, or of a view of it, or the item."""
        for _ in range(self.random.choice([0, 1, 1, 2])):
            steps = _steps(self.random, item)
            if steps is not None:
                item = Item(steps[0](item.tensor), steps[1](item.value).copy(), item, steps[1])
                if not np.shares_memory(item.place(), item.parent.place()):
                    return item.parent
        return item

    def number(self, value: float) -> np.ndarray:
        """A number with the derivative 0."""
        return np.array([value, 0][: self.planes]).reshape(self.planes)

    def plus(self, array: np.ndarray, value: float) -> np.ndarray:
        shape = (self.planes,) + (1,) * (array.ndim - 1)
        return (array + self.number(value).reshape(shape)).astype(array.dtype)

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.planes == 1:
            return a * b
        return np.stack([a[0] * b[0], a[1] * b[0] + a[0] * b[1]])

    def expression(self, item: Item) -> tuple[Tensor, np.ndarray]:
        """A value of the item's shape made from it and others."""
        kind = self.random.choice(["itself", "line", "sum", "product", "row sums", "flip"])
        t, m = item.tensor, item.value.copy()
        other = self.pick(item.shape) if any(i.shape == item.shape for i in self.items) else item
        if kind == "line":
            return t * 2 + 1, self.plus(m * 2, 1)
        if kind == "sum":
            return t + other.tensor, m + other.value
        if kind == "product":
            scaled = self.times(m, other.value)
            return (t * other.tensor, scaled) if self.planes == 1 else (t * other.tensor * 0.125, scaled * 0.125)
        if kind == "row sums" and item.shape:
            return t - t.sum(-1, keepdim=True), m - m.sum(-1, keepdims=True).astype(m.dtype)
        if kind == "flip" and item.shape:
            return t.flip(0), m[:, ::-1].copy()
        return t, m

    # --- actions ------------------------------------------------------------------------------------

    def read(self) -> None:
        tensor, model = self.expression(self.view(self.pick()))
        tensor = self.random.choice([tensor.clone, tensor.contiguous, lambda: Tensor(tensor)])()  # no view of anything
        self.items.append(Item(tensor, model))

    def keep_view(self) -> None:
        item = self.view(self.pick())
        if item not in self.items:
            self.items.append(item)

    def assign(self) -> None:
        target = self.view(self.pick())
        sources = [item for item in self.items if item.shape == target.shape] or [target]
        tensor, model = self.expression(self.random.choice(sources))
        target.tensor.assign(tensor)
        target.write(model)

    def fill(self) -> None:
        target = self.view(self.pick())
        target.tensor.assign(7)
        target.write(self.plus(np.zeros_like(target.value), 7))

    def update(self) -> None:
        target = self.view(self.pick())
        value = target.value.copy()
        tensor, model = self.expression(target)
        if self.random.random() < 0.5 or self.planes == 2:
            target.tensor += tensor
            target.write(value + model)
        else:
            target.tensor *= tensor
            target.write(self.times(value, model))

    def shift(self) -> None:
        target = self.pick()
        if target.shape and target.shape[0] > 1:
            there, back = ((slice(1, None), slice(None, -1)))[:: self.random.choice([1, -1])]
            self.set(target, there, target.tensor[back], target.place()[:, back].copy(), back)

    def set(self, target: Item, index: slice, tensor: Tensor, model: np.ndarray, back: slice) -> None:
        """Item assignment to a slice; the values are those that the target itself reads."""
        target.tensor[index] = tensor
        part = Item(target.tensor, model, target, lambda array: array[:, index])
        part.write(target.value[:, back].copy())

    def swap(self) -> None:
        target = self.pick()
        if target.parent is None and target.shape and target.shape[0] > 1:
            first, last = target.tensor[0].clone(), target.tensor[-1] + 0
            target.tensor[0], target.tensor[-1] = last, first
            target.value[:, [0, -1]] = target.value[:, [-1, 0]]

    def kernel(self) -> None:
        """A kernel written by hand, in place."""
        target = self.pick()
        if self.planes == 2 or not target.shape:
            return

        def add_three(memory: UOp) -> UOp:
            place = tuple([UOp.range(size, axis) for axis, size in enumerate(memory.shape)])
            return memory[place].store(memory[place] + 3)

        target.tensor.custom_kernel(fxn=add_three)
        target.write(target.value + 3)

    def bits(self) -> None:
        """A write through the bytes."""
        target = self.pick()
        if target.parent is None and self.planes == 1 and target.shape:
            target.tensor.bitcast("uint8")[..., ::4] = 1
            target.value.view(np.uint8)[..., ::4] = 1

    def realize(self) -> None:
        Tensor.realize(*[item.tensor for item in self.random.sample(self.items, min(2, len(self.items)))])

    def run(self, steps: int) -> None:
        actions = [
            self.read, self.read, self.keep_view, self.keep_view, self.assign, self.assign, self.fill, self.update,
            self.update, self.shift, self.swap, self.kernel, self.bits, self.realize, self.realize,
        ]  # fmt: skip
        for _ in range(steps):
            self.random.choice(actions)()


@pytest.fixture(autouse=True)
def _used_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """New memory holds anything but zeros, so that what is read before it is written shows."""
    allocate = Allocator.allocate

    def used(self: Allocator, size: int, *args: Any, **kwargs: Any) -> Handle:
        handle = allocate(self, size, *args, **kwargs)
        Device[self.device].copy_in(handle, memoryview(bytes([0xA5]) * size))
        return handle

    monkeypatch.setattr(Allocator, "allocate", used)


def _fuzzed(check: Callable[[Random, int], None], examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize="FUZZ_EXAMPLES" not in os.environ, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.integers(0, 1 << 32), st.integers(1, 14))
    def run(seed: int, steps: int) -> None:
        with Context(CACHE=0):
            check(Random(seed), steps)

    run()


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
def test_every_read_sees_the_writes_before_it_and_no_other(device: str) -> None:
    """A1, A4, A6, B001, B002, B005, B008."""

    def check(random: Random, steps: int) -> None:
        arrays = [np.arange(12, dtype=np.int32).reshape(1, *SHAPE) * k for k in (1, 10)]
        roots = [Item(Tensor(array[0], device=device), array.copy()) for array in arrays]
        roots.append(Item(Tensor.zeros(*SHAPE, dtype="int32", device=device), np.zeros((1, *SHAPE), np.int32)))
        machine = Machine(random, roots, 1)
        with np.errstate(over="ignore"):
            machine.run(steps)
        for item in random.sample(machine.items, len(machine.items)):
            np.testing.assert_array_equal(item.value[0], item.tensor.numpy())

    _fuzzed(check, EXAMPLES)


def test_gradients_are_those_of_the_out_of_place_form() -> None:
    """A3: whatever is realized on the way."""

    def check(random: Random, steps: int) -> None:
        numbers = np.random.default_rng(random.randrange(1 << 32))
        arrays = [np.stack([numbers.normal(0, 1, SHAPE), numbers.normal(0, 1, SHAPE)]) for _ in range(2)]
        leaves = [Tensor(array[0], requires_grad=True) for array in arrays]
        roots = [Item(leaf.clone(), array.copy()) for leaf, array in zip(leaves, arrays, strict=True)]
        roots.append(Item(Tensor.zeros(*SHAPE, dtype="float64"), np.zeros((2, *SHAPE))))
        machine = Machine(random, roots, 2)
        machine.run(steps)
        weights = [numbers.normal(0, 1, item.shape) for item in machine.items]
        loss = sum([(i.tensor * Tensor(w)).sum() for i, w in zip(machine.items, weights, strict=True)], Tensor(0.0))
        slope = sum(float((i.value[1] * w).sum()) for i, w in zip(machine.items, weights, strict=True))
        gradients = loss.gradient(*leaves)
        try:
            found = [float((g.numpy() * array[1]).sum()) for g, array in zip(gradients, arrays, strict=True)]
        except GradientError:  # an operand that descends from no leaf was realized and overwritten: it says so
            return
        scale = sum(float(np.abs(i.value * w).sum()) for i, w in zip(machine.items, weights, strict=True))
        assert abs(slope - sum(found)) <= 1e-9 * (1 + scale), f"{found} do not add up to {slope}"

    _fuzzed(check, EXAMPLES)
