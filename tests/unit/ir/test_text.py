import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.canonical import canonical
from lazulite.ir.dtype import STORED, dtypes
from lazulite.ir.parse import parse
from lazulite.ir.text import language_of, to_text
from lazulite.ir.uop import UOp, index
from support.random_graphs import kernels, tensor_graphs

FLOATS = [t for t in STORED if t.is_float]


def body(node):
    """The text without the line that names the language."""
    return to_text(node).partition("\n")[2]


def scalar(slot, dtype=dtypes.int32):
    return UOp(ops.SCALAR, dtype, (), (slot, None, None))


def returned(node):
    return to_text(node).splitlines()[-1].removeprefix("return ")


# --- programs, as people write them ------------------------------------------------------------

TENSOR = """\
tensor
param p0 float32[4, 3]
param p1 float32[3] on 'NPY'
scalar n2 float32
scalar n3 int32 0..15
t0 = p0 + p1.copy('CPU').expand(4, 3)
t1 = p0.write(shrink(0..2, 0..3).permute(1, 0), t0.shrink(0..2, 0..3).permute(1, 0))
return t1, t0.max(1).pad(1+0, 0+2), where(t0 < 0.0, t0, n2), iota(5):int32 + n3"""

KERNEL = """\
kernel
param p0 float32[1024]
param p1 float32[1024]
param p2 float32[1024]
parallel r0 in 0..32
loop r1 in 0..32
loop r2 in 0..32
p0[r0*32 + r1] = max(sum(p1[r0*32 + r2] * p2[r2*32 + r1] for r2), 0.0)"""

GATED = """\
kernel
param p0 int32[64]
param p1 int32[60]
loop r0 in 0..64
p0[r0 if r0 % 2 == 0] = p1[r0 - 1 if (0 < r0) & (r0 < 61)] * -3"""

LOOP = """\
loop
param p0 float32[64]
param p1 float32[1024]
scratch s0 float32[16] align 64
lane r3 in 0..8
parallel r0 in 0..8
    loop r1 in 0..16
        s0[r1] = p1[r0*16 + r1]
    loop r2 in 0..2
        state c0 = 0.0:float32
        state c1 = -inf:float32
        t0 = after(s0, r1)[r2*8 + r3]
        next c0 = fma(t0, t0, c0)
        next c1 = max(c1, t0)
    p0[r0*8 + r3] = c0 / c1"""

EFFECTS = """\
loop
param p0 int32[8]
param p1 int32[8]
loop r0 in 0..8
    p0[r0] = 1 as w0
    p1[r0] = after(p0, w0)[r0] as w1
    effects w1, w0"""

LINEAR = """\
linear
param p0 float32[1]
param p1 float32[64]
loop r0 in 0..64
    state c0 = 0.0:float32
    t0 = p1[r0]
    t1 = fma(t0, t0, c0)
    next c0 = t1
t2 = sqrt(c0)
p0[0] = t2"""

STORES = """\
tensor
param p0 float32[4]
return after(p0, store(p0.shrink(0..2), 1.0)) + 1.0"""


@pytest.mark.parametrize("text", [TENSOR, KERNEL, GATED, LOOP, EFFECTS, LINEAR, STORES], ids=lambda t: t.split()[0])
def test_a_program_reads_and_prints_the_same(text):
    assert text == to_text(parse(text))


@pytest.mark.parametrize("text", [TENSOR, KERNEL, LOOP, LINEAR], ids=lambda t: t.split()[0])
def test_the_language_is_found_out(text):
    assert text.split()[0].upper() == language_of(parse(text))


@given(tensor_graphs())
def test_a_graph_of_whole_values_comes_back_in_its_canonical_form(graph):
    assert canonical(graph) is parse(to_text(graph))


@given(kernels())
def test_a_kernel_comes_back_in_its_canonical_form(kernel):
    assert canonical(kernel) is parse(to_text(kernel))


@given(tensor_graphs())
def test_printing_what_was_printed_changes_nothing(graph):
    assert to_text(graph) == to_text(parse(to_text(graph)))


# --- constants ---------------------------------------------------------------------------------


@given(st.sampled_from(FLOATS), st.data())
def test_a_float_constant_comes_back_with_every_bit(dtype, data):
    node = UOp(ops.CONST, dtype, (), data.draw(st.integers(0, (1 << dtype.bits) - 1)))
    assert node is parse(to_text(node))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (-0.0, "-0.0"), (1.0, "1.0"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"),
     (1e30, "1e+30"), (16777216.0, "16777216.0")],
)  # fmt: skip
def test_a_float_has_its_shortest_digits(value, text):
    assert f"{text}:float32" == returned(UOp.const(dtypes.float32, value))


def test_nan_with_other_bits_is_told_apart():
    assert "nan(0x7fc00001):float32" == returned(UOp(ops.CONST, dtypes.float32, (), 0x7FC00001))


def test_a_constant_shows_its_type_only_where_no_operand_does():
    x = scalar(0)
    assert "n0 + 3" == returned(x + 3)
    assert "3:int32 + 4" == returned(UOp.const(dtypes.int32, 3) + 4)
    assert "where(true, n0, 5)" == returned(UOp.const(dtypes.bool, True).where(x, 5))


# --- expressions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["n0 - (n1 - n0)", "n0 - n1 - n0", "(n0 + n1) * n0", "n0 + n1 * n0", "-n0 * n1", "-(n0 * n1)", "n0 * -3",
     "(n0 < n1) == (n1 < n0)", "~(n0 < n1) & (n0 == 3)", "n0 << 3 >> n1", "(n0 | n1) & 7", "-(3:int32)", "--n0",
     "n0.cast(float32) / 3.0", "(n0 + 1).cast(int8)", "where(n0 < n1, n0, n1)", "max(n0, min(n1, 0))",
     "n0.bitcast(uint32)", "threefry(1:uint64, 2)", "fma(n0, n1, n0)", "n0 // n1 % 5"],
)  # fmt: skip
def test_an_expression_has_just_the_brackets_it_needs(text):
    assert text == returned(parse(f"scalar n0 int32\nscalar n1 int32\nreturn {text}"))


def test_an_index_is_subtracted_though_there_is_no_sub():
    x, y = scalar(0, dtypes.index), scalar(1, dtypes.index)
    assert "n0 - n1" == returned(x + y * -1)
    assert "n0 - 5" == returned(x + -5)
    assert "n0 - n1*5" not in returned(x + y * -5)
    assert "n0 - (n0 - n1)" == returned(x + (x + y * -1) * -1)


def test_an_old_sub_of_indices_is_told_apart():
    node = UOp.apply(ops.SUB, scalar(0, dtypes.index), scalar(1, dtypes.index))
    assert "sub(n0, n1)" == returned(node)
    assert node is parse(to_text(node))


def test_a_value_used_twice_gets_a_name():
    x = scalar(0)
    assert ["t0 = n0 * n0", "return t0 + t0"] == body((x * x) + (x * x)).splitlines()[1:]


def test_a_short_index_is_repeated_and_not_named():
    x = scalar(0, dtypes.index)
    assert "n0*4 + n0*4" == returned(x * 4 + x * 4)


def test_a_deep_chain_is_cut_into_lines_of_a_bearable_width():
    root = scalar(0)
    for step in range(20_000):
        root = root * 3 + step
    lines = to_text(root).splitlines()
    assert max(map(len, lines)) < 120
    assert canonical(root) is parse("\n".join(lines))


# --- canonical form ----------------------------------------------------------------------------


def test_buffers_print_as_slots_whatever_their_storage():
    def graph(first, second):
        x, y = (UOp(ops.BUFFER, dtypes.float32, (), (number, 3, (2,), "CPU")) for number in (first, second))
        return x * y + x

    assert to_text(graph(17, 40)) == to_text(graph(5, 2))
    assert "831" not in to_text(graph(831, 5))


def test_slots_of_parameters_are_an_interface_and_stay():
    a, b = (UOp(ops.PARAM, dtypes.float32, (), (slot, (2,), "CPU")) for slot in (1, 0))
    assert a - b is canonical(a - b)
    assert "return p1 - p0" in to_text(a - b)


def test_ranges_keep_their_nesting_and_lose_their_numbers():
    i, j = (UOp(ops.RANGE, dtypes.index, (index(4),), (order, "loop")) for order in ((7, 1), (2,)))
    renamed = canonical(i * 4 + j)
    assert {(1,), (0,)} == {r.arg[0] for r in renamed.ranges}
    assert "return r1*4 + r0" in to_text(i * 4 + j)


def test_an_extent_may_vary_over_an_outer_range():
    i = UOp(ops.RANGE, dtypes.index, (index(4),), ((3,), "loop"))
    j = UOp(ops.RANGE, dtypes.index, (i + 1,), ((5,), "loop"))
    assert "loop r1 in 0..r0 + 1" in to_text(j * 2)
    assert canonical(j * 2) is parse(to_text(j * 2))


# --- effects -----------------------------------------------------------------------------------


def test_a_sink_of_one_value_is_told_from_the_value():
    x = scalar(0)
    assert "n0" == returned(x)
    assert "n0," == returned(UOp(ops.SINK, dtypes.void, (x,)))
    assert UOp(ops.SINK, dtypes.void) is parse("return")


def test_a_state_that_nothing_reads_in_its_loop_has_no_first_value():
    text = "loop\nparam p0 int32[4]\nloop r0 in 0..4\n    state c0\n    next c0 = 5:int32\np0[0] = c0"
    assert text == to_text(parse(text))
    assert not any(node.op is ops.CARRY for node in parse(text).src[0].src)


def test_stores_of_one_sink_keep_their_order():
    text = "kernel\nparam p0 int32[4]\nloop r0 in 0..4\np0[r0] = 1\np0[0] = 2"
    first, second = parse(text).src
    swapped = UOp(ops.SINK, dtypes.void, (second, first))
    assert swapped is parse(to_text(swapped))
