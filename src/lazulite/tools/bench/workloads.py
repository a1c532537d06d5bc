"""What is timed, as data: small programs with fixed shapes, spelled once for all libraries.

A `Workload` has inputs and a formula in the words of `words`.  `SUITES` lists the workloads of each suite, at
full size and at a size that only shows that they work; those of whole networks are in `models`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from lazulite.tools.bench import models
from lazulite.tools.bench.inputs import halves, normal, permuted, places, positive
from lazulite.tools.bench.words import Words
from lazulite.tools.bench.workload import Workload, count_text

# --- products ------------------------------------------------------------------------------------


def matmul(rows: int, inner: int, columns: int) -> Workload:
    return Workload(
        f"matmul, {rows} x {inner} x {columns}",
        (normal(rows, inner), normal(inner, columns)),
        lambda words, a, b: a @ b,
        flops=2 * rows * inner * columns,
    )


def matmul_bfloat16(size: int) -> Workload:
    return Workload(
        f"matmul bfloat16, {size} x {size} x {size}",
        (halves(size, size), halves(size, size)),
        lambda words, a, b: a @ b,
        tolerance=1e-2,
    )


def matrix_by_vector(rows: int, columns: int) -> Workload:
    return Workload(
        f"matmul with a vector, {rows} x {columns}",
        (normal(rows, columns), normal(columns)),
        lambda words, a, x: a @ x,
        streams=True,
    )


def convolution(kernel: int, batch: int, channels: int, side: int) -> Workload:
    """With padding, as many channels out as in."""
    return Workload(
        f"convolution {kernel} x {kernel}, {batch} x {channels} x {side} x {side}",
        (normal(batch, channels, side, side), normal(channels, channels, kernel, kernel)),
        lambda words, x, weight: words.conv2d(x, weight, padding=kernel // 2),
        flops=2 * batch * channels**2 * side**2 * kernel**2,
    )


def attention(heads: int, length: int, size: int, causal: bool) -> Workload:
    """The scores that are masked out are not counted as work."""
    return Workload(
        f"attention{', causal' if causal else ''}, {heads} x {length} x {size}",
        (normal(heads, length, size),) * 3,
        lambda words, queries, keys, values: words.attention(queries, keys, values, causal),
        flops=4 * heads * size * (length * (length + 1) // 2 if causal else length**2),
    )


# --- elements and rows ---------------------------------------------------------------------------


def chain(size: int) -> Workload:
    """One pass over three operands with an exponential in it."""
    return Workload(
        f"silu(x) * y + z, {count_text(size)} elements",
        (normal(size),) * 3,
        lambda words, x, y, z: words.silu(x) * y + z,
        streams=True,
    )


def exponential(size: int) -> Workload:
    return Workload(f"exp, {count_text(size)} elements", (normal(size),), lambda words, x: words.exp(x), streams=True)


def softmax(rows: int, columns: int) -> Workload:
    return Workload(
        f"softmax, {rows} x {columns}", (normal(rows, columns),), lambda words, x: words.softmax(x), streams=True
    )


def layer_norm(rows: int, columns: int) -> Workload:
    return Workload(
        f"layer norm, {rows} x {columns}", (normal(rows, columns),), lambda words, x: words.layer_norm(x), streams=True
    )


def total(size: int) -> Workload:
    return Workload(
        f"sum, {count_text(size)} elements", (positive(size),), lambda words, x: words.total(x), streams=True
    )


# --- places --------------------------------------------------------------------------------------


def embedding(vocabulary: int, width: int, length: int) -> Workload:
    return Workload(
        f"embedding, {length} of {vocabulary} x {width}",
        (normal(vocabulary, width), places(vocabulary, length)),
        lambda words, table, tokens: words.rows(table, tokens),
    )


def gather(rows: int, columns: int) -> Workload:
    return Workload(
        f"gather, {rows} x {columns}",
        (normal(rows, columns), places(columns, rows, columns)),
        lambda words, x, where: words.gather(x, where),
    )


def scatter(rows: int, columns: int) -> Workload:
    return Workload(
        f"scatter add, {rows} x {columns}",
        (normal(rows, columns), permuted(rows, columns), normal(rows, columns)),
        lambda words, x, where, source: words.scatter_add(x, where, source),
    )


def sort(rows: int, columns: int) -> Workload:
    return Workload(f"sort, {rows} x {columns}", (normal(rows, columns),), lambda words, x: words.sort(x))


# --- the cost of a call --------------------------------------------------------------------------


def one_addition(size: int, calls: int, captured: bool = False) -> Workload:
    return Workload(
        f"x + y, {size} elements, {'captured, ' * captured}processor time",
        (normal(size),) * 2,
        lambda words, x, y: x + y,
        calls=calls,
        clock=time.process_time,
        captured=captured,
    )


def many_additions(count: int, size: int, calls: int, captured: bool = False) -> Workload:
    """As many kernels: here fusion, which would make them one, is off."""

    def added(words: Words, x: Any) -> Any:
        y = x
        for _number in range(count):
            y = y + x
        return y

    return Workload(
        f"{count} kernels that add {size} elements, {'captured, ' * captured}processor time",
        (normal(size),),
        added,
        calls=calls,
        clock=time.process_time,
        settings={"FUSE": 0},
        captured=captured,
    )


# --- suites --------------------------------------------------------------------------------------

Line = tuple[Callable[..., Workload], tuple[Any, ...], tuple[Any, ...]]
"""How a workload is made, its full size, and the size for a quick look (none: left out there)."""

M = 1 << 20
SUITES: Mapping[str, tuple[Line, ...]] = {
    "ops": (
        (chain, (16 * M,), (1000,)),
        (chain, (M // 16,), ()),
        (exponential, (M,), (100,)),
        (softmax, (4096, 1024), (5, 40)),
        (layer_norm, (4096, 1024), (5, 40)),
        (total, (64 * M,), (5000,)),
        (matmul, (256,) * 3, (20,) * 3),
        (matmul, (512,) * 3, ()),
        (matmul, (1024,) * 3, ()),
        (convolution, (3, 8, 64, 56), (3, 1, 3, 8)),
    ),
    "kernels": (
        (matmul, (256,) * 3, ()),
        (matmul, (512,) * 3, ()),
        (matmul, (1024,) * 3, ()),
        (matmul, (2048,) * 3, ()),
        (matmul, (1000, 77, 333), (20, 7, 33)),
        (matmul, (4096, 64, 64), ()),
        (matmul_bfloat16, (512,), (32,)),
        (matmul_bfloat16, (1024,), ()),
        (matmul_bfloat16, (2048,), ()),
        (matrix_by_vector, (4096, 4096), (20, 30)),
        (convolution, (3, 8, 64, 56), (3, 1, 3, 8)),
        (convolution, (1, 8, 64, 56), (1, 1, 3, 8)),
        (chain, (16 * M,), (1000,)),
        (softmax, (4096, 4096), (5, 40)),
        (layer_norm, (4096, 1024), (5, 40)),
        (total, (64 * M,), (5000,)),
        (attention, (8, 1024, 64, False), (2, 16, 8, False)),
        (attention, (8, 1024, 64, True), (2, 16, 8, True)),
        (embedding, (50257, 768, 4096), (50, 8, 12)),
        (gather, (4096, 1024), (4, 10)),
        (scatter, (4096, 1024), (4, 10)),
        (sort, (4096, 1024), (4, 10)),
        (models.training_step, (64, 28, 32), (4, 8, 2)),
        (models.resnet18, (1, 224, 64), (1, 32, 2)),
        (models.resnet18, (8, 224, 64), ()),
        (models.resnet18_step, (8, 224, 64), (2, 32, 2)),
        (models.gpt2_prefill, (12, 768, 12, 50257, 128), (2, 16, 2, 40, 6)),
        (models.gpt2_decode, (12, 768, 12, 50257, 128), (2, 16, 2, 40, 6)),
        (models.gpt2_step, (12, 768, 12, 50257, 64), (2, 16, 2, 40, 6)),
    ),
    "dispatch": (
        (one_addition, (10, 200), (10, 2)),
        (one_addition, (10, 1000, True), (10, 2, True)),
        (many_additions, (10, 10, 50), (3, 10, 2)),
        (many_additions, (300, 10, 100, True), (3, 10, 2, True)),
    ),
}  # fmt: skip


def workloads(suite: str, quick: bool, only: tuple[str, ...] = ()) -> list[Workload]:
    """The workloads of a suite; with `only` those whose name contains one of these texts.

    >>> [workload.name for workload in workloads("kernels", True, ("sum", "sort"))]
    ['sum, 5000 elements', 'sort, 4 x 10']
    """
    made = [make(*(small if quick else full)) for make, full, small in SUITES[suite] if small or not quick]
    return [workload for workload in made if not only or any(text in workload.name for text in only)]
