import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import STORED, dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp, toposort
from support.random_graphs import tensor_graphs

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 100.25, -1e30, 1e38, math.inf, -math.inf, math.nan]
DEEP = 100_000


def values(draw, dtype, count):
    if dtype.is_float:
        return [dtype.round(v) for v in draw(st.lists(st.sampled_from(SPECIAL), min_size=count, max_size=count))]
    ends = [int(dtype.min), int(dtype.max), 0, 1, 2, 3]
    return [dtype.round(v) for v in draw(st.lists(st.sampled_from(ends), min_size=count, max_size=count))]


def buffer(*shape, dtype=dtypes.float32):
    return UOp(ops.BUFFER, dtype, (), (1, 0, shape, "CPU"))


def run(text, *contents):
    """The elements of the result of a program; contents by slot."""
    root = parse(text)
    leaves = {node.arg[0]: node for node in toposort(root) if node.op in (ops.PARAM, ops.SCALAR)}
    (result,) = evaluate_tensors([root], {leaves[slot]: given for slot, given in enumerate(contents)})
    return result


# --- against NumPy -----------------------------------------------------------------------------


def numpy_value(node, sources):
    kind = np.dtype(node.dtype.name)
    if node.op in ELEMENTWISE:
        return np.asarray(ELEMENTWISE[node.op](*sources)).astype(kind)
    return np.asarray(STRUCTURE[node.op](node, *sources), kind)


def by_zero(function):
    return lambda x, y: np.where(y == 0, 0, function(x, np.where(y == 0, 1, y)))


def shifted(x, y):
    return np.vectorize(lambda a, b: int(a) >> int(b) if 0 <= b < 128 else -1 if a < 0 else 0, otypes=[object])(x, y)


def larger(x, y):
    result = np.maximum(x, y)
    return np.where((x == 0) & (y == 0), x + y, result) if result.dtype.kind == "f" else result


def smaller(x, y):
    result = np.minimum(x, y)
    return np.where((x == 0) & (y == 0), -(-x + -y), result) if result.dtype.kind == "f" else result


ELEMENTWISE = {
    ops.ADD: np.add, ops.SUB: np.subtract, ops.MUL: np.multiply, ops.DIV: np.divide, ops.MAX: larger,
    ops.MIN: smaller, ops.FLOORDIV: by_zero(np.floor_divide), ops.MOD: by_zero(np.remainder), ops.LT: np.less,
    ops.LE: np.less_equal, ops.EQ: np.equal, ops.NE: np.not_equal, ops.AND: np.bitwise_and, ops.OR: np.bitwise_or,
    ops.XOR: np.bitwise_xor, ops.NOT: np.invert, ops.SHR: shifted, ops.WHERE: np.where,
}  # fmt: skip


def cast(node, x):
    if node.dtype.is_int and node.src[0].dtype.is_float:
        return [[0 if v != v else int(max(node.dtype.min, min(node.dtype.max, v))) for v in x.ravel().tolist()]]
    return x != 0 if node.dtype is dtypes.bool else x.astype(node.dtype.name)


def reduced(node, x):
    op, axes = node.arg
    rows = np.moveaxis(x, axes, range(-len(axes), 0)).reshape((*node.shape, -1)) if axes else x[..., None]
    result = np.empty(node.shape, x.dtype)
    for place in np.ndindex(*node.shape):
        result[place] = combined(op, rows[place])
    return result


def combined(op, row):
    if op is ops.ADD and row.dtype.kind == "f" and np.isfinite(row).all():
        return math.fsum(row)
    if op is ops.ADD:
        return row.sum(dtype=row.dtype)
    total = row[0]
    for value in row[1:]:
        total = np.asarray(ELEMENTWISE[op](total, value)).astype(row.dtype)[()]
    return total


MOVEMENTS = {
    "reshape": lambda x, arg: x.reshape(arg),
    "permute": lambda x, arg: x.transpose(arg),
    "expand": np.broadcast_to,
    "pad": lambda x, arg: np.pad(x, arg) if arg else x,
    "shrink": lambda x, arg: x[(..., *(slice(*box) for box in arg))],
    "flip": lambda x, arg: np.flip(x, arg) if arg else x,
}


def moved(name, arg, x):
    return MOVEMENTS[name](x, arg)


def written(node, previous, value):
    result = previous.copy()
    view = result
    for name, arg in node.arg:
        view = moved(name, arg, view)
    view[...] = value
    return result


def gathered(node, x, *positions):
    places = np.stack(positions).astype(int)
    sizes = np.array(x.shape[: len(positions)]).reshape(-1, *[1] * positions[0].ndim)
    inside = ((places >= 0) & (places < sizes)).all(0).reshape((*positions[0].shape, *[1] * (x.ndim - len(positions))))
    if 0 in x.shape:
        return np.zeros(node.shape)
    return np.where(inside, x[tuple(np.where((places >= 0) & (places < sizes), places, 0))], 0)


STRUCTURE = {
    ops.CONST: lambda node: node.value, ops.IOTA: lambda node: np.arange(node.arg), ops.CAST: cast,
    ops.REDUCE: reduced, ops.WRITE: written, ops.GATHER: gathered,
    **{op: lambda node, x: moved(node.op.name, node.arg, x) for op in ops.MOVEMENT},
}  # fmt: skip


def has_empty_reduction(root):
    return any(node.op is ops.REDUCE and 0 in node.src[0].shape for node in toposort(root))


@given(tensor_graphs(), st.data())
def test_graphs_of_whole_values_mean_what_numpy_computes(graph, data):
    if has_empty_reduction(graph):
        return
    memory, known = {}, {}
    for node in toposort(graph):
        if node.op in (ops.BUFFER, ops.SCALAR):
            memory[node] = values(data.draw, node.dtype, math.prod(node.shape))
            known[node] = np.array(memory[node], node.dtype.name).reshape(node.shape)
        elif node is not graph:
            with np.errstate(all="ignore"):
                known[node] = numpy_value(node, [known[s] for s in node.src]).reshape(node.shape)
    for root, result in zip(graph.src, evaluate_tensors(graph.src, memory), strict=True):
        np.testing.assert_array_equal(known[root].ravel(), np.array(result, known[root].dtype))


# --- rounding ----------------------------------------------------------------------------------


@given(st.sampled_from([t for t in STORED if t.is_float]), st.data())
def test_every_step_rounds_to_its_type(dtype, data):
    x, y = (UOp.const(dtype, data.draw(st.floats(-1e4, 1e4))) for _ in range(2))
    (result,) = evaluate_tensors([x * y + x], {})
    assert repr([dtype.round(dtype.round(x.value * y.value) + x.value)]) == repr(result)


def test_a_fused_multiply_add_rounds_once():
    tiny = 2.0**-30
    x = UOp.const(dtypes.float64, 1 + tiny)
    (fused,), (apart,) = evaluate_tensors([UOp.apply(ops.FMA, x, x, -(x * x)), x * x - x * x], {})
    assert tiny**2 == fused
    assert 0.0 == apart


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_narrow_sums_accumulate_in_float32_and_round_once(name):
    """A running sum in the narrow type would stop at 2048 or 256."""
    assert [4096.0] == run(f"tensor\nparam p0 {name}[4096]\nreturn p0.sum(0)", [1.0] * 4096)


def test_a_float_sum_is_rounded_once():
    contents = [1e30, 1.0, -1e30] * 7
    assert [7.0] == run("tensor\nparam p0 float64[21]\nreturn p0.sum(0)", contents)


@pytest.mark.parametrize(
    ("contents", "result"), [([math.inf, 1.0], math.inf), ([math.inf, -math.inf], math.nan), ([3e38, 3e38], math.inf)]
)
def test_a_float_sum_may_be_infinite_or_nan(contents, result):
    np.testing.assert_equal(run("tensor\nparam p0 float32[2]\nreturn p0.sum(0)", contents), [result])


def test_integer_reductions_wrap_around():
    assert [-56] == run("tensor\nparam p0 int8[2]\nreturn p0.sum(0)", [100, 100])
    assert [(3**200 + 2**31) % 2**32 - 2**31] == run("tensor\nparam p0 int32[200]\nreturn p0.product(0)", [3] * 200)


@pytest.mark.parametrize(("name", "result"), [("sum", 0.0), ("product", 1.0), ("max", -math.inf), ("min", math.inf)])
def test_a_reduction_of_nothing_is_the_identity(name, result):
    assert [result] * 2 == run(f"tensor\nparam p0 float32[2, 0]\nreturn p0.{name}(1)", [])


# --- structure ---------------------------------------------------------------------------------


def test_bits_are_read_as_a_wider_or_narrower_type():
    assert [1, 2, 3, 4] == run("tensor\nparam p0 uint32[1]\nreturn p0.bitcast(uint8)", [0x04030201])
    assert [0x04030201] == run("tensor\nparam p0 uint8[4]\nreturn p0.bitcast(uint32)", [1, 2, 3, 4])
    assert [1.0] == run("tensor\nparam p0 int32[1]\nreturn p0.bitcast(float32)", [0x3F800000])


def test_a_write_replaces_the_region_and_nothing_else():
    text = "tensor\nparam p0 int32[2, 3]\nreturn p0.write(permute(1, 0).shrink(1..3, 0..1), 9)"
    assert [1, 9, 9, 4, 5, 6] == run(text, [1, 2, 3, 4, 5, 6])


def test_a_copy_and_a_detached_value_have_the_same_elements():
    assert [3.0] == run("tensor\nparam p0 float32[1]\nreturn detach(p0.copy('NPY'))", [3.0])


def test_a_read_after_a_store_sees_it_and_one_before_does_not():
    text = """
    tensor
    param p0 int32[4]
    t0 = store(p0.flip(0).shrink(0..2), 7)
    t1 = after(p0, t0)
    t2 = store(p0.shrink(0..1), p0.shrink(3..4) + 1)
    return p0 * 1000000 + t1 * 1000 + after(t1, t2)
    """
    assert [1001005, 2002002, 3007007, 4007007] == run(text, [1, 2, 3, 4])


def test_a_value_of_rank_0_stands_beside_any_shape():
    assert [2.5, 3.5] == run("tensor\nparam p0 float32[2]\nscalar n1 float32\nreturn p0 + n1", [1.0, 2.0], [1.5])


def test_a_chain_of_100_000_nodes_is_evaluated():
    x = buffer(2)
    root = x
    for _ in range(DEEP):
        root = root + 1.0
    assert [[DEEP + 1.0, DEEP + 2.0]] == evaluate_tensors([root], {x: [1.0, 2.0]})


# --- faults ------------------------------------------------------------------------------------


def test_a_leaf_without_contents_is_named():
    with pytest.raises(KeyError, match="no contents were given for <buffer"):
        evaluate_tensors([buffer(2)], {})


def test_contents_of_the_wrong_size_are_refused():
    with pytest.raises(ValueError, match="has 2 elements, but 3 were given"):
        evaluate_tensors([buffer(2)], {buffer(2): [1.0, 2.0, 3.0]})


def test_an_op_without_a_meaning_is_refused():
    with pytest.raises(ValueError, match="FINAL has no meaning for single elements"):
        evaluate_tensors([UOp(ops.FINAL, dtypes.float32, (UOp.const(dtypes.float32, 1),), 0)], {})
