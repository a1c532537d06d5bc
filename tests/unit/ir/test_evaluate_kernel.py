import gc
import itertools
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import KernelFault, compile_kernel, run_kernel
from lazulite.ir.meaning import rounded
from lazulite.ir.parse import parse
from lazulite.ir.uop import live_nodes
from support.random_graphs import kernels


def run(text, *memory, **scalars):
    """Run a program on memory by slot; scalars by name, `n3=..`."""
    run_kernel(parse(text), dict(enumerate(memory)), {int(name[1:]): value for name, value in scalars.items()})
    return memory[0]


# --- against the plainest reading ---------------------------------------------------------------


def plain(node, at, memory):
    """The value of a node where each range has the value in `at`; recursive, nothing shared."""
    if node.op is ops.CONST:
        return node.value
    if node.op is ops.RANGE:
        return at[node]
    if node.op is ops.LOAD:
        source, place, *gate = node.src
        open_ = not gate or plain(gate[0], at, memory)
        return memory[source.arg[0]][plain(place, at, memory)] if open_ else node.dtype.round(0)
    if node.op is ops.REDUCE:
        combine = {ops.ADD: math.fsum if node.dtype.is_float else sum, ops.MAX: max, ops.MIN: min}[node.arg[0]]
        points = itertools.product(*[range(r.src[0].arg) for r in node.src[1:]])
        rows = [at | dict(zip(node.src[1:], point, strict=True)) for point in points]
        return node.dtype.round(combine([plain(node.src[0], row, memory) for row in rows]))
    return rounded(node)(*[plain(source, at, memory) for source in node.src])


def plain_kernel(sink, memory):
    before = {slot: list(values) for slot, values in memory.items()}
    for store in sink.src:
        ranges = sorted(store.ranges, key=lambda r: r.arg[0])
        for point in itertools.product(*[range(r.src[0].arg) for r in ranges]):
            at = dict(zip(ranges, point, strict=True))
            if len(store.src) < 4 or plain(store.src[3], at, before):
                memory[store.src[0].arg[0]][plain(store.src[1], at, before)] = plain(store.src[2], at, before)


@given(kernels(), st.randoms(use_true_random=False))
def test_a_kernel_means_what_the_plainest_reading_says(kernel, random):
    inputs = {slot: [float(random.randint(-40, 40)) / 4 for _ in range(64)] for slot in (2, 3)}
    if kernel.src[0].src[0].dtype is dtypes.int32:
        inputs = {slot: [int(v * 4) for v in values] for slot, values in inputs.items()}
    expected, got = ({0: [None] * 64, 1: [None] * 64} | inputs for _ in range(2))
    plain_kernel(kernel, expected)
    run_kernel(kernel, got, {})
    assert expected == got


# --- kernels -----------------------------------------------------------------------------------


def test_loads_of_a_kernel_see_what_was_there_before_it():
    text = """
    param a int32[3]
    param b int32[3]
    loop i in 0..3
    a[i] = a[i] * 10
    b[i] = a[i] + 1
    """
    a, b = [1, 2, 3], [None] * 3
    run(text, a, b)
    assert ([10, 20, 30], [2, 3, 4]) == (a, b)


def test_reductions_that_feed_each_other_share_nothing_they_should_not():
    """A softmax: the maximum and the sum run over the same range, the store over another."""
    text = """
    param out float64[8]
    param a float64[8]
    loop i in 0..2
    loop j in 0..4
    loop k in 0..4
    m = max(a[i*4 + k] for k)
    s = sum(exp(a[i*4 + k] - m) for k)
    out[i*4 + j] = exp(a[i*4 + j] - m) / s
    """
    a = [0.1, 5.0, -2.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    result = run(text, [None] * 8, a)
    row = [math.exp(x - 5.0) for x in a[:4]]
    assert result[:4] == pytest.approx([x / sum(row) for x in row], rel=1e-15)
    assert [0.25] * 4 == result[4:]


def test_a_reduction_over_two_ranges_and_one_inside_another():
    text = """
    param out int32[1]
    param a int32[6]
    loop i in 0..2
    loop j in 0..3
    loop k in 0..3
    out[0] = sum(a[i*3 + j] for i, j) * 100 + sum(max(a[i*3 + k] for k) for i)
    """
    assert [2100 + 3 + 6] == run(text, [None], [1, 2, 3, 4, 5, 6])


def test_an_empty_reduction_is_the_identity():
    text = "param out float32[1]\nparam a float32[4]\nloop i in 0..0\nout[0] = max(a[i] for i)"
    assert [-math.inf] == run(text, [None], [1.0] * 4)


def test_scalars_are_passed_by_slot_and_may_be_extents():
    text = """
    param p0 int32[8]
    scalar n1 int32
    scalar n2 index 0..8
    loop i in 0..n2
    p0[i] = i.cast(int32) * n1
    """
    assert [0, 3, 6, -1, -1, -1, -1, -1] == run(text, [-1] * 8, n1=3, n2=3)


def test_a_bool_in_memory_may_be_a_byte():
    text = "param a bool[3]\nparam b bool[3]\nloop i in 0..3\na[i] = ~b[i]"
    assert [False, True, False] == run(text, [None] * 3, [1, 0, 2])


def test_a_kernel_of_narrow_floats_accumulates_in_float32():
    text = "param out bfloat16[1]\nparam a bfloat16[1000]\nloop i in 0..1000\nout[0] = sum(a[i] for i)"
    assert [1000.0] == run(text, [None], [1.0] * 1000)


def test_a_reduction_inside_of_another_over_the_same_range_is_a_loop_of_its_own():
    kernel = parse(
        "kernel\nparam p0 int32[1]\nparam p1 int32[9]\nloop r0 in 0..3\nloop r1 in 0..3\n"
        "p0[0] = sum(min(p1[r0*3 + r1] for r0, r1) + sum(p1[r1] for r1) for r1)\n"
    )
    memory = {0: [0], 1: [5, 4, 3, 8, 7, 1, 9, 9, 9]}
    run_kernel(kernel, memory, {})

    assert [3 * (1 + 12)] == memory[0]


# --- loops, lanes and lists ----------------------------------------------------------------------

REVERSED = """
param out int32[12]
param a int32[12]
scratch s int32[4] align 64
parallel i in 0..3
    loop j in 0..4
        s[j] = a[i*4 + j]
    loop k in 0..4
        out[i*4 + k] = after(s, j)[3 - k]
"""


def test_scratch_memory_is_filled_and_read_in_order():
    assert [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8] == run(REVERSED, [None] * 12, list(range(12)))


def test_states_advance_together():
    text = """
    param out int32[2]
    loop i in 0..10
        state x = 0:int32
        state y = 1:int32
        next x = y
        next y = x + y
    out[0] = x
    out[1] = y
    """
    assert [55, 89] == run(text, [None] * 2)


def test_states_of_nested_loops_begin_as_the_one_around_them():
    text = """
    param out int32[1]
    loop i in 0..3
        state x = 0:int32
        loop j in 0..4
            state y = x
            next y = y + 1
        next x = y * 2
    out[0] = x
    """
    assert [((0 + 4) * 2 + 4) * 2 * 2 + 8] == run(text, [None])


TILE = """
param out float32[8]
param a float32[6]
param b float32[12]
lane j in 0..4
row i in 0..2
loop k in 0..3
    state acc = 0.0:float32
    next acc = fma(a[i*3 + k], b[k*4 + j], acc)
out[i*4 + j] = acc
"""


def test_a_register_tile_is_a_value_over_its_rows_and_lanes():
    """The first value of the state is one number; the tile comes from the operands."""
    a, b = [float(x) for x in range(6)], [float(x) for x in range(12)]
    expected = [sum(a[i * 3 + k] * b[k * 4 + j] for k in range(3)) for i in range(2) for j in range(4)]
    assert expected == run(TILE, [None] * 8, a, b)


def test_lanes_reach_a_state_by_way_of_another_state():
    text = """
    param out int32[4]
    param a int32[4]
    lane j in 0..4
    loop k in 0..3
        state x = 0:int32
        state y = 0:int32
        next x = y
        next y = a[j] + k.cast(int32)
    out[j] = x
    """
    assert [2, 3, 4, 5] == run(text, [None] * 4, [1, 2, 3, 4])


def test_lanes_and_rows_are_reduced_in_registers():
    text = """
    param out int32[5]
    param a int32[6]
    lane j in 0..3
    row i in 0..2
    t = a[i*3 + j]
    out[0] = sum(t for i, j)
    out[1 + i] = max(t for j)
    out[j + 2 if j == 2] = sum(t for i)
    """
    assert [21, 3, 6, -1, 9] == run(text, [-1] * 5, [1, 2, 3, 4, 5, 6])


def test_gates_hold_for_each_lane():
    text = """
    param out int32[6]
    param a int32[6]
    lane j in 0..8
    out[j if j < 6] = a[j if j < 6] + 1
    """
    assert [1, 2, 3, 4, 5, 6] == run(text, [None] * 6, list(range(6)))


def test_a_list_runs_in_its_order():
    text = """
    linear
    param out float32[2]
    param a float32[8]
    lane j in 0..4
    loop i in 0..2
        state s = 0.0:float32
        x = i*4
        y = a[x + j]
        z = sum(y for j)
        w = s + z
        next s = w
    t = s
    out[0] = t
    out[1] = y
    """
    text = text.replace("y = a[x + j]", "u = x + j\n        y = a[u]").replace("    out[1] = y\n", "")
    assert [28.0, None] == run(text, [None] * 2, [float(x) for x in range(8)])


def test_the_turns_of_a_parallel_loop_are_shuffled_the_same_way_each_time():
    text = "param out int32[1]\nparallel i in 0..50\n    out[0] = i.cast(int32)"
    first, second = run(text, [None]), run(text, [None])
    assert first == second
    assert [49] != first


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out[i] = a[i + 1]", r"a load reads p1\[4\], which has 4 elements"),
        ("out[i] = a[i - 1]", r"a load reads p1\[-1\], which has 4 elements"),
        ("out[i + 1] = 1", r"a store writes p0\[4\], which has 4 elements"),
        ("out[i] = after(s)[i]", r"a load reads s0\[0\] before anything was written there"),
    ],
)
def test_what_compiled_code_might_get_away_with_raises(text, message):
    head = "param out int32[4]\nparam a int32[4]\nscratch s int32[4] align 16\nloop i in 0..4\n"
    with pytest.raises(KernelFault, match=message):
        run(head + text, [None] * 4, [1, 2, 3, 4])


def test_reading_an_output_that_was_never_written_raises():
    with pytest.raises(KernelFault, match="before anything was written"):
        run("param out int32[1]\nout[0] = out[0] + 1", [None])


def test_an_index_out_of_range_behind_a_false_gate_is_never_used():
    text = "param out int32[4]\nparam a int32[2]\nloop i in 0..4\nout[i] = a[i - 1 if (0 < i) & (i < 3)]"
    assert [0, 5, 6, 0] == run(text, [None] * 4, [5, 6])


def test_memory_has_to_be_given_in_full():
    text = "param out int32[4]\nout[0] = 1"
    with pytest.raises(KernelFault, match="slot 0 needs 4 elements, got 3"):
        run(text, [None] * 3)
    with pytest.raises(KernelFault, match="no memory was given for slot 0"):
        run_kernel(parse(text), {}, {})


# --- cost --------------------------------------------------------------------------------------


def test_a_compiled_kernel_keeps_no_node_alive():
    gc.collect()
    before = live_nodes()
    kernel = compile_kernel(parse(TILE))
    gc.collect()
    assert live_nodes() <= before
    kernel({0: [None] * 8, 1: [0.0] * 6, 2: [0.0] * 12}, {})


def test_half_a_million_elements_a_second_are_interpreted():
    """Small networks run on the PYTHON device in bearable time."""
    text = """
    param out float32[1024]
    param a float32[2048]
    param b float32[2048]
    loop i in 0..32
    loop j in 0..32
    loop k in 0..64
    out[i*32 + j] = sum(a[i*64 + k] * b[k*32 + j] for k)
    """
    kernel, best = compile_kernel(parse(text)), math.inf
    for _ in range(3):
        start = time.perf_counter()
        kernel({0: [None] * 1024, 1: [0.5] * 2048, 2: [0.25] * 2048}, {})
        best = min(best, time.perf_counter() - start)
    assert 2 * 32 * 32 * 64 / best > 500_000


TILES = """
loop
param p0 TOTAL[4]
param p1 FACTOR[8]
param p2 FACTOR[8]
unit r0 in 0..2
unit r1 in 0..2
unit r2 in 0..2
unit r3 in 0..2
p0[r0*2 + r1] = mma(START, p1[r0*4 + r2*2 + r3], p2[r2*4 + r1*2 + r3] for r2, r3)
"""


@pytest.mark.parametrize(("total", "factor", "start"), [("float32", "bfloat16", "0.5"), ("int32", "int8", "7")])
def test_a_matrix_unit_adds_the_products_along_the_depth(total, factor, start):
    text = TILES.replace("TOTAL", total).replace("FACTOR", factor).replace("START", f"{start}:{total}")
    left, right = [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, -1], [2, 0], [0, 3], [-2, 1]]
    packed = [right[k + pair][column] for k in (0, 2) for column in (0, 1) for pair in (0, 1)]
    found = run(text, [None] * 4, [*left[0], *left[1]], packed)

    exact = [[sum(x * y[column] for x, y in zip(row, right, strict=True)) for column in (0, 1)] for row in left]
    assert found == [float(start) + value for row in exact for value in row]


def test_a_sum_in_a_matrix_unit_wraps_and_overflows_like_any_other():
    text = TILES.replace("TOTAL", "int32").replace("FACTOR", "int8").replace("START", f"{2**31 - 1}:int32")
    assert 4 - 2**31 == run(text, [None] * 4, [1, 1, 1, 2] * 2, [1] * 8)[0]

    text = TILES.replace("TOTAL", "float32").replace("FACTOR", "bfloat16").replace("START", "0.0:float32")
    assert [math.inf, math.inf] == run(text, [None] * 4, [2.0**127] * 8, [2.0**127] * 8)[:2]
