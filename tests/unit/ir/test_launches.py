"""Kernels written by hand as values: what they start from, and what they say of themselves."""

from __future__ import annotations

import pytest

from lazulite import Tensor
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.evaluate_kernel import KernelFault
from lazulite.ir.launches import launch, read_in_passing
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp


def doubling(size: int, turns: int) -> UOp:
    """memory 1 = memory 0 * 2, as far as there are turns."""
    source, result = [UOp(ops.PARAM, dtypes.int32, (), (slot, (size,), "")) for slot in (0, 1)]
    place = UOp.range(turns, 0)
    return UOp.sink(result[place].store(source[place] * 2), arg=KernelInfo("double"))


def filled(value: int, size: int) -> UOp:
    return UOp(ops.EXPAND, dtypes.int32, (UOp.const(dtypes.int32, value),), (size,))


def test_memory_that_a_kernel_writes_as_a_whole_is_not_filled_first() -> None:
    numbers = UOp(ops.IOTA, dtypes.int32, (), 4)
    names = []
    for fresh in ((), (1,)):
        (result,) = launch(doubling(4, 4), numbers, filled(7, 4), fresh=fresh)
        tensor = Tensor([0])._derived(result)
        names.append([kernel.name for kernel in tensor.explain().kernels])
        assert [0, 2, 4, 6] == tensor.tolist()
    assert len(names[1]) == len(names[0]) - 1
    assert "double" in names[1]


def test_the_interpreter_finds_what_such_a_kernel_leaves_out() -> None:
    (kept,) = launch(doubling(4, 3), filled(1, 4), filled(7, 4))
    assert [[2, 2, 2, 7]] == evaluate_tensors([kept], {})
    (left_out,) = launch(doubling(4, 3), filled(1, 4), filled(7, 4), fresh=(1,))
    assert [[2, 2, 2, None]] == evaluate_tensors([left_out], {})
    (read,) = launch(doubling(4, 4), left_out, filled(7, 4))
    with pytest.raises(KernelFault, match="before anything was written"):
        evaluate_tensors([read], {})


@pytest.mark.parametrize(
    ("place", "passing"),
    [
        ("plain", True),
        ("turned", True),
        ("again", False),
        ("gated", False),
        ("looked up", False),
        ("few", True),
        ("too often", False),
    ],
)
def test_a_kernel_knows_which_of_its_memories_it_reads_in_passing(place: str, passing: bool) -> None:
    """At one place, without a condition, and no more often than there are elements."""
    sizes = (4 if place == "too often" else 12, 12, 12)
    source, order, result = [UOp(ops.PARAM, dtypes.int32, (), (slot, (n,), "")) for slot, n in enumerate(sizes)]
    outer, inner = UOp.range(3, 0), UOp.range(4, 1)
    here = outer * 4 + inner
    value = {
        "plain": source[here],
        "turned": source[inner * 3 + outer],
        "again": source[here] + source[inner],
        "gated": UOp(ops.LOAD, dtypes.int32, (source, here, here < 7)),
        "looked up": source[order[here].cast(dtypes.index)],
        "few": source[inner],
        "too often": source[inner],
    }[place]
    found = read_in_passing(to_text(UOp.sink(result[here].store(value)), "KERNEL"))
    assert passing is (0 in found)
    assert 2 not in found, "what is written is memory"
