"""Every value of a kernel has a decision with a reason."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.schedule.fuse import fuse
from lazulite.schedule.groups import Decision, Destination
from lazulite.schedule.reasons import reasons

X = UOp(ops.PARAM, dtypes.float32, (), (0, (8, 8), ""))


def decided(*outputs: UOp, allowed: bool = True) -> list[Decision]:
    fusion = fuse({output: [Destination(number + 1)] for number, output in enumerate(outputs)}, allowed=allowed)
    found = reasons(fusion)
    assert list(found) == fusion.groups
    return [decision for decisions in found.values() for decision in decisions]


def test_an_intermediate_value_is_fused() -> None:
    kinds = {d.node.op.name: d.kind for d in decided(UOp.apply(ops.EXP, X * X))}
    assert {"exp": "stored", "mul": "fused"} == kinds


def test_without_fusion_everything_is_stored() -> None:
    found = decided(UOp.apply(ops.EXP, X * X), allowed=False)
    assert {"stored"} == {d.kind for d in found}
    assert "fusion is off" in {d.reason for d in found}


def test_a_cheap_value_that_two_kernels_want_is_recomputed() -> None:
    cheap = X + X
    columns = UOp(ops.REDUCE, X.dtype, (cheap,), (ops.ADD, (0,)))
    rows = UOp(ops.REDUCE, X.dtype, (cheap,), (ops.ADD, (1,)))
    found = [d for d in decided(columns, rows) if d.node is cheap]
    assert {"recomputed"} == {d.kind for d in found} and all("2 kernels want it" in d.reason for d in found)


def test_a_sum_inside_a_kernel_says_why_it_is_not_stored() -> None:
    total = UOp(ops.REDUCE, X.dtype, (X,), (ops.ADD, (1,)))
    (reason,) = [d.reason for d in decided(UOp.apply(ops.EXP, total)) if d.node is total]
    assert "used in the loop that computes it" in reason
