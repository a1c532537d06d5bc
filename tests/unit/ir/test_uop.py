import copy
import gc
import math
import pickle
import sys
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import STORED, dtypes
from lazulite.ir.uop import UOp, index, live_nodes, nodes_of, rebuild, substitute, toposort, transform

DEEP = 100_000


def scalar(slot, dtype=dtypes.int32):
    return UOp(ops.SCALAR, dtype, (), (slot, None, None))


def chain(root, length):
    for step in range(length):
        root = root + (step % 7)
    return root


def settled_nodes():
    gc.collect()
    return live_nodes()


# --- interning ---------------------------------------------------------------------------------


def test_equal_nodes_are_one_object():
    x, y = scalar(0), scalar(1)
    assert x * y + 1 is scalar(0) * scalar(1) + 1
    assert x * y is not y * x


@given(st.sampled_from(STORED), st.sampled_from(STORED), st.sampled_from([0, 1, 0.0, -0.0, True, False, 1.0]))
def test_constants_of_different_types_are_different_nodes(a, b, value):
    assert (UOp.const(a, value) is UOp.const(b, value)) == (a is b)


def test_constants_are_told_apart_by_bits():
    zero, negative = UOp.const(dtypes.float32, 0.0), UOp.const(dtypes.float32, -0.0)
    assert zero is not negative
    assert zero.is_const(0) and negative.is_const(0)
    assert UOp.const(dtypes.float32, math.nan) is UOp.const(dtypes.float32, math.nan)
    assert UOp.const(dtypes.int32, 1) is not UOp.const(dtypes.bool, True)


@given(st.sampled_from(STORED), st.one_of(st.floats(allow_nan=False, width=16), st.integers(-5, 5)))
def test_a_constant_gives_back_its_rounded_value(dtype, value):
    if not dtype.is_float and isinstance(value, float) and not value.is_integer():
        value = 0
    value = value if dtype.is_float or math.isfinite(value) else 0
    known, rounded = UOp.const(dtype, value).value, dtype.round(value)
    assert known == rounded or (known != known and rounded != rounded)
    assert type(known) is {"float": float, "bool": bool}.get(dtype.kind, int)


def test_nodes_stay_themselves_through_pickles_and_copies():
    node = scalar(0) * 3 + scalar(1)
    assert node is pickle.loads(pickle.dumps(node))
    assert node is copy.deepcopy(node)


def test_threads_that_build_the_same_nodes_get_the_same_objects():
    results = []

    def build():
        results.append([chain(scalar(0), 200) for _ in range(5)][-1])

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, results))) == 1


def test_a_node_has_no_truth_value():
    with pytest.raises(TypeError, match="truth value"):
        bool(scalar(0).eq(scalar(1)))


def test_only_constants_have_a_value_and_only_plain_ops_a_type_of_their_own():
    with pytest.raises(TypeError, match="not a constant"):
        _ = scalar(0).value
    with pytest.raises(TypeError, match="explicit type"):
        UOp.apply(ops.CAST, scalar(0))


# --- operators ---------------------------------------------------------------------------------


def test_a_number_beside_a_node_takes_its_type():
    x = scalar(0, dtypes.int8)
    assert (x + 1).src[1] is UOp.const(dtypes.int8, 1)
    assert (2 - x).src[0] is UOp.const(dtypes.int8, 2)


def test_greater_is_less_with_the_operands_exchanged():
    x, y = scalar(0), scalar(1)
    assert (x > y) is (y < x)
    assert (x >= y) is (y <= x)


def test_the_negative_of_an_index_is_a_multiple():
    x = UOp(ops.SCALAR, dtypes.index, (), (0, 0, 9))
    assert -x is x * -1
    assert (-scalar(0)).op is ops.NEG


@pytest.mark.parametrize(
    ("build", "op"),
    [
        (lambda x, y: x / y, ops.DIV), (lambda x, y: 1.0 / y, ops.DIV), (lambda x, y: x // y, ops.FLOORDIV),
        (lambda x, y: x % y, ops.MOD), (lambda x, y: x & y, ops.AND), (lambda x, y: x | y, ops.OR),
        (lambda x, y: x ^ y, ops.XOR), (lambda x, y: ~x, ops.NOT), (lambda x, y: x << y, ops.SHL),
        (lambda x, y: x >> y, ops.SHR), (lambda x, y: x.eq(y), ops.EQ), (lambda x, y: x.ne(y), ops.NE),
        (lambda x, y: x.maximum(y), ops.MAX), (lambda x, y: x.minimum(y), ops.MIN), (lambda x, y: 2 * x, ops.MUL),
        (lambda x, y: 2 + x, ops.ADD), (lambda x, y: (x < y).where(x, 3), ops.WHERE),
        (lambda x, y: x.cast(dtypes.float32), ops.CAST),
    ],
)  # fmt: skip
def test_operators_build_the_nodes_they_name(build, op):
    assert op is build(scalar(0), scalar(1)).op


def test_a_cast_to_the_same_type_is_the_node():
    assert scalar(0) is scalar(0).cast(dtypes.int32)


# --- walking -----------------------------------------------------------------------------------


def test_toposort_gives_sources_first_and_each_node_once():
    x, y = scalar(0), scalar(1)
    root = (x + y) * (x + y)
    assert [x, y, x + y, root] == toposort(root)
    assert [root] == toposort(root, enter=lambda node: False)
    assert [x, y, x + y, root] == toposort(x, y, root)


def test_the_walk_that_a_node_keeps_is_its_own_each_time_and_outlives_no_user():
    gc.disable()
    try:
        before = live_nodes()
        root = scalar(0) * 5 + scalar(1)
        assert toposort(root) == nodes_of(root) == nodes_of(root)
        nodes_of(root).clear()
        assert root is nodes_of(root)[-1]
        del root
        assert before == live_nodes()
    finally:
        gc.enable()


def test_rebuild_tells_what_became_of_the_nodes_on_the_way():
    x, y, z = scalar(0), scalar(1), scalar(2)
    inner, done = x * y, {x: z}

    assert rebuild([inner + 1], done) == [z * y + 1]
    assert done[inner] is z * y
    assert rebuild([inner], done) == [z * y]


def test_transform_shows_nodes_of_some_operations_over_what_became_of_their_sources():
    x, y = scalar(0), scalar(1)
    shown: list[UOp] = []

    def change(node: UOp) -> UOp:
        shown.append(node)
        return node - 1 if node.op is ops.MUL else node

    assert (x * y - 1) + y is transform(x * y + y, (ops.MUL, ops.ADD), change)
    assert [x * y, (x * y - 1) + y] == shown
    assert x + y is transform(x + y, (ops.ADD,), lambda node: node)


def test_substitute_replaces_once_and_keeps_what_does_not_change():
    x, y, z = scalar(0), scalar(1), scalar(2)
    kept = y * 2
    (result,) = substitute([x + kept], {x: x + z})
    assert result is (x + z) + kept


def test_substitute_gives_the_same_where_a_walk_is_known():
    x, y, z = scalar(0), scalar(1), scalar(2)
    root = (x * y + z) * (x - 1)
    table = {x: y + 1, x * y: z - 2}
    wanted = ((z - 2) + z) * (y + 1 - 1)

    assert [wanted] == substitute([root], table)
    nodes_of(root)
    assert [wanted] == substitute([root], table)
    assert [root] == substitute([root], {scalar(3): x}) and [z] == substitute([root], {root: z})
    assert [] == substitute([], table)


def test_a_chain_of_100_000_nodes_is_built_walked_and_derived():
    """No walk over a graph recurses."""
    root = chain(UOp(ops.SCALAR, dtypes.index, (), (0, 0, 5)), DEEP)
    assert len(toposort(root)) > DEEP
    assert (0 + root.vmax - root.vmin) == 5
    assert root.shape == () and root.ranges == frozenset()
    (moved,) = substitute([root], {toposort(root)[0]: index(1)})
    assert moved.vmin == moved.vmax


# --- lifetime ----------------------------------------------------------------------------------


def test_the_node_count_returns_to_its_baseline_after_a_deep_chain():
    """A54."""
    before = settled_nodes()
    root = chain(scalar(77), DEEP)
    _ = root.bounds
    assert live_nodes() > before + DEEP
    del root
    assert before == settled_nodes()


class Interrupted(BaseException):
    """What Ctrl-C raises, at a chosen line."""


def test_an_interrupted_construction_leaves_nothing_behind_and_no_finalizer_raises(monkeypatch):
    """A54: an interruption at every line of the construction of a node, one after the other."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    before = settled_nodes()
    for line in range(1, 40):
        if not interrupt_at(line):
            break
    assert line > 5, "the construction ran through before it could be interrupted"
    assert unraisable == []
    assert before == settled_nodes()
    assert scalar(900 + line) is scalar(900 + line)


def interrupt_at(line):
    """Build a node, interrupted when its `line`-th line is traced; whether it was interrupted."""
    seen = 0

    def trace(frame, event, arg):
        nonlocal seen
        if frame.f_code is not UOp.__new__.__code__:
            return trace if event == "call" else None
        seen += event == "line"
        if seen == line:
            raise Interrupted
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        UOp(ops.SCALAR, dtypes.int32, (), (900 + line, None, None))
    except Interrupted:
        return True
    finally:
        sys.settrace(old)
    return False


def test_nodes_can_be_keys_of_weak_tables():
    table = weakref.WeakKeyDictionary()
    node = scalar(55) + 3
    table[node] = 1
    del node
    gc.collect()
    assert len(table) == 0
