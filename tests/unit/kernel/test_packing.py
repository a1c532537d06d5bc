"""A product that reads an operand from panels gives bit for bit what it gives when it copies the operand itself."""

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import Target, target
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel import packing as module
from lazulite.kernel.apply import apply
from lazulite.kernel.heuristic import choose
from lazulite.kernel.packing import Packing, packing
from lazulite.kernel.steps import Prefetch, Stage
from support.kernels import (
    TARGETS,
    compiled,
    convolution,
    interpreted,
    load,
    loop,
    matmul,
    param,
    random_memory,
    reduce,
    sink,
    store,
)

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every copy of an operand is worth memory of its own."""
    monkeypatch.setattr(module, "_WORTH", 0.0)
    monkeypatch.setattr(module, "_WORTH_LITTLE", 0.0)
    monkeypatch.setattr(module, "_LEAST", 0)


def batched(batch: int, rows: int, columns: int, depth: int) -> UOp:
    """Products of matrices of which the right ones are stored transposed."""
    b, i, j, k = map(loop, range(4), (batch, rows, columns, depth))
    left = load(param(1, batch * rows * depth), (b * rows + i) * depth + k)
    right = load(param(2, batch * columns * depth), (b * columns + j) * depth + k)
    place = (b * rows + i) * columns + j
    return sink(store(param(0, batch * rows * columns), place, reduce(ops.ADD, left * right, k)))


@st.composite
def products(draw: st.DrawFn) -> UOp:
    """Matrix products of both orders, batched ones, and convolutions."""
    small, side = st.integers(1, 20), st.integers(4, 70)
    kind = draw(st.sampled_from(["plain", "transposed", "batched", "convolution"]))
    if kind == "batched":
        return batched(draw(st.integers(1, 3)), draw(side), draw(side), draw(small))
    if kind == "convolution":
        return convolution(1, draw(small), draw(side), draw(st.integers(3, 9)), draw(st.integers(3, 20)))
    return matmul(draw(side), draw(st.integers(4, 200)), draw(small), right=kind == "transposed")


def filled(found: Packing, operand: np.ndarray) -> np.ndarray:
    """What the filling makes of an operand, by the interpreter."""
    empty = np.full(found.nbytes // 4, np.nan, np.float32)
    return interpreted(found.filling, {0: empty, 1: operand})[0]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=6)
@given(kernel=products(), chunks=st.integers(1, 3))
def test_panels_give_the_same_bits_on_every_machine(machine: str, kernel: UOp, chunks: int) -> None:
    found = packing(kernel, TARGETS[machine], {2})
    assume(found is not None)
    memory = random_memory(kernel, Random(3))
    wanted = compiled(kernel, TARGETS[machine], choose(kernel, TARGETS[machine]), memory)[0]
    panels = filled(found, memory[2])
    steps = choose(found.kernel, TARGETS[machine])
    result = compiled(found.kernel, TARGETS[machine], steps, {**memory, 2: panels}, chunks)[0]
    empty = {0: np.full_like(panels, np.nan), 1: memory[2]}

    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    assert not any(isinstance(step, Stage) and step.slot == 2 for step in steps)
    filling = compiled(found.filling, TARGETS[machine], choose(found.filling, TARGETS[machine]), empty)[0]
    assert filling.tobytes() == panels.tobytes()


@pytest.mark.usefixtures("always")
@settings(max_examples=8)
@given(kernel=products())
def test_the_interpreter_finds_the_same_elements_in_panels(kernel: UOp) -> None:
    found = packing(kernel, WIDE, {2})
    assume(found is not None)
    memory = random_memory(kernel, Random(4))
    panels = filled(found, memory[2])

    assert interpreted(kernel, memory)[0].tobytes() == interpreted(found.kernel, {**memory, 2: panels})[0].tobytes()


def the_packing(kernel: UOp, *still: int, machine: Target = WIDE) -> Packing | None:
    return packing(kernel, machine, frozenset(still))


def test_only_memory_that_stays_as_it_is_gets_panels_and_only_where_copies_count() -> None:
    few, many = convolution(1, 512, 512, 7, 7), convolution(64, 512, 512, 7, 7)

    assert the_packing(few) is None
    assert the_packing(few, 1) is None, "windows over an image are copied with their border"
    assert the_packing(few, 1, 2) is not None
    assert the_packing(many, 2) is None


def test_what_is_converted_or_read_twice_gets_none() -> None:
    i, j, k = map(loop, range(3), (100, 250, 640))
    a, b = load(param(1, 100 * 640), i * 640 + k), load(param(2, 250 * 640, dtypes.float16), j * 640 + k)
    converted = sink(store(param(0, 100 * 250), i * 250 + j, reduce(ops.ADD, a * b.cast(dtypes.float32), k)))
    c = load(param(2, 250 * 640), j * 640 + k)
    twice = reduce(ops.ADD, a * c, k) + load(param(2, 250 * 640), j)

    assert the_packing(converted, 2) is None
    assert the_packing(sink(store(param(0, 100 * 250), i * 250 + j, twice)), 2) is None
    assert the_packing(sink(store(param(0, 100 * 250), i * 250 + j, reduce(ops.ADD, a * c, k))), 2) is not None


def test_panels_that_no_cache_holds_are_asked_for_before_they_are_read() -> None:
    near, far = (the_packing(convolution(1, c, c, 7, 7), 2) for c in (128, 512))
    assert near is not None and far is not None

    assert not any(isinstance(step, Prefetch) for step in choose(near.kernel, WIDE))
    assert [step.slot for step in choose(far.kernel, WIDE) if isinstance(step, Prefetch)] == [2]


def test_there_is_no_gate_inside_of_the_sum_where_panels_have_room() -> None:
    found = the_packing(matmul(100, 250, 512, right=True), 2)
    assert found is not None
    loads = [node for node in toposort(apply(found.kernel, choose(found.kernel, WIDE))) if node.op is ops.LOAD]

    assert [len(each.src) for each in loads if each.src[0].arg[0] == 2] == [2]
