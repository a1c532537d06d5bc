"""The text of every program of the test run parses back; here that this is really looked at."""

import pytest

from lazulite import Context, Tensor
from lazulite.ir.parse import parse
from support import round_trips

TWICE = """\
kernel
param p0 int32[4]
param p1 int32[4]
loop r0 in 0..4
p0[r0] = p1[r0] * 2"""


def test_all_four_languages_are_checked_while_tests_run():
    before = round_trips.checked.copy()
    with Context(CACHE=0):
        x = Tensor([[1.0, 2.0, 0.5], [3.0, 4.0, 0.25]]) * 3.14159
        assert (2, 2) == (x @ x.T).softmax(-1).realize().shape
    assert {"TENSOR", "KERNEL", "LOOP", "LINEAR"} <= set(round_trips.checked - before)


def test_a_text_that_does_not_come_back_fails(monkeypatch):
    monkeypatch.setattr(round_trips, "parse", lambda text: parse(text.replace("* 2", "* 3")))
    monkeypatch.setattr(round_trips, "_known", set())
    with pytest.raises(AssertionError, match="does not parse back"):
        round_trips.check(parse(TWICE), "KERNEL", "here")
