"""Every rule of the package: its example is executed, and both sides mean the same on values."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from lazulite.rewrite.rule import Rule, RuleSet
from lazulite.simplify.normal import SIMPLIFY, normalise
from support.brute_force import counterexample, example_of, instances

RULES = SIMPLIFY.rules
_MOST_INSTANCES = 60


def alone(rule: Rule) -> RuleSet:
    """A set with this rule only."""
    rules = RuleSet(rule.name.partition(".")[0])
    rules.rule(*rule.patterns)(rule.body)
    return rules


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_example_in_docstring_holds(rule):
    before, after = example_of(rule)

    assert after is alone(rule).step(before)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_both_sides_of_the_example_mean_the_same(rule):
    before, after = example_of(rule)

    assert counterexample(before, after) is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_both_sides_mean_the_same(rule):
    rules, tried = alone(rule), 0
    for pattern in rule.patterns:
        candidates = list(instances(pattern))
        Random(rule.name).shuffle(candidates)
        changed = ((before, rules.step(before)) for before in candidates)
        for before, after in islice(((b, a) for b, a in changed if a is not None), _MOST_INSTANCES):
            assert after.dtype is before.dtype
            assert counterexample(before, after) is None
            tried += 1
    assert tried > 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_normal_form_is_final(rule):
    (once,) = normalise(example_of(rule)[0])

    assert normalise(once) == [once]
