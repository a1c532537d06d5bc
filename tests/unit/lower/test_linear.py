"""The list of instructions is short and in order."""

import pytest

from lazulite.ir import ops
from lazulite.kernel.apply import apply
from lazulite.kernel.heuristic import choose
from lazulite.lower.linear import block_of
from support.kernels import TARGETS, lowered, matmul, softmax


@pytest.mark.parametrize("machine", TARGETS)
def test_a_blocked_product_is_tens_of_nodes_not_thousands(machine):
    """Vectors and register tiles stay whole values: at most 40 nodes for each statement with another row count."""
    kernel, target = matmul(512, 512, 512), TARGETS[machine]
    steps = choose(kernel, target)
    statements = len(apply(kernel, steps).src)

    assert len(lowered(kernel, target, steps).src) <= 60 * statements


def test_results_of_a_row_are_computed_outside_of_the_loop_over_the_row():
    linear = lowered(softmax(5, 7), TARGETS["sse2"])
    finals = [node for node in linear.src if node.op is ops.FINAL]

    assert {(0, 0)} == {block_of(node).arg[0] for node in finals}


def test_sources_precede_their_users():
    linear = lowered(softmax(5, 7), TARGETS["sse2"])
    place = {node: number for number, node in enumerate(linear.src)}
    states = (ops.CARRY, ops.RANGE)

    assert all(place.get(s, -1) < place[n] for n in linear.src if n.op not in states for s in n.src)
