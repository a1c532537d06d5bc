"""The record of a rewrite: which rules fired, which declined and why, how often, how long.

Takes: what the engine reports.  Gives: lists and counts to ask.  Everything that explains
rewriting (`SHOW`, `explain`, the visualiser, tests) reads this one record.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lazulite.ir.uop import UOp


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule replaced `before` by `after`."""

    rule: str
    before: UOp
    after: UOp


@dataclass(frozen=True, slots=True)
class Declined:
    """A rule matched `before` but did not apply."""

    rule: str
    before: UOp
    reason: str


class Trace:
    """What happened in one or more rewrites.  With `keep=False` only the counts are kept."""

    def __init__(self, keep: bool = True) -> None:
        self.keep = keep
        self.visits = 0
        self.events: list[Fired | Declined] = []
        self.fire_counts: Counter[str] = Counter()
        self.decline_counts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def record_fired(self, rule: str, before: UOp, after: UOp) -> None:
        self.fire_counts[rule] += 1
        if self.keep:
            self.events.append(Fired(rule, before, after))

    def record_declined(self, rule: str, before: UOp, reason: str) -> None:
        self.decline_counts[rule] += 1
        if self.keep:
            self.events.append(Declined(rule, before, reason))

    def fired(self, rule: str | None = None) -> list[Fired]:
        """What fired, in order; only this rule's if one is named."""
        return [e for e in self.events if isinstance(e, Fired) and rule in (None, e.rule)]

    def declined(self, rule: str | None = None) -> list[Declined]:
        """What declined, in order; only this rule's if one is named."""
        return [e for e in self.events if isinstance(e, Declined) and rule in (None, e.rule)]


RECORDING: ContextVar[Trace | None] = ContextVar("lazulite_trace", default=None)
"""The trace of rewrites that are given none."""


@contextmanager
def recording(trace: Trace) -> Iterator[None]:
    """Record every rewrite of this thread or task inside, at whatever depth it is called.

    >>> from lazulite.ir.parse import parse
    >>> from lazulite.simplify.normal import normalise
    >>> trace = Trace()
    >>> with recording(trace):
    ...     _ = normalise(parse("tensor" + chr(10) + "param p0 int32[4]" + chr(10) + "return p0 * 1"))
    >>> sum(trace.fire_counts.values())
    1
    """
    token = RECORDING.set(trace)
    try:
        yield
    finally:
        RECORDING.reset(token)
