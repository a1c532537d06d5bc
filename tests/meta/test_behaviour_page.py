"""The page of promised behaviour has an entry for every id that a test shows, and no other."""

import re

from support.repository import ROOT, docstrings, files

PAGE = ROOT / "docs" / "explain" / "behaviour.md"
IDENTIFIER = re.compile(r"\b(A\d{1,2}|B\d{3}|O\d{2})\b")


def shown():
    """The ids named in docstrings of tests."""
    paths = [path for path in files(".py", below=ROOT / "tests") if "meta" not in path.parts]
    return {name for path in paths for text in docstrings(path) for name in IDENTIFIER.findall(text)}


def stated():
    """The ids that have an entry of their own."""
    return set(re.findall(r"^- \*\*(\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_id_in_a_test_is_explained():
    assert shown() - stated() == set()


def test_every_explained_id_is_shown_by_a_test():
    assert stated() - shown() == set()
