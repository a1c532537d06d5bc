"""Calls of bodies that do not fit their arguments are refused when the graph is scheduled, and nothing is written."""

from __future__ import annotations

import pytest

from lazulite import DTypeError, EffectError, LazuliteError, ShapeError, Tensor
from lazulite.ir import ops
from lazulite.ir.calls import ProgramInfo
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp

DOUBLE = parse("kernel\nparam p0 float32[3]\nparam p1 float32[3]\nloop r0 in 0..3\np0[r0] = p1[r0] * 2.0")
FILL = parse("kernel\nparam p0 float32[3]\nscalar n1 float32\nloop r0 in 0..3\np0[r0] = n1 * 2.0")
OUT, IN = (UOp(ops.PARAM, dtypes.float32, (), (slot, (3,), "CPU")) for slot in range(2))
ADD_ONE = UOp.sink(OUT.store(IN + 1))
FINISHED = UOp(ops.PROGRAM, dtypes.void, (), ProgramInfo("finished", (1,), (0,)))
THREE, TWO, INTEGERS = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 2.0]), Tensor([1, 2, 3])


@pytest.mark.parametrize(("body", "given", "error", "message"), [
    (DOUBLE, [INTEGERS], DTypeError, "the kernel takes float32 in slot 1, got int32"),
    (DOUBLE, [TWO], ShapeError, "slot 1 of the kernel has the shape"),
    (ADD_ONE, [INTEGERS], DTypeError, "the body takes float32 in slot 1, got int32"),
    (ADD_ONE, [TWO], ShapeError, "the body takes"),
    (DOUBLE, [], EffectError, "invalid CALL access slot 1: the call has 1 arguments"),
    (FILL, [], EffectError, "no scalar arguments"),
    (FINISHED, [THREE], EffectError, "holds no kernel as a SINK"),
], ids=lambda part: part if isinstance(part, str) else "")  # fmt: skip
def test_what_does_not_fit_is_refused(body: UOp, given: list[Tensor], error: type[LazuliteError], message: str) -> None:
    out = Tensor([0.0, 0.0, 0.0])
    with pytest.raises(error, match=message):
        Tensor(out.uop.after(body.call(out.uop, *[tensor.uop for tensor in given]))).realize()
    assert [0.0, 0.0, 0.0] == out.tolist()


def test_a_kernel_writes_whole_storages_only() -> None:
    six = Tensor([0.0] * 6)
    part = six[0:3].uop
    with pytest.raises(EffectError, match="a kernel writes whole storages"):
        Tensor(part.after(DOUBLE.call(part, THREE.uop))).realize()
    assert [0.0] * 6 == six.tolist()
