"""Values that are known while code is written."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.emit.static import Static, static_values, stride
from support.index_grid import loop

ROW, LANE = loop(3, 0, "row"), loop(8, 1, "lane")
nodes = st.sampled_from([ROW * 5 + LANE, LANE * -2 + 7, (LANE + ROW) // 3, LANE < 5, ROW * 4])


@given(nodes, st.integers(0, 2))
def test_each_lane_has_the_value_of_its_turn(node, row):
    found = Static().lanes(node, {ROW: row}, LANE)
    expected = [static_values(node, {ROW: row, LANE: lane}, None)[0] for lane in range(8)]

    assert found in (expected, expected[:1])


def test_a_value_without_lanes_is_one_value():
    assert [8] == Static().lanes(ROW * 4, {ROW: 2}, LANE)


def test_a_constant_step_is_found():
    assert -2 == stride([7, 5, 3])
    assert None is stride([0, 1, 3])
