"""Values that are known while code is written."""

from operator import le, lt, mul

from hypothesis import given
from hypothesis import strategies as st

from lazulite.emit.static import Static, static_values, stride
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from support.index_grid import loop

ROW, LANE = loop(3, 0, "row"), loop(8, 1, "lane")
nodes = st.sampled_from(
    [ROW * 5 + LANE, LANE * -2 + 7, (LANE + ROW) // 3, LANE < 5, LANE * 2 + ROW <= 6, (LANE // 2) < ROW, ROW * 4]
)


@given(nodes, st.integers(0, 2))
def test_each_lane_has_the_value_of_its_turn(node, row):
    found = Static().lanes(node, {ROW: row}, LANE)
    expected = [static_values(node, {ROW: row, LANE: lane}, None)[0] for lane in range(8)]

    assert found in (expected, expected[:1])


def test_a_value_without_lanes_is_one_value():
    assert [8] == Static().lanes(ROW * 4, {ROW: 2}, LANE)


TURN = loop(4, 2, "loop")
gates = st.recursive(
    st.builds(
        lambda factors, limit, compare: compare(sum(map(mul, (ROW, LANE, TURN), factors), limit), index(0)),
        st.lists(st.integers(-2, 2), min_size=3, max_size=3),
        st.integers(-9, 9).map(index),
        st.sampled_from([lt, le]),
    ),
    lambda inner: st.builds(lambda a, b: a & b, inner, inner),
    max_leaves=3,
)


@given(gates)
def test_a_gate_that_is_known_at_a_row_is_so_for_all_loops_and_lanes(gate):
    for row, known in enumerate(Static().truths(gate, (ROW,))):
        places = [{ROW: row, LANE: lane, TURN: turn} for lane in range(8) for turn in range(4)]
        found = {bool(static_values(gate, at, None)[0]) for at in places}

        assert known is None or {known} == found
        if gate.op is not ops.AND:
            assert (known is None) == (len(found) > 1)


def test_rows_follow_one_another_with_the_last_one_fastest():
    inner = loop(2, 4, "row")

    assert [False, True] * 3 == Static().truths(index(0) < inner, (ROW, inner))
    assert ([0, 1, 10, 11, 20, 21], 2) == Static().lines(ROW * 10 + inner + LANE * 2, (ROW, inner), LANE)


def test_a_gate_on_data_is_not_known():
    flag = UOp(ops.SCALAR, dtypes.bool, (), (0, None, None))

    assert [None] == Static().truths(flag, ())
    assert [None, False, False] == Static().truths(flag & (ROW < 1), (ROW,))


def test_a_constant_step_is_found():
    assert -2 == stride([7, 5, 3])
    assert None is stride([0, 1, 3])
