"""Profiles are traces with a range for each kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lazulite import GlobalCounters, Tensor, profile


def ranges(path: Path) -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


def test_each_kernel_is_a_range_with_line_bytes_and_operations(tmp_path: Path) -> None:
    """A44"""
    x = Tensor.rand(64, 64).realize()
    before = GlobalCounters.kernel_count
    with profile(tmp_path / "t.json") as seen:
        (x @ x).realize()
        (x + 1).realize()
    (x + 2).realize()
    events = ranges(tmp_path / "t.json")

    assert 2 == len(events) == GlobalCounters.kernel_count - before - 1 == len(seen.events)
    product = events[0]
    assert 2 * 64**3 == product["args"]["operations"]
    assert "test_profile.py:" in product["args"]["line"] and product["args"]["bytes"] == 2 * 64 * 64 * 4
    assert events[0]["ts"] + events[0]["dur"] <= events[1]["ts"]


def test_profiles_nest_and_are_written_after_an_error(tmp_path: Path) -> None:
    x = Tensor([1.0]).realize()
    try:
        with profile(tmp_path / "outer.json"):
            with profile(tmp_path / "inner.json"):
                (x * 3).realize()
            (x * 4).realize()
            raise KeyError
    except KeyError:
        pass

    assert (1, 1) == (len(ranges(tmp_path / "outer.json")), len(ranges(tmp_path / "inner.json")))


def test_the_setting_writes_at_the_end_of_the_process(tmp_path: Path) -> None:
    """A44"""
    path = tmp_path / "p.json"
    program = "from lazulite import Tensor; (Tensor([1.0, 2.0]) * 3).realize()"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "LAZULITE_PROFILE": str(path)})
    rows = json.loads(path.read_text())["traceEvents"]

    assert "CPU" == next(row["args"]["name"] for row in rows if row["ph"] == "M")
    assert 1 == len(ranges(path))
