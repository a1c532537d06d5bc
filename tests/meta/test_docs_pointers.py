"""Pages, comments and docstrings point only at what exists."""

import importlib
import re

import pytest

from support.repository import PACKAGE, ROOT, docstrings, modules, name_of, pages

PATH = re.compile(r"`((?:[\w.<>*-]+/)+[\w.<>*-]*)`")
SYMBOL = re.compile(r"`(lazulite(?:\.\w+)+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
PLACEHOLDER = re.compile(r"[<*]|\bx\.py|_x\.py")
"""`docs/howto/add-<thing>.md`, `runtime/devices/x.py`: names for any file of a kind."""


def exists(path):
    return any((folder / path).exists() for folder in (ROOT, PACKAGE))


def resolves(symbol):
    parts = symbol.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def broken(text):
    paths = [m for m in PATH.findall(text) if not PLACEHOLDER.search(m) and not m.startswith(("/", "~", "."))]
    return [p for p in paths if not exists(p)] + [s for s in SYMBOL.findall(text) if not resolves(s)]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_points_at_what_exists(page):
    text = page.read_text(encoding="utf-8")
    assert broken(text) == []
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_docstring_points_at_what_exists(path):
    assert [pointer for text in docstrings(path) for pointer in broken(text)] == []


def test_every_page_is_reached_from_the_readme():
    reached, pending = set(), [ROOT / "README.md"]
    while pending:
        page = pending.pop()
        if page in reached:
            continue
        reached.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        pending += [(page.parent / link).resolve() for link in links if link.endswith(".md")]
    below = [page for page in pages() if page.is_relative_to(ROOT / "docs")]
    assert [name_of(page) for page in below if page not in reached] == []
