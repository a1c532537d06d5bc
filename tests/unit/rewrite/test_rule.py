"""Rules are named, indexed by what they can match, and switched off by name."""

from __future__ import annotations

import pytest

from lazulite.base.errors import SettingError
from lazulite.base.settings import Context
from lazulite.ir import ops
from lazulite.ir.dtype import INTS, dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import const, var
from lazulite.rewrite.rule import No, RuleSet, switched_off
from lazulite.rewrite.trace import Trace

A, B = (UOp(ops.SCALAR, dtypes.int32, (), (slot, None, None)) for slot in range(2))
F = UOp(ops.SCALAR, dtypes.float32, (), (2, None, None))
x, y, c, c1, c2 = var("x", INTS), var("y", INTS), const("c"), const("c1"), const("c2")


def sample() -> RuleSet:
    rules = RuleSet("sample")

    @rules.rule((x + c1) + c2)
    def gather_constants(x: UOp, c1: UOp, c2: UOp) -> UOp:
        """(i + 1) + 2  ->  i + 3"""
        return x + (c1.value + c2.value)

    @rules.rule(x * c)
    def multiply_by_power_of_two(x: UOp, c: UOp) -> UOp | No:
        """i * 8  ->  i << 3"""
        if c.value <= 0 or c.value & (c.value - 1):
            return No("the factor is not a power of two")
        return x << c.value.bit_length() - 1

    return rules


def test_a_step_gives_the_right_side():
    assert sample().step((A + 1) + 2) is A + 3
    assert sample().step(UOp.const(dtypes.int32, 8) * A) is A << 3


def test_a_step_gives_none_where_nothing_applies():
    assert sample().step(A + B) is None
    assert sample().step(F * 8.0) is None


def test_a_factor_of_six_is_declined_with_a_reason():
    trace = Trace()

    assert sample().step(A * 6, trace) is None
    assert [event.reason for event in trace.declined("sample.multiply_by_power_of_two")] == [
        "the factor is not a power of two"
    ]


def test_a_body_that_gives_its_node_back_does_not_count_as_fired():
    rules = RuleSet("idle")

    @rules.rule(x + y)
    def nothing(root: UOp) -> UOp:
        """i + j  ->  i + j"""
        return root

    trace = Trace()
    assert rules.step(A + B, trace) is None
    assert trace.fired() == []


def test_a_rule_knows_its_name_and_its_example():
    first = sample().rules[0]

    assert (first.name, first.example) == ("sample.gather_constants", "(i + 1) + 2  ->  i + 3")
    assert repr(first) == "<rule sample.gather_constants>"
    assert repr(sample()) == "<2 rules of sample>"


def test_the_setting_switches_off_one_rule_or_a_whole_set():
    both = RuleSet("both", sample())
    with Context(RULES="-sample.gather_constants"):
        assert switched_off() == {"sample.gather_constants"}
        assert both.step((A + 1) + 2) is None
        assert both.step(A * 8) is A << 3
    with Context(RULES="-sample"):
        assert both.step(A * 8) is None
    assert both.step((A + 1) + 2) is A + 3


@pytest.mark.parametrize(
    ("off", "hint"), [("-samples", "-sample"), ("-sample.gather_constant", "-sample.gather_constants")]
)
def test_the_setting_names_rules_and_sets_that_exist(off, hint):
    with Context(RULES=off), pytest.raises(SettingError, match=off.removeprefix("-")) as caught:
        sample().step(A * 8)
    assert f"Try: {hint}" in str(caught.value)


def test_a_set_counts_the_nodes_shown_to_it():
    rules = sample()
    rules.step(A + B)
    rules.step(A * 8)

    assert rules.visits == 2


@pytest.mark.parametrize(("pattern", "doc", "message"), [
    (x + c1, "i  ->  i", "binds no y"),
    (y, "i  ->  i", "must name its op"),
    (x + y, "No example.", "must begin with an example"),
], ids=["unbound name", "no root", "no example"])  # fmt: skip
def test_a_rule_that_cannot_work_is_refused_when_it_is_entered(pattern, doc, message):
    def body(y: UOp) -> UOp:
        return y

    body.__doc__ = doc
    with pytest.raises(TypeError, match=message):
        RuleSet("broken").rule(pattern)(body)
