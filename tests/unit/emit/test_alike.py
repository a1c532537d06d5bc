"""Nests are found to be the same where they differ in names alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lazulite.emit.alike import alike
from lazulite.ir import ops
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp

HEAD = """linear
param p0 float32[64]
param p1 float32[64]
param p2 float32[64]
param p3 float32[64]
param p4 int32[64]
scalar a5 index 0..7
scalar a6 index 0..7
scalar a7 index 0..99999999999
row r9 in 0..2
row r10 in 0..2"""


def nests(listing: UOp) -> list[Sequence[UOp]]:
    """The outermost loops of a list, each as its nodes."""
    found, begin, depth = [], 0, 0
    for place, node in enumerate(listing.src):
        if node.op is ops.RANGE:
            begin, depth = (place if depth == 0 else begin), depth + 1
        elif node.op is ops.FOR:
            depth -= 1
            if depth == 0:
                found.append(listing.src[begin : place + 1])
    return found


def compared(first: str, second: str, before: str = "") -> dict[UOp, UOp] | None:
    """What `alike` says of two loops, written with a name in front of each range of their own."""
    listing = parse("\n".join([HEAD, before, first, second]))
    left, right = nests(listing)
    return alike(left, right, frozenset(listing.src), lambda node: not node.ranges)


def product(r: str, total: str, left: str, right: str, value: str = "0.0", place: str = "a5") -> str:
    """A loop that adds products of what two memories hold."""
    t = f"t{r[1:]}"
    return f"""loop {r} in 0..8
    state c{r[1:]} = {value}:float32
    {t}0 = {left}[{r}]
    {t}1 = {right}[{r}]
    {t}2 = fma({t}0, {t}1, c{r[1:]})
    {total}[{place}] = {t}2
    next c{r[1:]} = {t}2"""


def test_loops_over_other_memory_are_alike():
    table = compared(product("r0", "p0", "p1", "p2"), product("r1", "p3", "p2", "p1"))

    assert table is not None
    assert {0: 3, 1: 2, 2: 1} == {node.arg[0]: there.arg[0] for node, there in table.items() if node.op is ops.PARAM}


def test_what_comes_from_outside_may_be_another_number():
    before = "t90 = a5 * 8\nt91 = a6 * 8"
    table = compared(product("r0", "p0", "p1", "p2", place="t90"), product("r1", "p0", "p1", "p2", place="t91"), before)

    assert table is not None
    assert [(5, 6)] == [
        (node.src[0].arg[0], there.src[0].arg[0]) for node, there in table.items() if node.op is ops.MUL
    ]


@pytest.mark.parametrize(
    "other",
    [
        product("r1", "p3", "p2", "p2"),  # two memories of the one are one of the other
        product("r1", "p0", "p1", "p1"),
        product("r1", "p3", "p1", "p2", value="1.0"),
        product("r1", "p3", "p1", "p2").replace("0..8", "0..7"),
        product("r1", "p3", "p1", "p2").replace("fma(t10, t11, c1)", "fma(t10, c1, t11)"),
        product("r1", "p3", "p1", "p2").replace("p1[r1]", "p1[r1 + 1]"),
    ],
)
def test_loops_that_differ_otherwise_are_not(other: str):
    assert compared(product("r0", "p0", "p1", "p2"), other) is None


def test_how_large_a_position_may_get_counts():
    """It is computed with as many bits as that takes."""
    before = "t90 = a5 * 8\nt91 = a7 * 8"

    assert (
        compared(product("r0", "p0", "p1", "p2", place="t90"), product("r1", "p0", "p1", "p2", place="t91"), before)
        is None
    )


def rows(r: str, outer: str, inner: str, memory: str = "p0") -> str:
    """A loop over a tile."""
    place = f"{r}*4 + {outer}*2 + {inner}"
    return f"""loop {r} in 0..4
    t{r[1:]}0 = {memory}[{place}]
    {memory}[{place}] = t{r[1:]}0"""


def test_rows_stay_in_order():
    assert compared(rows("r0", "r9", "r10"), rows("r1", "r9", "r10")) is not None
    assert compared(rows("r0", "r9", "r10"), rows("r1", "r10", "r9")) is None


def test_types_are_the_same():
    assert compared(rows("r0", "r9", "r10"), rows("r1", "r9", "r10", "p4")) is None
