"""Objects stand alone: they call nothing and need no library."""

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.pipeline import compile_kernel
from lazulite.runtime.loader import load_object
from support.kernels import TARGETS, convolution, load, loop, matmul, param, sink, softmax, store


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("kernel", [matmul(30, 40, 50), softmax(5, 60), convolution(1, 3, 4, 5, 6)])
def test_an_object_refers_to_nothing_outside_of_itself(machine, kernel):
    target = TARGETS[machine]

    for steps in ((), choose(kernel, target)):
        load_object(compile_kernel(kernel, target, steps).code)


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("op", [ops.FLOOR, ops.ROUND, ops.SIN, ops.POW, ops.SQRT, ops.EXP])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_no_function_becomes_a_call(machine, op, dtype):
    i = loop(0, 40)
    x = load(param(1, 40, dtype), i)
    kernel = sink(store(param(0, 40, dtype), i, UOp.apply(op, *[x] * op.operands)))

    load_object(compile_kernel(kernel, TARGETS[machine], choose(kernel, TARGETS[machine])).code)
