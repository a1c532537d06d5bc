"""Progress is shown on a terminal, and nowhere else."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest

from lazulite.runtime.counters import GlobalCounters
from lazulite.tools.progress import shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_many_programs_were_compiled(monkeypatch: Any) -> None:
    pytest.importorskip("tqdm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with shown("compiling"):
        monkeypatch.setattr(GlobalCounters, "programs_compiled", GlobalCounters.programs_compiled + 3)
        time.sleep(0.5)

    assert "compiling" in terminal.getvalue() and "3 programs compiled" in terminal.getvalue()


def test_a_file_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("compiling"):
        pass

    assert "" == capsys.readouterr().err
