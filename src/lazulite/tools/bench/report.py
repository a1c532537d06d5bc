"""What a benchmark found: rows and facts of the machine, as JSON and as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy

from lazulite.base.terminal import duration


@dataclass(frozen=True)
class Row:
    """The times of one participant in one workload."""

    workload: str
    participant: str
    median_s: float
    min_s: float
    p10_s: float
    p90_s: float
    runs: int
    max_error: float
    """The largest difference from a float64 reference, relative to the largest value of the result."""
    ratio: float | None
    """The participant's shortest time over ours from the same run: above 1 we are faster; None without ours."""
    median_ratio: float | None = None
    """The same of the medians."""
    level: bool | None = None
    """Whether the medians differ by less than the larger of the two spreads from the 10th to the 90th percentile."""
    first_s: float | None = None
    """The first call, with all that is compiled."""
    share: float | None = None
    """The time at the measured peak of the machine, of operations or of memory, over the median."""


@dataclass(frozen=True)
class Facts:
    """What is known of a participant beside its times."""

    max_error: float = 0.0
    first_s: float | None = None
    ideal_s: float | None = None


@dataclass
class Report:
    """Everything that is told of one run."""

    machine: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Programs compiled and graphs scheduled, by workload and participant; printed, but no part of the JSON."""
    missing: list[tuple[str, str, str]] = field(default_factory=list)
    """Workload, participant and reason where there is no time."""
    faults: list[str] = field(default_factory=list)
    """Where Lazulite itself failed or was wrong."""

    def to_json(self) -> dict[str, Any]:
        """`{"machine": {}, "rows": [{...}], "missing": [{...}]}`; every row has times."""
        keys = ("workload", "participant", "reason")
        missing = [dict(zip(keys, each, strict=True)) for each in self.missing]
        return {"machine": self.machine, "rows": [asdict(row) for row in self.rows], "missing": missing}

    def to_markdown(self) -> str:
        """The facts of the machine, the table of all rows, and one of ratios alone."""
        facts = [f"- {name}: {value}" for name, value in self.machine.items()]
        return "\n".join([*facts, "", *self._rows_table(), "", *self._ratio_table()])

    def line(self, workload: str) -> str:
        """The medians of one workload and their ratios, for whoever waits for the rest."""
        rows = [row for row in self.rows if row.workload == workload]
        return ", ".join([f"{row.participant} {duration(row.median_s)} ({_level(row)})" for row in rows])

    def _rows_table(self) -> list[str]:
        head = _HEAD + _COUNTS * bool(self.counts)
        rows = {(row.workload, row.participant): self._cells(row) for row in self.rows}
        rows |= {(name, who): (name, who, reason, *[""] * (len(head) - 3)) for name, who, reason in self.missing}
        order = list(dict.fromkeys([name for name, _ in rows]))
        return _table(head, [rows[key] for key in sorted(rows, key=lambda key: order.index(key[0]))])

    def _cells(self, row: Row) -> tuple[str, ...]:
        cells = (
            row.workload, row.participant, duration(row.min_s), duration(row.median_s),
            f"{duration(row.p10_s)} to {duration(row.p90_s)}", "" if row.first_s is None else duration(row.first_s),
            str(row.runs), f"{row.max_error:.0e}", _ratio(row.ratio), _level(row),
            "" if row.share is None else f"{100 * row.share:.0f} %",
        )  # fmt: skip
        counted = self.counts.get(count_key(row.workload, row.participant), {})
        return cells + tuple([str(counted.get(name, "")) for name in _COUNTS]) * bool(self.counts)

    def _ratio_table(self) -> list[str]:
        """Ratios of medians, a workload a line; those that are level have an equals sign."""
        found = {(row.workload, row.participant): _level(row) for row in self.rows}
        names, peers = (list(dict.fromkeys(each)) for each in (zip(*found, strict=True) if found else ((), ())))
        lines = [(name, *[found.get((name, peer), "-") for peer in peers]) for name in names]
        return _table(("ratio of medians (= level)", *peers), lines)


_HEAD = ("workload", "participant", "shortest", "median", "10 to 90 %", "first call", "runs", "error", "ratio",
         "of medians", "of peak")  # fmt: skip
_COUNTS = ("compiled", "scheduled", "kernels")


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _level(row: Row) -> str:
    return _ratio(row.median_ratio) + (" =" if row.level else "")


def count_key(workload: str, participant: str) -> str:
    return f"{workload} / {participant}"


def rows_of(workload: str, times: Mapping[str, Sequence[float]], facts: Mapping[str, Facts], ours: str) -> list[Row]:
    """The rows of one workload; `ratio` is that of the shortest times, which other work disturbs least.

    >>> rows = rows_of("add", {"us": [2.0, 1.0], "them": [3.0, 4.0]}, {"us": Facts(), "them": Facts()}, "us")
    >>> [(row.ratio, row.level) for row in rows]
    [(1.0, True), (3.0, False)]
    """
    best = times.get(ours)
    return [_row(workload, name, taken, facts[name], best) for name, taken in times.items()]


def _row(workload: str, name: str, taken: Sequence[float], facts: Facts, ours: Sequence[float] | None) -> Row:
    low, median, high = _spread(taken)
    share = None if facts.ideal_s is None else facts.ideal_s / median
    ratio, of_medians, level = None, None, None
    if ours is not None:
        our_low, our_median, our_high = _spread(ours)
        ratio, of_medians = min(taken) / min(ours), median / our_median
        level = abs(median - our_median) <= max(high - low, our_high - our_low)
    return Row(workload, name, median, min(taken), low, high, len(taken), facts.max_error, ratio, of_medians, level,
               facts.first_s, share)  # fmt: skip


def _spread(times: Sequence[float]) -> tuple[float, float, float]:
    """The 10th percentile, the median and the 90th percentile."""
    low, median, high = numpy.quantile(times, (0.1, 0.5, 0.9))
    return float(low), float(median), float(high)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows)]
