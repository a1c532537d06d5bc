"""Which names count, which do not and why, and the page that says so.

A name of a `Measure` counts when it has rows (`tests/surface/rows.py`), automatic or of its own; a test runs them.
All others are listed in `gaps/<measure>.txt`: a line `notyet: reason` or `never: reason`, and below it, indented,
the names.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from surface.opinfo import automatic
from surface.rows import Row
from surface.spaces import HERE, MEASURES, Measure


@cache
def own_rows() -> dict[tuple[str, str], list[Row]]:
    """The rows written by hand, by space and name."""
    found: dict[tuple[str, str], list[Row]] = {}
    for path in sorted(HERE.glob("rows_*.py")):
        for tested in importlib.import_module(f"surface.{path.stem}").ROWS:
            found.setdefault((tested.space, tested.name), []).append(tested)
    return found


@cache
def rows_of(space: str, name: str) -> tuple[Row, ...]:
    """All rows of a name; an own row that stands alone keeps the automatic one away."""
    own = own_rows().get((space, name), [])
    found = None if any(tested.alone for tested in own) else automatic(space, name)
    return (*own, found) if found else tuple(own)


@cache
def gaps(measure: Measure) -> dict[str, str]:
    """The reason for each name that does not count."""
    found: dict[str, str] = {}
    reason = ""
    for line in _gap_file(measure).read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[line.strip()] = reason
        elif line:
            reason = line
    return found


def _gap_file(measure: Measure) -> Path:
    return HERE / "gaps" / f"{measure.key}.txt"


@cache
def counted(measure: Measure) -> dict[str, str]:
    """The names that count, each with the space where it does."""
    left_out = gaps(measure)
    found = {}
    for name in measure.names():
        spaces = [space for space in measure.spaces if name not in left_out and rows_of(space, _local(space, name))]
        if spaces:
            found[name] = spaces[0]
    return found


def _local(space: str, name: str) -> str:
    """The name within a space: a tensor has no namespaces."""
    return name.rpartition(".")[2] if space == "tensor" else name


def names_that_count() -> list[tuple[str, str]]:
    """Every space and name that counts somewhere, once."""
    pairs = {(space, _local(space, name)) for m in MEASURES for name, space in counted(m).items()}
    return sorted(pairs)


# --- the page ------------------------------------------------------------------------------------


def page() -> str:
    """docs/coverage.md."""
    parts = [
        "# Coverage of names",
        "Which names of tinygrad, PyTorch and NumPy are here. A name counts when at least five samples of it agree"
        " with the reference in shape, kind of type and value (and in the gradient, where there is one) and none"
        " disagrees: `tests/surface/test_rows.py` runs them, against torch's own operator database where that knows"
        " the name. This page is generated: `pytest tests/surface/test_table.py --update-text`.",
        "\n".join(
            ["| list | counted | of | share | aim |", "| --- | ---: | ---: | ---: | ---: |", *map(_line, MEASURES)]
        ),
        *map(_section, MEASURES),
    ]
    return "\n\n".join(parts) + "\n"


def _line(measure: Measure) -> str:
    have, all_names = len(counted(measure)), len(measure.names())
    return f"| {measure.title} | {have} | {all_names} | {have / all_names:.0%} | {measure.target}% |"


def _section(measure: Measure) -> str:
    by_reason: dict[str, list[str]] = {}
    for name in measure.names():
        if name in gaps(measure):
            by_reason.setdefault(gaps(measure)[name], []).append(f"`{name}`")
    lines = [f"- **{kind}**:{reason}: {' '.join(names)}" for (kind, _, reason), names in (
        (key.partition(":"), names) for key, names in sorted(by_reason.items())
    )]  # fmt: skip
    have = " ".join(f"`{name}`" for name in counted(measure))
    parts = [f"## {measure.title}", f"The names are {measure.expression}.", f"Here: {have}.", "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)
