"""However a program is cut into kernels, it means the same.

Random programs over tensors are run fused, with each operation its own kernel (FUSE=0), with plain loops
(OPT=0), with some values realized half way, on the PYTHON device and by the interpreter.  Integers and
elementwise floats are equal bit by bit; sums of floats stay within 2 eps (log2 n + 1) sum|x| of the true
sum.  All are compared with NumPy too.  FUZZ_EXAMPLES=n runs n programs of each kind.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lazulite import Context, Tensor
from lazulite.engine.storage import fill_of, storage_of
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.uop import UOp, toposort
from support.models import array_type, fault, same_bits
from support.tensor_programs import FLOATS, INTEGERS, LARGE, Program, programs, run

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "30"))
SLOW = 400
"""The interpreters are asked only where no value has more elements."""

ARITHMETIC = ["neg", "abs", "relu", "add", "sub", "mul", "max", "min", "scalar", "scalar", "lt", "ge", "eq", "where"]
WHOLE = ["xor", "and", "floordiv", "mod"]
REAL = ["sqrt", "floor", "round", "div", "exp", "exp2", "log", "sin", "tanh"]
MOVEMENT = ["reshape", "permute", "flip", "slice", "pad", "expand", "cat"]
REDUCTIONS = ["sum", "amax", "amin", "mean"]
ROWS = ["softmax", "layernorm", "matmul", "matmul"]
WRITES = ["write", "write", "clone"]
KINDS: dict[str, tuple[list[str], tuple[DType, ...]]] = {
    "integers": ([*ARITHMETIC, *WHOLE, *MOVEMENT, "sum", "amax", "amin"], INTEGERS),
    "floats": ([*ARITHMETIC, *REAL, *MOVEMENT], FLOATS),
    "reductions": ([*ARITHMETIC, *MOVEMENT, *REDUCTIONS, *REDUCTIONS], FLOATS),
    "rows": (["add", "scalar", "relu", "permute", "reshape", "mean", "sum", *ROWS, *ROWS], FLOATS[:2]),
    "devices": ([*ARITHMETIC, *MOVEMENT, *WRITES, "travel", "travel", "travel", "sum"], (dtypes.int32, dtypes.float32)),
    "movement": ([*MOVEMENT, "add", "scalar"], (dtypes.int32, dtypes.float32, dtypes.bool)),
    "casts": (["cast", "cast", "cast", "add", "scalar", "lt", "where", "pad"], (*FLOATS, *INTEGERS, dtypes.bool)),
    "writes": ([*ARITHMETIC, *MOVEMENT, *WRITES, *WRITES, "sum"], (dtypes.int32, dtypes.float32, dtypes.uint8)),
}  # fmt: skip


LARGE_KINDS = {
    "matmul": (["matmul", "matmul", "matmul", "add", "relu", "permute", "scalar", "sum", "reshape"], FLOATS[:2]),
    "rows": (["softmax", "layernorm", "sum", "mean", "amax", "mul", "add", "permute"], FLOATS[:1]),
    "integers": (["matmul", "sum", "amax", "add", "mul", "pad", "slice", "cat", "flip", "permute"], INTEGERS[:3]),
    "writes": (["write", "write", "clone", "add", "permute", "slice", "scalar", "lt", "where"], INTEGERS[:2]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_run_a_program_gives_the_same(kind: str) -> None:
    _fuzz(programs(*KINDS[kind]), EXAMPLES)


@pytest.mark.parametrize("kind", LARGE_KINDS)
def test_large_tensors_take_other_kernels_to_the_same_values(kind: str) -> None:
    _fuzz(programs(*LARGE_KINDS[kind], sizes=LARGE, steps=5), EXAMPLES // 4)


def _fuzz(strategy: Any, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize="FUZZ_EXAMPLES" not in os.environ, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(strategy)
    def check(program: Program) -> None:
        with Context(CACHE=0):
            _check(program)

    check()


def _check(program: Program) -> None:
    results = {"fused": _values(program), "realized half way": _values(program, halfway=True)}
    with Context(FUSE=0):
        results["FUSE=0"] = _values(program)
    with Context(OPT=0):
        results["OPT=0"] = _values(program)
    if max(value.array.size for value in program.values) <= SLOW:
        results["PYTHON"] = _values(program, device="PYTHON")
        results["oracle"] = _interpreted(program)
    for way, arrays in results.items():
        _compare(program, way, arrays, results["fused"])


def _compare(program: Program, way: str, arrays: list[Any], fused: list[Any]) -> None:
    compiled = way not in ("PYTHON", "oracle")
    for output, array, other in zip(program.outputs, arrays, fused, strict=True):
        model = program.values[output]
        wrong = fault(model, array)
        assert wrong is None, f"{way}, value {output}: {wrong}"
        if model.exact or (model.settled and compiled):
            assert same_bits(array, other), f"{way}, value {output}: other bits than when fused"


def _values(program: Program, device: str = "CPU", halfway: bool = False) -> list[Any]:
    tensors = run(program, device, halfway)
    Tensor.realize(*tensors)
    return [tensor.numpy() for tensor in tensors]


def _interpreted(program: Program) -> list[Any]:
    """What the graph of the outputs means."""
    tensors = run(program)
    nodes = [tensor.uop for tensor in tensors]
    memory = {node: _contents(node) for node in toposort(*nodes) if node.op is ops.BUFFER}
    values = evaluate_tensors(nodes, memory)
    return [
        np.array(elements, array_type(tensor.dtype)).reshape(tensor.shape)
        for tensor, elements in zip(tensors, values, strict=True)
    ]


def _contents(node: UOp) -> list[Any]:
    """The elements that lie in a buffer."""
    storage, size = storage_of(node), node.dtype.itemsize
    fill = fill_of(node)
    if fill is not None:
        return [fill] * (storage.nbytes // size)
    assert storage.buffer is not None
    data = bytearray(storage.nbytes)
    storage.buffer.copy_out(memoryview(data))
    return [node.dtype.from_bits(int.from_bytes(data[at : at + size], "little")) for at in range(0, len(data), size)]
