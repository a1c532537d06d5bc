"""Kernels for tests: built by hand, drawn at random with legal steps, and run compiled or interpreted."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.evaluate_kernel import run_kernel
from lazulite.ir.target import Target, host
from lazulite.ir.uop import UOp, index, toposort
from lazulite.ir.verify import verify
from lazulite.kernel.apply import apply
from lazulite.kernel.steps import Group, Keep, Name, Partition, Reorder, Split, Stage, Step, Tile, Vectorize
from lazulite.pipeline import compile_kernel, lower
from lazulite.runtime.loader import load_object

TARGETS = {"widest": host(), "avx2": host("-avx512f"), "sse2": host("-sse3")}
NUMPY = {dtypes.float32: np.float32, dtypes.float64: np.float64, dtypes.int32: np.int32, dtypes.int8: np.int8,
         dtypes.int64: np.int64, dtypes.bool: np.bool_, dtypes.float16: np.float16, dtypes.uint8: np.uint8,
         dtypes.int16: np.int16, dtypes.uint32: np.uint32, dtypes.uint64: np.uint64,
         dtypes.bfloat16: np.float32}  # fmt: skip
"""What holds the values of a type; bfloat16 is widened."""
Memory = dict[int, np.ndarray]
"""The contents of each argument: an array of one axis, or of none for a scalar."""

# --- building ----------------------------------------------------------------------------------


def param(slot: int, size: int, dtype: DType = dtypes.float32) -> UOp:
    return UOp(ops.PARAM, dtype, (), (slot, (size,), "CPU"))


def loop(order: int, extent: int) -> UOp:
    return UOp(ops.RANGE, dtypes.index, (index(extent),), ((order,), "loop"))


def load(memory: UOp, place: UOp, *gate: UOp) -> UOp:
    return UOp(ops.LOAD, memory.dtype, (memory, place, *gate))


def store(memory: UOp, place: UOp, value: UOp, *gate: UOp) -> UOp:
    return UOp(ops.STORE, dtypes.void, (memory, place, value, *gate))


def reduce(op: ops.Op, value: UOp, *ranges: UOp) -> UOp:
    return UOp(ops.REDUCE, value.dtype, (value, *ranges), (op, ()))


def sink(*stores: UOp) -> UOp:
    return UOp(ops.SINK, dtypes.void, stores)


def matmul(m: int, n: int, k: int, dtype: DType = dtypes.float32, left: bool = False, right: bool = False) -> UOp:
    """relu(a @ b + bias); `left` and `right` say which operand is stored transposed."""
    i, j, p = loop(0, m), loop(1, n), loop(2, k)
    a = load(param(1, m * k, dtype), p * m + i if left else i * k + p)
    b = load(param(2, k * n, dtype), j * k + p if right else p * n + j)
    total = reduce(ops.ADD, a * b, p) + load(param(3, n, dtype), j)
    return sink(store(param(0, m * n, dtype), i * n + j, total.maximum(0)))


def softmax(m: int, n: int) -> UOp:
    """The softmax of each row."""
    i, j, p, q = loop(0, m), loop(1, n), loop(2, n), loop(3, n)
    x = param(1, m * n)
    top = reduce(ops.MAX, load(x, i * n + p), p)
    total = reduce(ops.ADD, UOp.apply(ops.EXP, load(x, i * n + q) - top), q)
    value = UOp.apply(ops.EXP, load(x, i * n + j) - top) / total
    return sink(store(param(0, m * n), i * n + j, value))


def convolution(images: int, inputs: int, outputs: int, height: int, width: int, dtype: DType = dtypes.float32) -> UOp:
    """A 3x3 convolution of NCHW images with a border of zeros."""
    n, o, y, x, c, p, q = (
        loop(order, extent) for order, extent in enumerate((images, outputs, height, width, inputs, 3, 3))
    )
    row, column = y + p + -1, x + q + -1
    inside = (index(0) <= row) & (row < height) & (index(0) <= column) & (column < width)
    image = param(1, images * inputs * height * width, dtype)
    pixel = load(image, ((n * inputs + c) * height + row) * width + column, inside)
    weight = load(param(2, outputs * inputs * 9, dtype), ((o * inputs + c) * 3 + p) * 3 + q)
    place = ((n * outputs + o) * height + y) * width + x
    result = param(0, images * outputs * height * width, dtype)
    return sink(store(result, place, reduce(ops.ADD, pixel * weight, c, p, q)))


def input_gradient(
    images: int, inputs: int, outputs: int, height: int, width: int, dtype: DType = dtypes.float32
) -> UOp:  # fmt: skip
    """What such a convolution passes back to its images: products with pixels beyond the border do not exist."""
    n, c, y, x, p, q, o = (
        loop(order, extent) for order, extent in enumerate((images, inputs, height, width, 3, 3, outputs))
    )
    inside = (p < y + 2) & (y < p + (height - 1)) & (q < x + 2) & (x < q + (width - 1))
    upstream = param(1, images * outputs * height * width, dtype)
    pixel = load(upstream, ((n * outputs + o) * height + (y - p + 1)) * width + (x - q + 1), inside)
    weight = load(param(2, outputs * inputs * 9, dtype), ((o * inputs + c) * 3 + p) * 3 + q)
    place = ((n * inputs + c) * height + y) * width + x
    total = reduce(ops.ADD, inside.where(pixel * weight, 0), p, q, o)
    return sink(store(param(0, images * inputs * height * width, dtype), place, total))


# --- drawing -----------------------------------------------------------------------------------


def _elementwise(rng: Random, dtype: DType) -> UOp:
    m, n = rng.randint(1, 9), rng.randint(1, 40)
    i, j = loop(0, m), loop(1, n)
    x, y = load(param(1, m * n, dtype), i * n + j), load(param(2, n, dtype), j)
    z = load(param(3, m * n, dtype), j * m + i)
    return sink(store(param(0, m * n, dtype), i * n + j, (x + y) * z.maximum(0)))


def _row_reduction(rng: Random, dtype: DType) -> UOp:
    m, n = rng.randint(1, 9), rng.randint(1, 70)
    i, k = loop(0, m), loop(1, n)
    x = load(param(1, m * n, dtype), i * n + k)
    return sink(store(param(0, m, dtype), i, reduce(rng.choice([ops.ADD, ops.MAX, ops.MIN]), x * x, k)))


def _column_reduction(rng: Random, dtype: DType) -> UOp:
    m, n = rng.randint(1, 20), rng.randint(1, 40)
    j, k = loop(0, n), loop(1, m)
    return sink(store(param(0, n, dtype), j, reduce(ops.ADD, load(param(1, m * n, dtype), k * n + j), k)))


def _matmul(rng: Random, dtype: DType) -> UOp:
    return matmul(rng.randint(1, 12), rng.randint(1, 40), rng.randint(1, 20), dtype, rng.random() < 0.3,
                  rng.random() < 0.3)  # fmt: skip


def _convolution(rng: Random, dtype: DType) -> UOp:
    return convolution(1, rng.randint(1, 3), rng.randint(1, 6), rng.randint(3, 6), rng.randint(3, 20), dtype)


def _input_gradient(rng: Random, dtype: DType) -> UOp:
    return input_gradient(1, rng.randint(1, 6), rng.randint(1, 3), rng.randint(1, 6), rng.randint(1, 20), dtype)


def _normalised(rng: Random, dtype: DType) -> UOp:
    """A chain of two reductions of a row and a store that reads the row again."""
    m, n = rng.randint(1, 9), rng.randint(1, 50)
    i, j, p, q = loop(0, m), loop(1, n), loop(2, n), loop(3, n)
    x = param(1, m * n, dtype)
    top = reduce(ops.MAX, load(x, i * n + p), p)
    total = reduce(ops.ADD, (load(x, i * n + q) + top) * 2, q)
    return sink(store(param(0, m * n, dtype), i * n + j, (load(x, i * n + j) + top) * 2 + total))


def _gated(rng: Random, dtype: DType) -> UOp:
    """Gates, a quotient and a remainder of ranges, a reversed axis, and an index as a value."""
    m, n = rng.randint(1, 9), rng.randint(2, 40)
    i, j = loop(0, m), loop(1, n)
    before = load(param(1, m * n, dtype), i * n + j + -1, index(1) <= j)
    chosen = (j < n // 2).where(before, (i * n + j).cast(dtype))
    strange = load(param(2, m * n + 5, dtype), (i * n + j) // 3 + (j % 5))
    reverse = load(param(3, n, dtype), j * -1 + (n - 1))
    return sink(store(param(0, m * n, dtype), i * n + j, chosen + strange + reverse, (j % 2).eq(0) | (i < 3)))


def _gathered(rng: Random, dtype: DType) -> UOp:
    m, n = rng.randint(1, 30), rng.randint(1, 40)
    i = loop(0, n)
    place = load(param(2, n, dtypes.int32), i).cast(dtypes.index)
    inside = (index(0) <= place) & (place < m)
    return sink(store(param(0, n, dtype), i, load(param(1, m, dtype), place, inside)))


def _several_stores(rng: Random, dtype: DType) -> UOp:
    m, n = rng.randint(1, 9), rng.randint(1, 40)
    i, j, k = loop(0, m), loop(1, n), loop(2, n)
    x, row = load(param(1, m * n, dtype), i * n + j), load(param(1, m * n, dtype), i * n + k)
    total, top = reduce(ops.ADD, row, k), reduce(ops.MAX, row, k)
    return sink(store(param(0, m * n, dtype), i * n + j, x + total),
                store(param(2, m * n, dtype), i * n + j, x * top), store(param(3, m, dtype), i, total))  # fmt: skip


def _softmax(rng: Random, dtype: DType) -> UOp:
    return softmax(rng.randint(1, 9), rng.randint(1, 5))


_FAMILIES: tuple[Callable[[Random, DType], UOp], ...] = (
    _elementwise, _row_reduction, _column_reduction, _matmul, _convolution, _input_gradient, _normalised,
    _gated, _gathered, _several_stores, _softmax,
)  # fmt: skip


def random_kernel(rng: Random) -> UOp:
    """A small kernel of one of the families."""
    dtype = rng.choice([dtypes.float32, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int8])
    return rng.choice(_FAMILIES)(rng, dtype)


def random_steps(kernel: UOp, rng: Random) -> tuple[Step, ...]:
    """Steps for a kernel; most such lists are legal."""
    nodes = toposort(kernel)
    reduced = {r for node in nodes if node.op is ops.REDUCE for r in node.src[1:]}
    leaves = {n.arg[0]: (int(n.src[0].value), n in reduced) for n in nodes if n.op is ops.RANGE}
    steps: list[Step] = []
    kept = _maybe_keep(leaves, rng)
    for name in [name for name in leaves if name not in kept]:
        parts = _maybe_partition(name, leaves, steps, rng)
        for part in parts:
            if rng.random() < 0.6:
                _split(part, rng.randint(1, 7), leaves, steps)
    marked = _mark({name: leaf for name, leaf in leaves.items() if name not in kept}, steps, rng)
    loops = [name for name, (_, reduces) in leaves.items() if not reduces and name not in marked]
    if len(loops) > 1 and rng.random() < 0.5:
        rng.shuffle(loops)
        steps.append(Reorder(tuple(loops)))
    inner = [name for name, (_, reduces) in leaves.items() if reduces and name not in marked]
    if inner and rng.random() < 0.2:
        steps.append(Group(rng.choice(inner)))
    axes = tuple([name for name in leaves if rng.random() < 0.6])
    if axes and rng.random() < 0.3:
        steps.append(Stage(rng.choice([1, 2]), axes))
    return (*steps, Keep(*kept)) if kept else tuple(steps)


_Leaves = dict[Name, tuple[int, bool]]
_MOST_ELEMENTS = 40


def _maybe_keep(leaves: _Leaves, rng: Random) -> list[Name]:
    """A range of a reduction and one of the stores with as many turns, which are then left whole; or none."""
    pairs = [[a, b] for a, (turns, reduces) in leaves.items() for b, other in leaves.items()
             if reduces and other == (turns, False)]  # fmt: skip
    return rng.choice(pairs) if pairs and rng.random() < 0.5 else []


def _maybe_partition(name: Name, leaves: _Leaves, steps: list[Step], rng: Random) -> list[Name]:
    extent, reduces = leaves[name]
    if extent == 1 or rng.random() >= 0.3:
        return [name]
    at = rng.randint(1, extent - 1)
    steps.append(Partition(name, at))
    del leaves[name]
    leaves[*name, 0], leaves[*name, 1] = (at, reduces), (extent - at, reduces)
    return [(*name, 0), (*name, 1)]


def _split(name: Name, factor: int, leaves: _Leaves, steps: list[Step]) -> None:
    extent, reduces = leaves.pop(name)
    steps.append(Split(name, factor))
    leaves[*name, 0], leaves[*name, 1] = (-(-extent // factor), reduces), (factor, reduces)


def _mark(leaves: _Leaves, steps: list[Step], rng: Random) -> set[Name]:
    """At most one range of lanes, and some rows; not so many that they fill pages of instructions."""
    small = [name for name, (extent, _) in leaves.items() if extent <= 16]
    rng.shuffle(small)
    marked: set[Name] = set()
    elements = 1
    for name in small:
        extent = leaves[name][0]
        if elements * extent > _MOST_ELEMENTS:
            continue
        if not marked and len(name) > 1 and name[-1] == 1:
            steps.append(Vectorize(name))
        elif extent <= 5 and rng.random() < 0.4:
            steps.append(Tile(name))
        else:
            continue
        marked.add(name)
        elements *= extent
    return marked


def legal(kernel: UOp, steps: tuple[Step, ...]) -> bool:
    """Whether the steps can be applied."""
    try:
        apply(kernel, steps)
    except StageError:
        return False
    return True


# --- running -----------------------------------------------------------------------------------


def random_memory(kernel: UOp, rng: Random) -> Memory:
    """Contents for every argument."""
    numbers = np.random.default_rng(rng.randint(0, 1 << 30))
    memory: Memory = {}
    for slot, node in sorted(_arguments(kernel).items()):
        size = node.arg[1] if node.op is ops.PARAM else ()
        values = _random_values(numbers, node.dtype, size)
        memory[slot] = np.asarray(values).astype(NUMPY[node.dtype])
        if node.dtype is dtypes.bfloat16:
            memory[slot] = _from_bits(_to_bits(memory[slot]))
    return memory


def _random_values(numbers: np.random.Generator, dtype: DType, size: tuple[int, ...]) -> np.ndarray:
    if dtype.is_float:
        return numbers.standard_normal(size) if size else numbers.uniform(0.1, 1.5)
    least, end = {"bool": (0, 2), "int": (-5, 30), "uint": (0, 30)}[dtype.kind]
    return numbers.integers(least, end, size)


def turns(root: UOp) -> int:
    """How many nodes the interpreter computes for a program, each once for every turn of the loops around it."""
    total = 0
    for node in toposort(root):
        count = 1
        for r in node.ranges:
            count *= int(r.vmax) + 1
        total += count
    return total


def interpreted(root: UOp, memory: Memory) -> Memory:
    """The memory after the interpreter ran a kernel in any of its languages."""
    lists = {slot: values.tolist() for slot, values in memory.items() if values.ndim}
    run_kernel(root, lists, {slot: values.item() for slot, values in memory.items() if not values.ndim})
    return {slot: np.array(lists.get(slot, values), values.dtype) for slot, values in memory.items()}


def compiled(kernel: UOp, target: Target, steps: tuple[Step, ...], memory: Memory, chunks: int = 1) -> Memory:
    """The memory after the machine ran a kernel, its parallel range cut into chunks.

    The last chunk runs first, and each has scratch memory of its own that is full of ones in every bit.
    """
    binary = compile_kernel(kernel, target, steps)
    function = load_object(binary.code).function(binary.name)
    narrow = [slot for slot, node in _arguments(kernel).items() if node.dtype is dtypes.bfloat16]
    after = {slot: _to_bits(values) if slot in narrow else values.copy() for slot, values in memory.items()}
    addresses = (ctypes.c_uint64 * (max(after) + 1))()
    for slot, values in after.items():
        bits = int.from_bytes(values.tobytes()[:8], "little")
        addresses[slot] = values.ctypes.data if values.ndim else bits
    cuts = [binary.parallel * turn // chunks for turn in range(chunks + 1)]
    for begin, end in reversed(list(itertools.pairwise(cuts))):
        scratch = np.full(binary.scratch_bytes + 64, 255, np.uint8)
        place = scratch.ctypes.data + -scratch.ctypes.data % 64
        function(ctypes.byref(addresses), ctypes.c_int64(begin), ctypes.c_int64(end), ctypes.c_void_p(place))
    return {slot: _from_bits(values) if slot in narrow else values for slot, values in after.items()}


def _arguments(kernel: UOp) -> dict[int, UOp]:
    return {node.arg[0]: node for node in toposort(kernel) if node.op in (ops.PARAM, ops.SCALAR)}


def _to_bits(values: np.ndarray) -> np.ndarray:
    """The upper halves of float32 values."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def _from_bits(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.uint32) << 16).view(np.float32)


def lowered(kernel: UOp, target: Target, steps: tuple[Step, ...] = ()) -> UOp:
    """The kernel as `LINEAR`, verified after every stage."""
    return lower(kernel, target, steps, lambda stage, before, after: verify(after, stage.writes, stage.name))


def assert_close(expected: Memory, found: Memory) -> None:
    """Equal for integers; for floats within what another order of additions explains."""
    for slot, values in expected.items():
        if values.dtype.kind == "f":
            tolerance = 2e-3 if values.dtype == np.float16 else 1e-4
            finite = np.abs(values[np.isfinite(values)].astype(np.float64))
            scale = tolerance * (1 + float(finite.max(initial=0)))
            np.testing.assert_allclose(found[slot], values, rtol=tolerance, atol=scale)
        else:
            np.testing.assert_array_equal(found[slot], values)


def listed(root: UOp, op: ops.Op) -> Sequence[UOp]:
    """The nodes of a graph with this operation."""
    return [node for node in toposort(root) if node.op is op]
