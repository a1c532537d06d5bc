"""The driver: what is native stays, everything else is expanded until only native operations are left."""

import pytest

from float_samples import FUNCTIONS, modern_processor, processor
from lazulite.ir import ops
from lazulite.ir.dtype import FLOATS, INTS, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.decompose import decompose
from numpy_oracle import leaf


def test_a_native_graph_is_returned_itself():
    x = leaf(dtypes.int32)
    root = (x + 1) * x

    assert decompose(root, lambda node: True) is root


def test_a_node_without_a_rule_is_left_for_the_emitter_to_refuse():
    root = UOp.apply(ops.SQRT, leaf(dtypes.float32))

    assert decompose(root, lambda node: False) is root


@pytest.mark.parametrize("dtype", sorted(FLOATS, key=lambda t: t.number), ids=repr)
@pytest.mark.parametrize("op", [*FUNCTIONS, ops.FMA, ops.MAX, ops.MIN, ops.FLOOR, ops.TRUNC, ops.ROUND], ids=repr)
def test_functions_of_floats_end_in_what_the_least_processor_has(op, dtype):
    root = decompose(UOp.apply(op, *(leaf(dtype, slot) for slot in range(op.operands))), processor)

    assert [] == [node for node in toposort(root) if not _is_basic(node)]


@pytest.mark.parametrize("dtype", sorted(INTS, key=lambda t: t.number), ids=repr)
@pytest.mark.parametrize("op", [ops.FLOORDIV, ops.MOD, ops.SHL, ops.SHR], ids=repr)
def test_functions_of_integers_end_in_what_the_least_processor_has(op, dtype):
    root = decompose(UOp.apply(op, leaf(dtype, 0), leaf(dtype, 1)), processor)

    assert [] == [node for node in toposort(root) if not _is_basic(node)]


def _is_basic(node):
    if node.op in (ops.SHL, ops.SHR):
        return 0 <= node.src[1].vmin and node.src[1].vmax < node.dtype.bits
    return not node.src or processor(node)


def test_shared_parts_are_expanded_once():
    x = leaf(dtypes.float32)
    e = UOp.apply(ops.EXP, x)
    alone = len(toposort(decompose(e, modern_processor)))

    assert len(toposort(decompose(e / (e + 1.0), modern_processor))) == alone + 2


def test_a_long_chain_needs_no_recursion():
    x = leaf(dtypes.bfloat16)
    chain = x
    for _ in range(20_000):
        chain = chain + x

    root = decompose(chain, processor)

    assert root.dtype is dtypes.bfloat16


def test_structure_around_the_expanded_nodes_is_kept():
    memory = UOp(ops.PARAM, dtypes.float32, (), (0, (16,), "CPU"))
    place = UOp(ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 16),), ((0,), "loop"))
    value = UOp.apply(ops.EXP, UOp(ops.LOAD, dtypes.float32, (memory, place)))
    sink = UOp(ops.SINK, dtypes.void, (UOp(ops.STORE, dtypes.void, (memory, place, value)),))

    root = decompose(sink, modern_processor)

    assert root.src[0].src[:2] == (memory, place)
    assert ops.EXP not in {node.op for node in toposort(root)}
