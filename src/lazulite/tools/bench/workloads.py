"""What is timed, as data: small programs with fixed shapes, spelled for each kind of library.

A `Workload` has inputs, a meaning over NumPy arrays (in float64 it is the reference, in float32 what
NumPy and jax are asked to do) and a spelling with tensor methods for Lazulite and torch; where a library
has a name of its own for it, that is what it is asked.  `SUITES` lists the workloads of each suite, at
full size and at a size that only shows that they work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lazulite.base.settings import Context

Formula = Callable[..., Any]
"""Called with the library and its inputs."""
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """One program; every participant computes the same from the same inputs."""

    name: str
    inputs: tuple[Shape, ...]
    arrays: Formula
    """The meaning, for a library with the functions of NumPy."""
    methods: Formula
    """The same, for a library whose tensors have methods."""
    own: Mapping[str, Formula] = field(default_factory=dict)
    """What the library of this name is asked instead."""
    positive: bool = False
    """Inputs between 0.5 and 1.5 instead of around 0."""
    tolerance: float = 1e-5
    """The largest error that counts as correct, relative to the largest value of the result."""
    calls: int = 1
    """How many calls are timed together."""
    clock: Callable[[], float] = time.perf_counter
    """Wall time, or the processor time of this process where a call is short work of one thread."""


# --- operations ----------------------------------------------------------------------------------


def chain(size: int) -> Workload:
    """One pass over three operands with an exponential in it."""
    return Workload(
        f"silu(x) * y + z, {count_text(size)} elements",
        ((size,),) * 3,
        arrays=lambda np, x, y, z: x / (1 + np.exp(-x)) * y + z,
        methods=lambda library, x, y, z: x.silu() * y + z,
        own={"torch": lambda torch, x, y, z: torch.nn.functional.silu(x) * y + z},
    )


def exponential(size: int) -> Workload:
    return Workload(
        f"exp, {count_text(size)} elements", ((size,),), arrays=lambda np, x: np.exp(x), methods=lambda _, x: x.exp()
    )


def softmax(rows: int, columns: int) -> Workload:
    def arrays(np: Any, x: Any) -> Any:
        powers = np.exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    return Workload(f"softmax, {rows} x {columns}", ((rows, columns),), arrays, lambda _, x: x.softmax(-1))


def layer_norm(rows: int, columns: int) -> Workload:
    def arrays(np: Any, x: Any) -> Any:
        deviation = x - x.mean(axis=-1, keepdims=True)
        return deviation / np.sqrt((deviation**2).mean(axis=-1, keepdims=True) + 1e-5)

    return Workload(
        f"layer norm, {rows} x {columns}",
        ((rows, columns),),
        arrays,
        methods=lambda _, x: x.layernorm(),
        own={"torch": lambda torch, x: torch.nn.functional.layer_norm(x, (columns,))},
    )


def total(size: int) -> Workload:
    return Workload(
        f"sum, {count_text(size)} elements", ((size,),), lambda np, x: x.sum(), lambda _, x: x.sum(), positive=True
    )


def product(size: int) -> Workload:
    return Workload(
        f"matrix product, {size} x {size}", ((size, size),) * 2, lambda np, a, b: a @ b, lambda _, a, b: a @ b
    )


def convolution(batch: int, channels: int, side: int) -> Workload:
    """3 x 3 with padding, as many channels out as in; NumPy spells it as one product of windows."""

    def arrays(np: Any, x: Any, weight: Any) -> Any:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        return np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)

    return Workload(
        f"convolution 3 x 3, {batch} x {channels} x {side} x {side}",
        ((batch, channels, side, side), (channels, channels, 3, 3)),
        arrays,
        methods=lambda _, x, weight: x.conv2d(weight, padding=1),
        own={
            "torch": lambda torch, x, weight: torch.nn.functional.conv2d(x, weight, padding=1),
            "jax": lambda jax, x, weight: jax.lax.conv(x, weight, (1, 1), "SAME"),
        },
    )


# --- the cost of a call --------------------------------------------------------------------------


def one_addition(size: int, calls: int) -> Workload:
    return Workload(
        f"x + y, {size} elements, processor time",
        ((size,),) * 2,
        arrays=lambda np, x, y: x + y,
        methods=lambda _, x, y: x + y,
        calls=calls,
        clock=time.process_time,
    )


def many_additions(count: int, size: int, calls: int) -> Workload:
    """As many kernels: here fusion, which would make them one, is off."""

    def added(_: Any, x: Any) -> Any:
        y = x
        for _number in range(count):
            y = y + x
        return y

    def unfused(library: Any, x: Any) -> Any:
        with Context(FUSE=0):
            return added(library, x).realize()

    return Workload(
        f"{count} kernels that add {size} elements, processor time",
        ((size,),),
        arrays=added,
        methods=added,
        own={"lazulite": unfused},
        calls=calls,
        clock=time.process_time,
    )


def count_text(count: int) -> str:
    """A number of elements, short where it is a power of two.

    >>> count_text(1 << 24), count_text(1000)
    ('16M', '1000')
    """
    for bits, unit in ((20, "M"), (10, "K")):
        if count and count % (1 << bits) == 0:
            return f"{count >> bits}{unit}"
    return str(count)


# --- suites --------------------------------------------------------------------------------------

Sizes = tuple[int, ...]
Line = tuple[Callable[..., Workload], Sizes, Sizes]
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
        (product, (256,), (20,)),
        (product, (512,), ()),
        (product, (1024,), ()),
        (convolution, (8, 64, 56), (1, 3, 8)),
    ),
    "kernels": (
        (chain, (M,), (1000,)),
        (softmax, (1024, 1024), (5, 40)),
        (layer_norm, (1024, 1024), (5, 40)),
        (total, (4 * M,), (5000,)),
        (product, (512,), (20,)),
        (convolution, (2, 64, 56), (1, 3, 8)),
    ),
    "dispatch": ((one_addition, (10, 200), (10, 2)), (many_additions, (10, 10, 50), (3, 10, 2))),
}


def workloads(suite: str, quick: bool) -> list[Workload]:
    """The workloads of a suite."""
    chosen = [(make, small if quick else full) for make, full, small in SUITES[suite]]
    return [make(*sizes) for make, sizes in chosen if sizes]
