"""Targets are values; switching a feature off takes with it what builds on it."""

import pytest

from lazulite.base.errors import SettingError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import host, target, without


def test_removing_a_feature_removes_what_needs_it():
    assert ("sse3",) == without(("sse3", "ssse3", "avx", "avx2", "avx512f", "fma"), ("ssse3", "avx"))


def test_the_vector_width_follows_the_features():
    wide = ("avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl")

    assert (64, 32) == (target("x", wide).vector_bytes, target("x", wide).registers)
    assert (32, 16) == (target("x", ("avx2",)).vector_bytes, target("x", ("avx2",)).registers)
    assert 16 == target("x", ()).vector_bytes


def test_the_key_changes_with_every_fact_that_code_depends_on():
    keys = {target("x", ("avx2",)).key, target("x", ()).key, target("y", ()).key, target("x", (), l2=1).key}

    assert 4 == len(keys)


def test_vectors_sum_as_many_products_at_once_as_their_instructions_do():
    wide = ("avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl")

    for features, groups in (
        (("avx2",), [2]),
        (("avx2", "avxvnni"), [4, 2]),
        (wide, [2]),
        ((*wide, "avx512vnni"), [4, 2]),
    ):
        assert groups == [unit.group for unit in target("x", features).dot_products]
    assert [2] == [unit.group for unit in host("-avx512_vnni,-avx_vnni").dot_products]


def test_what_has_no_instruction_is_not_native():
    assert target("x", ("fma",)).has(ops.FMA, dtypes.float32)
    assert not target("x", ()).has(ops.FMA, dtypes.float32)
    assert not target("x", ("fma",)).has(ops.ADD, dtypes.float16)
    assert not target("x", ("fma",)).has(ops.EXP, dtypes.float32)


def test_this_machine_can_stand_for_a_smaller_one():
    assert host("-avx,-avx512f").vector_bytes == 16
    assert not any(feature.startswith("amx") for feature in host("-amx").features)
    assert host().threads >= 1
    assert host(threads=3).threads == 3


def test_a_feature_that_does_not_exist_is_refused_with_the_nearest_name():
    with pytest.raises(SettingError, match="no processor feature avx513f") as caught:
        host("-avx513f")
    assert "Try: avx512f" in str(caught.value)
