"""What is the same program, and what is not."""

from __future__ import annotations

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.canonical import canonical_graph, fingerprint, folded, rests_on_constants
from support.schedules import buffer, expanded, key, nothing


def test_other_storages_are_the_same_program() -> None:
    a, b, c = buffer(1, 4), buffer(2, 4), buffer(3, 4)

    assert key([a + b]) == key([c + a])
    assert key([a + b]) != key([a + a])


def test_another_shape_dtype_or_target_is_another_program() -> None:
    a, target = buffer(1, 4), buffer(9, 4)

    assert len({key([a * 2.5]), key([buffer(1, 5) * 2.5]), key([a * 2.5], [target]), key([a * 2.5], [a])}) == 4
    assert key([buffer(1, 4, dtype=dtypes.int32) + 5]) != key([a + 5])


@pytest.mark.parametrize(("left", "right"), [(0.5, 0.75), (2.0, 1024.0)])
def test_a_number_that_only_lends_its_value_is_an_argument(left: float, right: float) -> None:
    a = buffer(1, 4)

    assert key([a * left]) == key([a * right])
    assert [left] == fingerprint([a * left], [None], nothing, nothing).scalars


@pytest.mark.parametrize("special", [0.0, 1.0, -1.0, float("inf"), float("nan")])
def test_numbers_that_laws_rest_on_belong_to_the_program(special: float) -> None:
    a = buffer(1, 4)

    assert key([a * special]) != key([a * 0.5])


def test_two_numbers_that_happen_to_be_equal_stay_two_arguments() -> None:
    a, b = buffer(1, 4), buffer(2, 4)

    assert key([a * 0.1 + b * 0.1]) == key([a * 0.1 + b * 0.9])


def test_an_integer_beside_memory_is_an_argument_and_in_a_mask_it_is_not() -> None:
    a, iota = buffer(1, 4, dtype=dtypes.int32), UOp(ops.IOTA, dtypes.int32, (), 4)

    assert key([a + 5]) == key([a + 6])
    assert key([iota + 5]) != key([iota + 6])
    assert key([a // 5]) != key([a // 6])


def test_what_is_stored_already_is_memory() -> None:
    a, b = buffer(1, 4), buffer(2, 4)
    expression = a * 2.5

    found = fingerprint([expression + a], [None], nothing, {expression: b}.get)
    assert [b, a] == found.buffers


def test_key_and_graph_number_memory_and_scalars_alike() -> None:
    a, b, filled = buffer(1, 4), buffer(2, 4), buffer(3, 4)
    held = a * 4.5
    graph = (b * 2.5 + held) * (filled - 3.5) + a
    fill, known = {filled: 7.5}.get, {held: b}.get

    found = fingerprint([graph], [None], fill, known)
    made = canonical_graph([graph], [None], fill, known)
    slots = {node.arg[0] for node in toposort(*made.outputs) if node.op is ops.PARAM}
    scalars = {node.arg[0] for node in toposort(*made.outputs) if node.op is ops.SCALAR}

    assert ([b, a], [2.5, 7.5, 3.5]) == (found.buffers, found.scalars)
    assert ({0, 1}, {0, 1, 2}, [dtypes.float32] * 3) == (slots, scalars, made.scalars)


def test_a_long_chain_has_a_key() -> None:
    a = buffer(1, 4)
    value = a
    for _ in range(20_000):
        value = value + a

    assert [a] == fingerprint([value], [None], nothing, nothing).buffers


def test_constants_fold_without_a_kernel() -> None:
    """A21."""
    one = buffer(1, 4)
    value = one * 3.0 + expanded(UOp.const(dtypes.float32, 2.0), 4)

    assert rests_on_constants(value, lambda node: 1.0)
    assert folded(value, lambda node: 1.0) == 5.0
    assert not rests_on_constants(value, nothing)
