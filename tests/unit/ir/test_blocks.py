import pytest

from lazulite.ir import ops
from lazulite.ir.blocks import Block, loops_of, nest, nest_linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp, toposort

HEAD = "param p0 int32[16]\nparam p1 int32[16]\nscratch s0 int32[4] align 64\n"


def shape(block):
    """The statements that matter, as nested lists of op names."""
    shown = [ops.LOAD, ops.STORE, ops.ADD, ops.REDUCE]
    return [
        shape(item) if isinstance(item, Block) else item.op.name
        for item in block.items
        if isinstance(item, Block) or (item.op in shown and item.dtype is not dtypes.index)
    ]


def blocks(text):
    root = parse(HEAD + text)
    return nest([root], loops_of(toposort(root)))


def test_a_value_stands_in_the_innermost_loop_over_which_it_varies():
    text = """loop r0 in 0..4
    t0 = p1[r0] + 1
    loop r1 in 0..4
        p0[r0*4 + r1] = t0 + p1[r1]"""
    assert [["load", "add", ["load", "add", "store"]]] == shape(blocks(text))


def test_a_loop_stands_where_it_is_needed_and_before_what_waits_for_it():
    text = """loop r0 in 0..4
    loop r1 in 0..4
        s0[r1] = p1[r1 + r0]
    loop r2 in 0..4
        p0[r2] = after(s0, r1)[r2]"""
    assert [[["load", "store"], ["load", "store"]]] == shape(blocks(text))


def test_a_read_that_waits_for_nothing_precedes_the_stores_of_its_block():
    text = """loop r0 in 0..4
    p0[r0] = p0[r0] + 1
    p1[r0] = p0[r0 + 1]"""
    assert [["load", "add", "load", "store", "store"]] == shape(blocks(text))


def test_a_reduction_over_ranges_is_a_block_for_each():
    root = parse(HEAD + "loop r0 in 0..2\nloop r1 in 0..2\np0[0] = sum(p1[r0*2 + r1] for r0, r1)")
    assert [[["load"]], "store"] == shape(nest([root], loops_of(toposort(root))))
    assert ["load", "reduce", "store"] == shape(nest([root], loops_of(toposort(root), reduces=False)))


R0, R1 = (UOp(ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 4),), ((n,), "loop")) for n in range(2))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((R0,), "is never closed"),
        ((R0, R1, UOp(ops.FOR, dtypes.void, (R0,), 0)), "not the innermost open one"),
        ((UOp(ops.FOR, dtypes.void, (R0,), 0),), "not the innermost open one"),
    ],
)
def test_a_list_whose_loops_do_not_nest_is_refused(nodes, message):
    with pytest.raises(ValueError, match=message):
        nest_linear(UOp(ops.LINEAR, dtypes.void, nodes))
