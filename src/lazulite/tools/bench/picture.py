"""The ratios of a report as a picture: bars on a logarithmic axis, a group for each workload."""

from __future__ import annotations

from lazulite.base.errors import ArgumentError
from lazulite.tools.bench.report import Report

_BAR = 0.16
"""Inches."""


def require_matplotlib() -> None:
    """Fail before the measurement instead of after it."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise ArgumentError("bench", "--plot needs the package matplotlib", hint="pip install matplotlib") from None
    matplotlib.use("agg")


def draw_ratios(report: Report, file: str, ours: str) -> None:
    """Write a picture of the kind that the file's name says."""
    require_matplotlib()
    from matplotlib import pyplot

    rows = [row for row in report.rows if row.participant != ours and row.median_ratio is not None]
    names, peers = (list(dict.fromkeys(each)) for each in ([r.workload for r in rows], [r.participant for r in rows]))
    thick = 0.8 / max(len(peers), 1)
    size = (9, 1.5 + _BAR * len(names) * (len(peers) + 1))
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    for number, peer in enumerate(peers):
        bars = [(names.index(r.workload), r.median_ratio or 1.0) for r in rows if r.participant == peer]
        places, widths = [place + number * thick for place, _ in bars], [ratio - 1 for _, ratio in bars]
        axes.barh(places, widths, thick, left=1.0, label=peer)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks([place + (0.8 - thick) / 2 for place in range(len(names))], names)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlabel(f"median time over that of {ours}: to the right of 1 {ours} is faster")
    if peers:
        axes.legend()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
