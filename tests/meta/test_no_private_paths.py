"""The repository names no place of the machine it was written on, and leaves no notes to itself."""

import re
from pathlib import Path

import pytest

from support.repository import files, name_of

FORBIDDEN = {
    "a path of some machine": re.compile(r"(?<![\w.])/(work|root|farm|home/\w+)/"),
    "an environment of some machine": re.compile(r"/tmp/venv"),
    "an unfinished place": re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"),
    "a private name for tinygrad": re.compile(r"\bthe anchor\b", re.IGNORECASE),
}
BINARY = {".png", ".npy", ".npz", ".gz", ".o"}


@pytest.mark.parametrize("path", [p for p in files() if p != Path(__file__) and p.suffix not in BINARY], ids=name_of)
def test_a_file_is_about_the_project_only(path):
    text = path.read_text(encoding="utf-8")
    assert [what for what, pattern in FORBIDDEN.items() if pattern.search(text)] == []
