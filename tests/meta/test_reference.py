"""Every public method of Tensor has a docstring with an example, and stands in the reference."""

import inspect

import pytest

from lazulite import dtypes
from support.generated import check_table
from support.reference import methods, page
from support.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "tensor.md"
TYPES = ROOT / "docs" / "learn" / "dtypes.md"
METHODS = dict(methods())


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_explained_and_shown(name):
    """Names that follow from others (their docstring begins with the name of that one) need no example."""
    text = inspect.getdoc(METHODS[name]) or ""
    assert text.split("\n\n")[0].rstrip().endswith((".", ":", "?", ")")), f"{name} has no docstring"
    assert text.startswith("`") or ">>> " in text, f"the docstring of {name} shows no example"


def test_the_reference_is_what_the_docstrings_say(update_text):
    if update_text:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "pytest tests/meta/test_reference.py --update-text renews it"


def test_the_page_of_types_holds_the_promotion_table(update_text):
    head, *rows = [line.split() for line in dtypes.promotion_table().splitlines()]
    lines = ["| | " + " | ".join(f"`{name}`" for name in head) + " |", "| --- " * (len(head) + 1) + "|"]
    lines += ["| " + " | ".join(f"`{name}`" for name in row) + " |" for row in rows]
    check_table(TYPES, "\n".join(lines), update_text)
