"""Exported writes to positions that are computed are ScatterND; kernels that do more are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lazulite import FormatError, KernelInfo, Tensor, UOp, to_onnx
from lazulite.formats.onnx.export_scatter import scatter_of
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.launches import launch
from support.onnx_export import agrees, operators

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference implementation


def random(*shape: int) -> Tensor:
    return Tensor.randn(*shape).realize()


def positions(*rows: Any) -> Tensor:
    return Tensor([*rows], dtype=dtypes.int32).realize()


def test_values_replace_and_combine_along_an_axis() -> None:
    def function(x: Tensor, i: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        combined = [x.scatter_reduce(0, i, y, how) for how in ("sum", "prod", "amax", "amin")]
        return x.scatter(1, i, y), x.scatter_add(0, i, y), x.scatter(0, i, 5.0), *combined

    found = operators(agrees(function, random(4, 5), positions([0, 1], [3, 2]), random(2, 2), within=1e-6))

    assert 6 <= found["ScatterND"]


def test_positions_outside_are_dropped() -> None:
    agrees(
        lambda x, i, y: (x.scatter(0, i, y), x.index_add(1, i[0], x[:, :2])),
        random(3, 4),
        positions([0, 9], [-7, 2]),
        random(2, 2),
    )


def test_items_at_positions_are_assigned() -> None:
    def function(x: Tensor, i: Tensor, j: Tensor) -> Tensor:
        x = x * 1
        x[i] = 7.0
        x[i, j] = x[j, i] + 1
        x[1:, j] = 2.0
        return x

    agrees(function, random(5, 5), positions(1, -1), positions(0, 3), within=1e-6)


def test_short_rows_are_sorted() -> None:
    x = (random(2, 9) * 5).int().realize()
    agrees(lambda x: (x.sort()[0], x.argsort(descending=True), x.topk(3)[0]), x)


def test_weights_scattered_once_are_constants() -> None:
    table = Tensor.zeros(4).scatter(0, Tensor([1]), Tensor([2.0]))

    assert {"Add": 1} == operators(agrees(lambda x: x + table, random(4)))


def written(kernel: Callable[[UOp, UOp, UOp], UOp]) -> Callable[[Tensor], Tensor]:
    """A function of three numbers by a kernel of its own, over memory of both and a range."""

    def function(x: Tensor) -> Tensor:
        out, given = [UOp(ops.PARAM, dtypes.float32, (), (slot, (3,), "")) for slot in (0, 1)]
        sink = UOp.sink(kernel(out, given, UOp.range(3, 0)), arg=KernelInfo("own"))
        return x._derived(launch(sink, (x * 0).uop, x.uop)[0])

    return function


def test_any_kernel_that_stores_once_each_turn_is_one() -> None:
    agrees(written(lambda out, given, i: out[i * -1 + 2].store(given[i] * 2 + 1)), random(3), within=1e-6)
    agrees(written(lambda out, given, i: out[i].store(given[(i + 1) % 3] * given[i])), random(3), within=1e-6)


def test_a_kernel_that_reads_what_it_writes_elsewhere_is_none() -> None:
    def running(out: UOp, given: UOp, i: UOp) -> UOp:
        return out[i].store(out[(i + 1) % 3] + given[i])

    with pytest.raises(FormatError, match="hand-written kernel"):
        to_onnx(written(running), Tensor([1.0, 2.0, 3.0]))


def test_a_sum_in_a_kernel_is_none() -> None:
    k = UOp.range(3, 1)
    function = written(lambda out, given, i: out[i].store(given[k].reduce(k) + given[i]))

    assert scatter_of(function(Tensor([1.0, 2.0, 3.0])).uop) is None
