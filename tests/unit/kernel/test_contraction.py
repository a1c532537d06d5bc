"""Sums of products of every shape are computed right, alike on any number of threads, and blocked for the caches."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.target import target
from lazulite.ir.uop import UOp, index, substitute, toposort
from lazulite.kernel.contraction import choose_product
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Parallel, Reorder, Stage, names
from support.kernels import TARGETS, compiled, load, loop, lowered, matmul, param, random_memory, reduce, sink, store

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


@dataclass(frozen=True)
class Window:
    """A convolution of one axis pair: sizes, and how the window moves."""

    images: int
    groups: int
    inputs: int
    outputs: int
    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    @property
    def places(self) -> int:
        return (self.size + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    def kernel_of(self) -> UOp:
        """The convolution as the compiler sees it."""
        n, g, o, y, x, c, p, q = map(loop, range(8), (self.images, self.groups, self.outputs, self.places, self.places,
                                                      self.inputs, self.kernel, self.kernel))  # fmt: skip
        row, column = (
            place * self.stride + window * self.dilation + -self.padding for place, window in ((y, p), (x, q))
        )
        gates = []
        if self.padding:
            inside = (index(0) <= row) & (row < self.size) & (index(0) <= column) & (column < self.size)
            gates = [inside]
        image = ((n * self.groups + g) * self.inputs + c) * (self.size * self.size) + row * self.size + column
        pixels = self.images * self.groups * self.inputs * self.size**2
        weight = (((g * self.outputs + o) * self.inputs + c) * self.kernel + p) * self.kernel + q
        weights = self.groups * self.outputs * self.inputs * self.kernel**2
        product = load(param(1, pixels), image, *gates) * load(param(2, weights), weight)
        place = ((n * self.groups + g) * self.outputs + o) * self.places**2 + y * self.places + x
        result = param(0, self.images * self.groups * self.outputs * self.places**2)
        return sink(store(result, place, reduce(ops.ADD, product, c, p, q)))

    def expected(self, memory: dict[int, np.ndarray]) -> np.ndarray:
        shape = (self.images, self.groups, self.inputs, self.size, self.size)
        around = ((0, 0),) * 3 + ((self.padding, self.padding),) * 2
        image = np.pad(memory[1].astype(np.float64).reshape(shape), around)
        weights = memory[2].astype(np.float64).reshape(self.groups, self.outputs, self.inputs, self.kernel, self.kernel)
        total = np.zeros((self.images, self.groups, self.outputs, self.places, self.places))
        for p in range(self.kernel):
            for q in range(self.kernel):
                rows = slice(p * self.dilation, p * self.dilation + self.stride * (self.places - 1) + 1, self.stride)
                cols = slice(q * self.dilation, q * self.dilation + self.stride * (self.places - 1) + 1, self.stride)
                total += np.einsum("ngcyx,goc->ngoyx", image[..., rows, cols], weights[..., p, q])
        return total


@st.composite
def windows(draw: st.DrawFn) -> Window:
    kernel, dilation, padding = (draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(0, 2)))
    least = max(1, dilation * (kernel - 1) + 1 - 2 * padding)
    return Window(
        draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 20)), draw(st.integers(4, 40)),
        draw(st.integers(least, least + 20)), kernel, draw(st.integers(1, 2)), padding, dilation,
    )  # fmt: skip


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=25)
@given(window=windows(), chunks=st.integers(1, 4))
def test_a_convolution_is_right_on_every_machine_and_on_any_number_of_threads(machine, window, chunks):
    kernel = window.kernel_of()
    memory = random_memory(kernel, Random(3))
    steps = choose(kernel, TARGETS[machine])
    lowered(kernel, TARGETS[machine], steps)
    once = compiled(kernel, TARGETS[machine], steps, memory)[0]
    often = compiled(kernel, TARGETS[machine], steps, memory, chunks)[0]
    expected = window.expected(memory)

    assert once.tobytes() == often.tobytes()
    np.testing.assert_allclose(once.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


_TYPES = (dtypes.float32, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=25)
@given(
    sizes=st.tuples(st.integers(1, 70), st.integers(1, 150), st.sampled_from([1, 2, 7, 64, 700, 769, 1021])),
    left=st.booleans(), right=st.booleans(), dtype=st.sampled_from(_TYPES), chunks=st.integers(1, 4),
)  # fmt: skip
def test_a_product_is_right_on_every_machine_and_on_any_number_of_threads(machine, sizes, left, right, dtype, chunks):
    m, n, k = sizes
    kernel = matmul(m, n, k, dtype, left, right)
    memory = random_memory(kernel, Random(5))
    steps = choose(kernel, TARGETS[machine])
    lowered(kernel, TARGETS[machine], steps)
    once = compiled(kernel, TARGETS[machine], steps, memory)[0]
    often = compiled(kernel, TARGETS[machine], steps, memory, chunks)[0]

    assert once.tobytes() == often.tobytes()
    np.testing.assert_allclose(once.reshape(m, n), _expected(memory, m, n, k, dtype, left, right), rtol=1e-4, atol=1e-3)


def _expected(memory, m: int, n: int, k: int, dtype: DType, left: bool, right: bool) -> np.ndarray:
    wide = np.float64 if dtype.is_float else memory[0].dtype
    a, b = memory[1].astype(wide), memory[2].astype(wide)
    a = a.reshape(k, m).T if left else a.reshape(m, k)
    b = b.reshape(n, k).T if right else b.reshape(k, n)
    with np.errstate(over="ignore"):
        return np.maximum(a @ b + memory[3].astype(wide), 0)


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=25)
@given(
    sizes=st.tuples(st.integers(8, 70), st.integers(8, 90), st.sampled_from([7, 64, 700])),
    axis=st.sampled_from([0, 1]), taken=st.floats(0, 1),
    left=st.booleans(), right=st.booleans(), chunks=st.integers(1, 4),
)  # fmt: skip
def test_a_product_of_rows_or_columns_whose_number_varies_is_blocked_too(
    machine, sizes, axis, taken, left, right, chunks
):
    (m, n, k), turns = sizes, [sizes[0], sizes[1]]
    turns[axis] = round(taken * sizes[axis])
    whole = matmul(m, n, k, left=left, right=right)
    kernel = _varying(whole, axis, sizes[axis])
    memory = random_memory(whole, Random(5)) | {4: np.asarray(turns[axis])}
    steps = choose(kernel, TARGETS[machine])
    found = compiled(kernel, TARGETS[machine], steps, memory, chunks)[0].reshape(m, n)
    expected = memory[0].reshape(m, n).copy()
    product = _expected(memory, m, n, k, dtypes.float32, left, right)
    expected[: turns[0], : turns[1]] = product[: turns[0], : turns[1]]

    assert choose_product(KernelFacts(kernel, TARGETS[machine])) == steps
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def _varying(kernel: UOp, axis: int, most: int) -> UOp:
    """The kernel with so many turns of an axis as an argument says."""
    (r,) = [node for node in toposort(kernel) if node.op is ops.RANGE and node.arg[0] == (axis,)]
    turns = UOp(ops.SCALAR, dtypes.index, (), (4, 0, most))
    return substitute([kernel], {r: r.replace(src=(turns,))})[0]


def test_a_long_sum_is_made_in_blocks():
    """Their partial sums wait in the result, so the error is that of a block and of the number of blocks."""
    kernel = sink(*matmul(64, 64, 4096).src)
    linear = lowered(kernel, WIDE, choose(kernel, WIDE))
    loops = [int(node.src[0].src[0].vmax) for node in linear.src if node.op is ops.FOR]

    assert 4 in loops
    assert max(loops) <= 1280


def test_a_window_is_copied_with_its_border():
    """Its places and its elements share an axis of the copy."""
    steps = choose(Window(1, 1, 16, 64, 56, 3, 1, 1, 1).kernel_of(), WIDE)
    (stage,) = [step for step in steps if isinstance(step, Stage) and step.slot == 1]

    assert 2 == sum(len(names(axis)) > 1 for axis in stage.axes)


def test_a_thread_copies_no_more_of_an_image_than_its_windows_read():
    """Threads share blocks of rows, and a block is what is copied: not the image for each of them."""
    steps = choose(Window(1, 1, 16, 64, 56, 3, 1, 1, 1).kernel_of(), WIDE)
    (stage,) = [step for step in steps if isinstance(step, Stage) and step.slot == 1]
    (shared,) = [step.range for step in steps if isinstance(step, Parallel)]

    assert shared not in [name for axis in stage.axes for name in names(axis)]


def test_weights_are_copied_once_for_all_images():
    steps = choose_product(KernelFacts(Window(8, 1, 256, 256, 14, 3, 1, 1, 1).kernel_of(), WIDE)) or ()
    (order,) = [step.ranges for step in steps if isinstance(step, Reorder)]
    image, channels = (next(at for at, name in enumerate(order) if name[0] == r) for r in (0, 5))

    assert channels < image


def test_columns_are_shared_where_there_are_many_and_else_rows():
    def shared(m: int, n: int) -> int:
        (step,) = [s for s in choose(matmul(m, n, 512), WIDE) if isinstance(s, Parallel)]
        return step.range[0]

    assert 1 == shared(512, 512)
    assert 0 == shared(4096, 64)


def test_a_product_with_a_vector_is_left_to_others():
    assert choose_product(KernelFacts(matmul(1, 4096, 512), WIDE)) is None


def _gradient_of_a_kernel(images: int, inputs: int, outputs: int, size: int) -> UOp:
    """What an image and the gradient of its convolution say about a kernel of 3 x 3: windows as large as the image."""
    o, c, p, q, n, y, x = map(loop, range(7), (outputs, inputs, 3, 3, images, size, size))
    row, column = y + p + -1, x + q + -1
    inside = (index(0) <= row) & (row < size) & (index(0) <= column) & (column < size)
    image = load(param(1, images * inputs * size**2), ((n * inputs + c) * size + row) * size + column, inside)
    upstream = load(param(2, images * outputs * size**2), ((n * outputs + o) * size + y) * size + x)
    place = ((o * inputs + c) * 3 + p) * 3 + q
    return sink(store(param(0, outputs * inputs * 9), place, reduce(ops.ADD, upstream * image, n, y, x)))


@pytest.mark.parametrize(
    "kernel", [_gradient_of_a_kernel(2, 8, 64, 28), Window(1, 1, 16, 128, 28, 3, 1, 1, 1).kernel_of()]
)
def test_how_threads_share_the_work_does_not_show_in_the_result(kernel):
    """The steps may go by the number of threads: what is added up in which order does not."""
    memory = random_memory(kernel, Random(8))
    results = set()
    for threads in (1, 2, 8):
        machine = replace(TARGETS["widest"], threads=threads)
        results.add(compiled(kernel, machine, choose(kernel, machine), memory, threads)[0].tobytes())

    assert len(results) == 1


def test_a_factor_may_follow_from_positions_alone() -> None:
    """As the unit matrix of a derivative does: nothing is loaded for it."""
    i, j, n, k = loop(0, 12), loop(1, 3), loop(2, 4), loop(3, 4)
    unit = i.eq(j * 4 + k).cast(dtypes.float32)
    total = reduce(ops.ADD, unit * load(param(0, 16), n + k * 4), k)
    kernel = sink(store(param(1, 144), i * 12 + j * 4 + n, total))
    left = np.random.default_rng(0).normal(size=16).astype(np.float32)
    memory = {0: left, 1: np.zeros(144, np.float32)}
    found = compiled(kernel, TARGETS["widest"], choose(kernel, TARGETS["widest"]), memory)[1]

    expected = np.einsum("ijk,kn->ijn", np.eye(12, dtype=np.float32).reshape(12, 3, 4), left.reshape(4, 4))
    assert expected.ravel().tolist() == list(found)


def test_a_sum_over_products_is_not_shared_by_threads() -> None:
    """Where all results are in registers, the outermost loop is that of the sum."""
    j, i, k = loop(0, 11), loop(1, 512), loop(2, 256)
    product = reduce(ops.ADD, load(param(1, 512 * 256), i * 256 + k) * load(param(2, 256 * 11), k * 11 + j), k)
    total = reduce(ops.ADD, (product > 0.0).where(product, UOp.const(dtypes.float32, 0.0)), i)
    steps = choose(sink(store(param(0, 11), j, total)), WIDE)

    assert not [step for step in steps if isinstance(step, Parallel)]
