"""What a benchmark found: rows and facts of the machine, as JSON and as a Markdown table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lazulite.base.terminal import duration


@dataclass(frozen=True)
class Row:
    """The times of one participant in one workload."""

    workload: str
    participant: str
    median_s: float
    min_s: float
    runs: int
    max_error: float
    """The largest difference from a float64 reference, relative to the largest value of the result."""
    ratio: float
    """The participant's shortest time over ours from the same run: above 1 we are faster."""


@dataclass
class Report:
    """Everything that is told of one run."""

    machine: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Programs compiled and graphs scheduled, by workload and participant; printed, but no part of the JSON."""

    def to_json(self) -> dict[str, Any]:
        """`{"machine": {}, "rows": [{...}]}`."""
        return {"machine": self.machine, "rows": [asdict(row) for row in self.rows]}

    def to_markdown(self) -> str:
        """The facts of the machine, then the table."""
        facts = [f"- {name}: {value}" for name, value in self.machine.items()]
        return "\n".join([*facts, "", *_table(_HEAD + _COUNTS * bool(self.counts), map(self._cells, self.rows))])

    def _cells(self, row: Row) -> tuple[str, ...]:
        cells = (row.workload, row.participant, duration(row.min_s), duration(row.median_s), str(row.runs),
                 f"{row.max_error:.0e}", f"{row.ratio:.2f}" if row.ratio >= 0.1 else f"{row.ratio:.2g}")  # fmt: skip
        counted = self.counts.get(count_key(row.workload, row.participant), {})
        return cells + tuple([str(counted.get(name, "")) for name in _COUNTS]) * bool(self.counts)


_HEAD = ("workload", "participant", "shortest", "median", "runs", "error", "ratio")
_COUNTS = ("compiled", "scheduled")


def count_key(workload: str, participant: str) -> str:
    return f"{workload} / {participant}"


def rows_of(workload: str, times: Mapping[str, Sequence[float]], errors: Mapping[str, float], ours: str) -> list[Row]:
    """The rows of one workload; the ratios are those of the shortest times, which other work disturbs least.

    >>> [row.ratio for row in rows_of("add", {"us": [2.0, 1.0], "them": [3.0]}, {"us": 0.0, "them": 0.0}, "us")]
    [1.0, 3.0]
    """
    best = min(times[ours])
    return [
        Row(workload, name, statistics.median(taken), min(taken), len(taken), errors[name], min(taken) / best)
        for name, taken in times.items()
    ]


def _table(head: Sequence[str], rows: Any) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
