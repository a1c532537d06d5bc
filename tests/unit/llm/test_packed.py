"""Packed matrices give the products of the matrices that their bytes stand for."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from lazulite import Tensor
from lazulite.formats.quants import QUANTS
from lazulite.kernel.apply import loops_after
from lazulite.kernel.borders import regroup
from lazulite.kernel.steps import Parallel, Reorder, Stage
from lazulite.llm.packed import MOST_ROWS, Packer, pack

KINDS = {kind.name: kind for kind in QUANTS.values() if kind.parts is not None}
HALVES = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2),
          "Q6_K": (208,), "TQ1_0": (52,), "TQ2_0": (64,), "MXFP4": (), "NVFP4": ()}  # fmt: skip
"""The bytes at which blocks hold numbers in float16; at the first where a type is not listed."""


def blocks(name: str, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """Random blocks with scales of usual size."""
    random, kind = np.random.default_rng(0), KINDS[name]
    data = random.integers(0, 256, (rows, columns // kind.elements, kind.nbytes), dtype=np.uint8)
    for begin in HALVES.get(name, (0,)):
        scales = random.uniform(-0.1, 0.1, data.shape[:-1]).astype(np.float16)
        data[..., begin : begin + 2] = scales[..., np.newaxis].view(np.uint8)
    if name == "MXFP4":
        data[..., 0] = random.integers(110, 130, data.shape[:-1])
    return data.reshape(rows, -1)


@pytest.mark.parametrize("rows", [1, MOST_ROWS])
@pytest.mark.parametrize("name", KINDS)
def test_products_are_those_of_the_floats(name: str, rows: int) -> None:
    """The error is that of rounding a row to 16 bits: far below that of float16."""
    data = Tensor(blocks(name, 40, 512))
    x = np.random.default_rng(1).normal(size=(rows, 512)).astype(np.float32)
    matrix = KINDS[name].dequantize(data, (40, 512)).numpy().astype(np.float64)

    found = pack(KINDS[name], data).times(Tensor(x)).numpy()

    bound = 2e-5 * (np.abs(x) @ np.abs(matrix).T)
    assert (np.abs(found - x @ matrix.T) <= bound).all()


@pytest.mark.parametrize("name", KINDS)
def test_floats_are_bit_by_bit_those_of_the_type(name: str) -> None:
    data = Tensor(blocks(name, 40, 512))
    floats = pack(KINDS[name], data).floats().numpy()

    assert KINDS[name].dequantize(data, (40, 512)).numpy().T.tobytes() == floats.tobytes()


def test_a_packer_packs_each_matrix_as_it_is_packed_alone() -> None:
    packer, whole = Packer(), blocks("Q4_K", 160, 256)
    parts = [Tensor(whole[begin : begin + 32].copy()) for begin in range(0, 160, 32)]
    found = [packer(KINDS["Q4_K"], part) for part in parts]  # the last ones by replays, whose results must stay

    for part, matrix in zip(parts, found, strict=True):
        assert KINDS["Q4_K"].dequantize(part, (32, 256)).numpy().T.tobytes() == matrix.floats().numpy().tobytes()


def test_many_rows_have_the_matrix_unpacked_once_and_no_matrix_of_floats() -> None:
    """In the one kernel of the product, by a copy that its tiles read, however many threads share them."""
    matrix = pack(KINDS["Q4_K"], Tensor(blocks("Q4_K", 320, 512)))
    (kernel,) = Tensor.ones(64, 512).contiguous().realize().linear(matrix.floats()).explain().kernels
    (copy,) = [step for step in kernel.schedule if isinstance(step, Stage)]
    (order,) = [step.ranges for step in kernel.schedule if isinstance(step, Reorder)]
    (shared,) = [step.range for step in kernel.schedule if isinstance(step, Parallel)]
    columns = order[0][0]

    assert shared == order[0]
    assert columns in {name[0] for name in copy.axes}
    loops = loops_after(regroup(kernel.sink), kernel.schedule)
    assert 512 * 32 == prod(loop.extent for loop in loops if loop.name in copy.axes)


def test_a_row_of_zeros_gives_zeros_and_a_nan_stays() -> None:
    matrix = pack(KINDS["Q4_0"], Tensor(blocks("Q4_0", 8, 64)))
    x = np.zeros((2, 64), dtype=np.float32)
    x[1, 3] = np.nan
    found = matrix.times(Tensor(x)).numpy()

    assert (found[0] == 0).all() and np.isnan(found[1]).all()
