import pytest
from hypothesis import given

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp, index
from lazulite.ir.verify import verify
from support.random_graphs import kernels, tensor_graphs

I32, F32, INDEX = dtypes.int32, dtypes.float32, dtypes.index


def scalar(slot, dtype=I32):
    return UOp(ops.SCALAR, dtype, (), (slot, None, None))


def buffer(*shape, dtype=F32):
    return UOp(ops.BUFFER, dtype, (), (1, 0, shape, "CPU"))


def param(slot, size=16, dtype=F32):
    return UOp(ops.PARAM, dtype, (), (slot, (size,), ""))


def a_range(order=0, kind="loop", extent=4):
    return UOp(ops.RANGE, INDEX, (index(extent),), ((order,) if isinstance(order, int) else order, kind))


def load(memory, *rest, dtype=F32):
    return UOp(ops.LOAD, dtype, (memory, *rest))


def store(*src):
    return UOp(ops.STORE, dtypes.void, src)


def sink(*src):
    return UOp(ops.SINK, dtypes.void, src)


def loop(r, *rest, yields=0):
    return UOp(ops.FOR, dtypes.void, (r, *rest), yields)


def fault(root, language):
    with pytest.raises(StageError) as caught:
        verify(root, language, "lower.example")
    return caught.value


# --- what is accepted --------------------------------------------------------------------------


@given(tensor_graphs())
def test_graphs_of_whole_values_are_accepted(graph):
    verify(graph, "TENSOR")


@given(kernels())
def test_kernels_are_accepted(kernel):
    verify(kernel, "KERNEL")


LOOP = """
loop
param p0 float32[64]
param p1 float32[1024]
scratch s0 float32[16] align 64
lane r3 in 0..8
row r4 in 0..2
parallel r0 in 0..8
    loop r1 in 0..16
        s0[r1] = p1[r0*16 + r1]
    loop r2 in 0..2
        state c0 = 0.0:float32
        t0 = after(s0, r1)[r2*8 + r3]
        next c0 = fma(t0, p1[r4], c0)
    p0[r0*8 + r3] = sum(c0 for r4)
"""
LINEAR = """
linear
param p0 float32[8]
param p1 float32[64]
lane r1 in 0..8
parallel r0 in 0..8
    state c0 = 0.0:float32
    t0 = p1[r0*8]
    next c0 = t0
t1 = c0
t2 = t1 * 2.0
p0[r1*1 if r1 < 4] = t2
"""


def test_loops_and_lists_are_accepted():
    verify(parse(LOOP), "LOOP")
    with pytest.raises(StageError, match="the operand mul is not listed"):
        verify(parse(LINEAR), "LINEAR")
    verify(parse(LINEAR.replace("t0 = p1[r0*8]", "i0 = r0*8\n    t0 = p1[i0]")), "LINEAR")


# --- every language ----------------------------------------------------------------------------

COMMON = {
    "load has no place in TENSOR": load(param(0), index(0)),
    "add takes 2 operands, got 1": UOp(ops.ADD, I32, (scalar(0),)),
    "the operands of add have one type, got int32, float32": UOp(ops.ADD, I32, (scalar(0), scalar(1, F32))),
    "sqrt does not take int32": UOp(ops.SQRT, I32, (scalar(0),)),
    "lt of int32 gives bool, not int32": UOp(ops.LT, I32, (scalar(0), scalar(1))),
    "the gate of where is bool, got int32": UOp(ops.WHERE, I32, (scalar(0), scalar(1), scalar(2))),
    "an index has no bits": UOp(ops.BITCAST, dtypes.int64, (scalar(0, INDEX),)),
    "a constant holds its bits as an integer, got 1.5 in float32": UOp(ops.CONST, F32, (), 1.5),
    "0x100000000 is no bit pattern of float32": UOp(ops.CONST, F32, (), 1 << 32),
    "300 is no value of uint8": UOp(ops.CONST, dtypes.uint8, (), 300),
    "cast takes and gives values, not effects": UOp(ops.CAST, I32, (sink(),)),
}


@pytest.mark.parametrize("message", COMMON)
def test_a_node_that_no_language_allows_is_named(message):
    assert message == fault(COMMON[message], "TENSOR").message


# --- TENSOR ------------------------------------------------------------------------------------


def moved(op, arg, *shape, dtype=F32):
    return UOp(op, dtype, (buffer(*shape),), arg)


TENSORS = {
    "operands have equal shapes or rank 0, got (2,) and (3,)": buffer(2) + buffer(3),
    "reshape by (5,) does not fit the shape (2, 3)": moved(ops.RESHAPE, (5,), 2, 3),
    "permute by (0, 0) does not fit the shape (2, 3)": moved(ops.PERMUTE, (0, 0), 2, 3),
    "expand by (4,) does not fit the shape (2,)": moved(ops.EXPAND, (4,), 2),
    "expand by () does not fit the shape (2,)": moved(ops.EXPAND, (), 2),
    "pad by ((-1, 0),) does not fit the shape (2,)": moved(ops.PAD, ((-1, 0),), 2),
    "pad by (1,) does not fit the shape (2,)": moved(ops.PAD, (1,), 2),
    "shrink by ((1, 3),) does not fit the shape (2,)": moved(ops.SHRINK, ((1, 3),), 2),
    "flip by (1,) does not fit the shape (2,)": moved(ops.FLIP, (1,), 2),
    "flip needs a tuple, got 0": moved(ops.FLIP, 0, 2),
    "flip keeps the type of its source": moved(ops.FLIP, (0,), 2, dtype=I32),
    "axes (0, 0) are not distinct axes of the shape (2,)": moved(ops.REDUCE, (ops.ADD, (0, 0)), 2),
    "SUB cannot reduce": moved(ops.REDUCE, (ops.SUB, (0,)), 2),
    "a reduction by and takes and gives one type that and accepts": moved(ops.REDUCE, (ops.AND, (0,)), 2),
    "REDUCE over ranges belongs to KERNEL; in TENSOR it takes one operand": UOp(
        ops.REDUCE, F32, (buffer(2), buffer(3)), (ops.ADD, ())
    ),
    "the region has the shape (2,), the value (3,)": UOp(ops.WRITE, F32, (buffer(2), buffer(3)), ()),
    "in the region: shrink by ((0, 9),) does not fit the shape (2,)": UOp(
        ops.WRITE, F32, (buffer(2), buffer(2)), (("shrink", ((0, 9),)),)
    ),
    "a gather of (2,) takes positions for one or more of its axes, got 2": UOp(
        ops.GATHER, F32, (buffer(2), *[buffer(3, dtype=dtypes.int32)] * 2)
    ),
    "a gather keeps the type, and its positions are int32": UOp(ops.GATHER, F32, (buffer(2), buffer(3))),
    "positions have one shape, got (3,) and (4,)": UOp(
        ops.GATHER, F32, (buffer(2, 2), buffer(3, dtype=dtypes.int32), buffer(4, dtype=dtypes.int32))
    ),
    "in the region: slice is no movement": UOp(ops.WRITE, F32, (buffer(2), buffer(2)), (("slice", ()),)),
    "a write keeps the type, got int32 into float32": UOp(ops.WRITE, F32, (buffer(2), buffer(2, dtype=I32)), ()),
    "a STORE in TENSOR takes a destination and a value": store(buffer(2), index(0), buffer(2)),
    "a STORE keeps the type of its destination": store(buffer(2), buffer(2, dtype=I32)),
    "the destination has the shape (2,), the value (3,)": store(buffer(2), buffer(3)),
    "the last axis of (3,) does not hold whole elements of float64": UOp(ops.BITCAST, dtypes.float64, (buffer(3),)),
    "(-1,) is no shape": buffer(-1),
}


@pytest.mark.parametrize("message", TENSORS)
def test_whole_values_that_do_not_fit_are_named(message):
    assert message == fault(TENSORS[message], "TENSOR").message


# --- KERNEL ------------------------------------------------------------------------------------

R0, R1 = a_range(0), a_range(1)
SUM = UOp(ops.REDUCE, F32, (load(param(1), R0 * 4 + R1), R1), (ops.ADD, ()))
KERNELS = {
    "the root is a store, not a SINK": store(param(0), index(0), UOp.const(F32, 1)),
    "a SINK takes effects, got load": sink(load(param(0), index(0))),
    "a SINK takes effects, got for": sink(loop(R0, store(param(0), R0, SUM))),
    "the value varies over r1, the place does not: the range is never closed": sink(
        store(param(0), R0, SUM + load(param(1), R1))
    ),
    "two ranges have the order (0,)": sink(store(param(0), R0 + a_range(0, extent=5), UOp.const(F32, 1))),
    "'wide' is no kind of range": sink(store(param(0), a_range(0, "wide"), UOp.const(F32, 1))),
    "the order of a range is a tuple of integers, got ('x',)": sink(
        store(param(0), a_range(("x",)), UOp.const(F32, 1))
    ),
    "a range and its extent are INDEX": sink(
        store(param(0), UOp(ops.RANGE, INDEX, (UOp.const(I32, 4),), ((0,), "loop")), UOp.const(F32, 1))
    ),
    "a lane range has a constant extent": sink(
        store(param(0), UOp(ops.RANGE, INDEX, (R0 + 1,), ((1,), "lane")), UOp.const(F32, 1))
    ),
    "LOAD takes 2 or 3 operands, got 1": sink(store(param(0), R0, load(param(1)))),
    "LOAD needs memory, got const": sink(store(param(0), R0, load(UOp.const(F32, 1), R0))),
    "positions are INDEX, got int32": sink(store(param(0), R0.cast(I32), UOp.const(F32, 1))),
    "memory of float32 holds no int32": sink(store(param(0), R0, UOp.const(I32, 1))),
    "a gate is bool, got int32": sink(store(param(0), R0, UOp.const(F32, 1), scalar(1))),
    "memory of a kernel is flat, got the shape (2, 3)": sink(
        store(UOp(ops.PARAM, F32, (), (0, (2, 3), "")), R0, UOp.const(F32, 1))
    ),
    "REDUCE takes a value and ranges here, no axes": sink(
        store(param(0), R0, UOp(ops.REDUCE, F32, (load(param(1), R0),), (ops.ADD, (0,))))
    ),
    "AND cannot reduce float32 to float32": sink(
        store(param(0), R0, UOp(ops.REDUCE, F32, (load(param(1), R1), R1), (ops.AND, ())))
    ),
    "bitcast changes the width from float32 to float64": sink(
        store(param(0, dtype=dtypes.float64), R0, UOp(ops.BITCAST, dtypes.float64, (load(param(1), R0),)))
    ),
    "a value has one lane range at most, got r0, r1": sink(
        store(param(0), a_range(0, "lane") + a_range(1, "lane"), UOp.const(F32, 1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", KERNELS)
def test_a_malformed_kernel_is_named(message):
    found = fault(KERNELS[message], "KERNEL").message
    assert message.replace("LOAD takes", "load takes").lower() == found.lower()


# --- LOOP --------------------------------------------------------------------------------------

FIRST = UOp.const(F32, 0)
CARRY = UOp(ops.CARRY, F32, (R0, FIRST), 0)
TURN = loop(R0, CARRY + 1.0, yields=1)


def final(turn, index=0, dtype=F32):
    return sink(store(param(0), UOp.const(INDEX, 0), UOp(ops.FINAL, dtype, (turn,), index)))


ROW, COLUMN, DEPTH, PAIR = (a_range(order, "unit", extent) for order, extent in ((2, 16), (3, 16), (4, 16), (5, 2)))
BF16 = dtypes.bfloat16
LEFT = load(param(1, 512, BF16), ROW * 32 + DEPTH * 2 + PAIR, dtype=BF16)
RIGHT = load(param(2, 512, BF16), DEPTH * 32 + COLUMN * 2 + PAIR, dtype=BF16)


def mma(*sources, dtype=F32):
    return sink(store(param(0, 256), ROW * 16 + COLUMN, UOp(ops.MMA, dtype, sources)))


LOOPS = {
    "MMA takes a start, two factors and the ranges of kind unit that it sums over": mma(FIRST, LEFT, RIGHT),
    "MMA keeps the type of its start, got int32, then float32": mma(UOp.const(I32, 0), LEFT, RIGHT, DEPTH, PAIR),
    "a matrix unit takes its factors from memory, without gates": mma(
        FIRST, LEFT, RIGHT.replace(src=(*RIGHT.src, COLUMN < 5)), DEPTH, PAIR
    ),
    "EXP varies over r2, a range inside of a matrix unit": sink(
        store(param(0, 256), ROW * 16 + COLUMN, UOp.apply(ops.EXP, load(param(1, 256), ROW * 16 + COLUMN)))
    ),
    "range r0 is still open at the SINK": sink(store(param(0), R0, FIRST)),
    "a REDUCE over a loop is a state here; only lanes and rows are reduced in registers": sink(
        loop(R0, store(param(0), R0, SUM))
    ),
    "a FOR runs over a range of kind loop or parallel": sink(loop(a_range(1, "lane"), store(param(0), R0, FIRST))),
    "a FOR says how many of its sources are yields, got 3": final(loop(R0, FIRST, yields=3)),
    "the effects of a FOR are stores and loops, got const": sink(loop(R0, FIRST)),
    "two loops run over r0": sink(loop(R0, store(param(0), R0, FIRST)), loop(R0, store(param(1), R0, FIRST))),
    "a CARRY takes a range and its first value": final(loop(R0, UOp(ops.CARRY, F32, (R0,), 0), yields=1)),
    "no FOR runs over r1, which has a state": final(loop(R0, UOp(ops.CARRY, F32, (R1, FIRST), 0), yields=1)),
    "state 1 of r0 is never yielded": final(loop(R0, UOp(ops.CARRY, F32, (R0, FIRST), 1), yields=1)),
    "the first value of a state varies over its own loop": final(
        loop(R0, UOp(ops.CARRY, F32, (R0, load(param(1), R0)), 0), yields=1)
    ),
    "a state keeps its type, got int32, then float32": final(
        loop(R0, UOp(ops.CARRY, I32, (R0, UOp.const(I32, 0)), 0).cast(F32), yields=1)
    ),
    "state 0 of r0 begins in two ways": final(
        loop(R0, CARRY + UOp(ops.CARRY, F32, (R0, UOp.const(F32, 1)), 0), yields=1)
    ),
    "FINAL takes a FOR, got const": final(FIRST),
    "the loop has 1 states, not a state 1": final(TURN, 1),
    "FINAL has the type of its state": sink(
        store(param(0, dtype=I32), UOp.const(INDEX, 0), UOp(ops.FINAL, I32, (TURN,), 0))
    ),
    "the value varies over r1, the place does not: the range is never closed": sink(
        loop(R0, store(param(0), R0, load(param(1), a_range(1, "lane"))))
    ),
}


@pytest.mark.parametrize("message", LOOPS)
def test_a_malformed_loop_is_named(message):
    assert message == fault(LOOPS[message], "LOOP").message


# --- LINEAR ------------------------------------------------------------------------------------


def listing(*nodes):
    return UOp(ops.LINEAR, dtypes.void, nodes)


READ = load(param(1), R0)
WRITE = store(param(0), R0, READ)
LISTS = {
    "a load is used before its definition or outside its loop": listing(R0, WRITE, READ, loop(R0, WRITE)),
    "the operand load is not listed": listing(R0, WRITE, loop(R0, WRITE)),
    "a node is listed once": listing(R0, READ, READ, WRITE, loop(R0, WRITE)),
    "a FOR closes the innermost open loop": listing(R0, R1, READ, WRITE, loop(R0, WRITE)),
    "the loop over r0 is never closed": listing(R0, READ, WRITE),
    "a CARRY follows the RANGE of its loop": listing(
        R0, CARRY, a := CARRY + 1.0, UOp(ops.CARRY, F32, (R0, FIRST), 1), loop(R0, a, a, yields=2)
    ),
    "ranges of lanes and rows open no loop and are not listed": listing(
        lane := a_range(0, "lane"), store(param(0), lane, FIRST)
    ),
}


@pytest.mark.parametrize("message", LISTS)
def test_a_malformed_list_is_named(message):
    assert message == fault(LISTS[message], "LINEAR").message


def test_a_list_is_a_linear_node():
    assert "the root is no LINEAR" == fault(param(0), "LINEAR").message


# --- how the error reads -----------------------------------------------------------------------


def test_the_message_stands_under_the_guilty_line():
    good, guilty = buffer(2) * 2.0, moved(ops.RESHAPE, (5,), 2)
    error = fault(sink(good, guilty * guilty), "TENSOR")
    lines = error.text.splitlines()
    at = next(number for number, line in enumerate(lines) if "reshape(5)" in line)
    assert "^ reshape by (5,) does not fit the shape (2,)" == lines[at + 1]
    assert "lower.example" == error.function
    assert lines[at] in str(error)


def test_only_the_lines_around_a_fault_of_a_long_program_are_shown():
    root = buffer(2)
    for _ in range(2000):
        root = root * root
    error = fault(root + buffer(3), "TENSOR")
    assert "..." == error.text.splitlines()[0]
    assert len(error.text.splitlines()) < 40


def test_a_graph_without_a_text_form_is_listed_node_by_node():
    error = fault(final(FIRST), "LOOP")
    assert "final float32" in error.text
    assert "^ FINAL takes a FOR, got const" in error.text
