"""The form of a value says over which registers it varies, also where its own ranges do not tell."""

from collections import defaultdict

import pytest

from lazulite.emit.forms import Form, form_of, forms_of
from lazulite.ir import ops
from lazulite.kernel.steps import Split, Tile, Vectorize
from support.index_grid import loop
from support.kernels import TARGETS, lowered, matmul

ROW, LANE, TURN = loop(3, 1, "row"), loop(8, 2, "lane"), loop(4, 0, "loop")


def forms(kernel, *steps):
    """The listed nodes of a kernel, each with its form."""
    nodes = lowered(kernel, TARGETS["widest"], steps).src
    listed = defaultdict(list)
    for node in nodes:
        listed[node.op].append(node)
    found = forms_of(nodes, listed)
    return [(node, found[node]) for node in nodes]


def test_ranges_of_loops_are_no_registers():
    assert Form((ROW,), LANE, (), 8) == form_of([LANE, TURN, ROW])
    assert form_of([TURN]).is_scalar


@pytest.mark.parametrize("inner", [ROW, LANE])
def test_a_value_over_rows_or_lanes_is_no_scalar(inner):
    assert not form_of([TURN, inner]).is_scalar


def test_a_sum_that_begins_with_a_number_varies_as_what_is_added():
    tiled = forms(matmul(8, 32, 5), Split((0,), 4), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    states = {node.op: form for node, form in tiled if node.op in (ops.CARRY, ops.FINAL, ops.STORE)}

    assert {ops.CARRY, ops.FINAL, ops.STORE} == states.keys()
    assert all(form.lanes == 16 and len(form.rows) == 1 for form in states.values())


def test_a_kernel_of_loops_has_scalars_only():
    assert all(form.is_scalar for _, form in forms(matmul(3, 4, 5)))
