"""An index is cut into what loops, what instructions and what vectors compute."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp, index
from lazulite.lower.addresses import address, is_static, split_addresses
from support.index_grid import loop
from support.kernels import listed, load, param, sink, store

I, J, ROW, LANE = loop(5, 0), loop(7, 1), loop(3, 2, "row"), loop(4, 3, "lane")  # noqa: E741
terms = st.sampled_from([I, J, ROW, LANE, (I + LANE) // 3, (ROW + LANE) % 2, index(11)])


def _split(place: UOp) -> UOp:
    (node,) = listed(split_addresses(sink(store(param(0, 9999), index(0), load(param(1, 9999), place)))), ops.LOAD)
    return node.src[1]


@given(st.lists(st.tuples(terms, st.integers(1, 9)), min_size=1, max_size=6))
def test_the_parts_add_up_to_the_index(parts):
    total = index(0)
    for term, factor in parts:
        total = total + term * factor
    place = address(_split(total))
    whole = [part for part in (place.dynamic, place.mixed, place.static) if part is not None]
    summed = index(0)
    for part in whole:
        summed = summed + part

    assert linear(total) == linear(summed)


def test_what_is_known_when_code_is_written_is_static():
    place = address(_split(I * 100 + ROW * 10 + LANE + 3))

    assert place.dynamic is I * 100
    assert place.mixed is None
    assert linear(place.static) == linear(ROW * 10 + LANE + 3)


def test_the_term_of_the_outermost_loop_is_added_first():
    place = address(_split(J * 2 + I * 100 + J))

    assert place.dynamic is I * 100 + J * 3


def test_a_quotient_of_a_lane_and_a_loop_is_neither():
    assert address(_split((I + LANE) // 3 + J)).mixed is (I + LANE) // 3


def test_an_index_over_lanes_is_known_and_one_over_loops_is_not():
    assert is_static(LANE * 3 + ROW)
    assert not is_static(LANE + I)
