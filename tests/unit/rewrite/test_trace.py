"""The record of a rewrite."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.trace import Declined, Fired, Trace

A, B = (UOp(ops.SCALAR, dtypes.int32, (), (slot, None, None)) for slot in range(2))


def test_events_are_listed_in_order_and_by_rule():
    trace = Trace()
    trace.record_fired("a", A, B)
    trace.record_declined("b", A, "because")
    trace.record_fired("b", B, A)

    assert trace.events == [Fired("a", A, B), Declined("b", A, "because"), Fired("b", B, A)]
    assert trace.fired("b") == [Fired("b", B, A)]
    assert trace.declined() == [Declined("b", A, "because")]


def test_a_trace_of_counts_keeps_no_nodes():
    trace = Trace(keep=False)
    trace.record_fired("a", A, B)
    trace.record_declined("b", A, "because")

    assert trace.events == []
    assert (trace.fire_counts["a"], trace.decline_counts["b"]) == (1, 1)
