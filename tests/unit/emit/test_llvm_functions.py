"""Loops with register tiles that run one after another are functions, equal ones the same."""

from __future__ import annotations

import re
from random import Random

import pytest

from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.pipeline import assembly_of
from support.kernels import TARGETS, assert_close, compiled, interpreted, matmul, random_memory


def two_products(rows: int = 8, keys: int = 64, size: int = 48, *, other: int = 48) -> UOp:
    """Two products of the powers of a block of rows, with as many columns as they say."""
    return parse(f"""
        kernel
        param p0 float32[{rows * 16 * size}]
        param p1 float32[{rows * 16 * other}]
        param p2 float32[{rows * 16 * keys}]
        param p3 float32[{keys * size}]
        param p4 float32[{keys * other}]
        scratch s0 float32[{keys}] align 64
        loop h in 0..{rows}
        loop i in 0..16
        loop d in 0..{size}
        loop v in 0..{keys}
        loop e in 0..{other}
        loop w in 0..{keys}
        loop j in 0..{keys}
            s0[j] = exp(p2[(h*16 + i)*{keys} + j])
        p0[(h*16 + i)*{size} + d] = sum(after(s0, j)[v] * p3[v*{size} + d] for v)
        p1[(h*16 + i)*{other} + e] = sum(p4[w*{other} + e] * after(s0, j)[w] for w)
        """)


def functions(kernel: UOp, target: str = "widest") -> tuple[int, int]:
    """How many are defined beside the kernel's, and how many calls there are."""
    text = assembly_of(kernel, TARGETS[target], choose(kernel, TARGETS[target])).text
    return len(re.findall("^define internal", text, re.MULTILINE)), text.count("call void @tile")


def test_products_that_differ_in_their_operands_alone_are_one_function():
    assert (1, 2) == functions(two_products())


def test_products_of_other_sizes_are_functions_of_their_own():
    assert (2, 2) == functions(two_products(other=32))


def test_a_product_alone_is_part_of_the_kernel():
    assert (0, 0) == functions(matmul(64, 64, 64))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("other", [48, 32, 16])
def test_functions_compute_the_same(name: str, other: int):
    kernel = two_products(other=other)
    memory = random_memory(kernel, Random(other))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[name], choose(kernel, TARGETS[name]), memory))
