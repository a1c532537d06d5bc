"""Text for people at a terminal: columns, sizes, times, and colour where it is wanted.

Results go to stdout, everything said about the work goes to stderr (`say`).  Colour appears only on
a terminal and never where the environment has ``NO_COLOR``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "grey": 90}


def columns(rows: Iterable[Sequence[str]], gap: str = "   ") -> list[str]:
    """Rows of cells as lines with aligned columns; rows may end early.

    >>> columns([("CPU", "works"), ("PYTHON", "works", "slow")])
    ['CPU      works', 'PYTHON   works   slow']
    """
    table = [list(row) for row in rows]
    count = max(map(len, table), default=0)
    widths = [max((len(row[i]) for row in table if len(row) > i), default=0) for i in range(count)]
    return [gap.join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip() for row in table]


def size_text(count: int) -> str:
    """A number of bytes in the unit that suits it.

    >>> size_text(512), size_text(1_500_000)
    ('512 B', '1.50 MB')
    """
    if count < 1000:
        return f"{count} B"
    steps = min((len(str(count)) - 1) // 3, 4)
    return f"{count / 1000**steps:.2f} {('B', 'KB', 'MB', 'GB', 'TB')[steps]}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(0.00123), duration(75)
    ('1.23 ms', '75.00 s')
    """
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour if this stream is a terminal that shows it."""
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def say(text: str) -> None:
    """One remark on stderr, whole and at once, so that threads do not mix their lines."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
