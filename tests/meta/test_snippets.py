"""What the pages and docstrings show is true: every example in them is executed.

A ``python`` block of a page is run, a ``pycon`` block is run and its output compared; the blocks of one
page follow each other in one namespace.  In the source, every ``>>>`` of a docstring is run; the public
names are known there without an import.
"""

import doctest
import importlib
import re
from textwrap import dedent

import pytest

import lazulite
from support.repository import module_name, modules, name_of, pages

BLOCK = re.compile(r"^( *)```(python|pycon)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    """(language, text, number of the first line) of each block to run."""
    text = page.read_text(encoding="utf-8")
    return [(m[2], dedent(m[3]), text.count("\n", 0, m.start(3)) + 1) for m in BLOCK.finditer(text)]


def run(test, complaints):
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=complaints.append, clear_globs=False)


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page)], ids=name_of)
def test_a_page_does_what_it_shows(page, here):
    space = {"__name__": "__main__"}
    complaints = []
    for language, text, line in blocks(page):
        if language == "python":
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), space)
        else:
            example = doctest.DocTestParser().get_doctest(text, space, name_of(page), str(page), line - 1)
            run(example, complaints)
            space |= example.globs
    assert not complaints, "".join(complaints)


@pytest.mark.parametrize("path", [p for p in modules() if ">>> " in p.read_text(encoding="utf-8")], ids=name_of)
def test_a_docstring_does_what_it_shows(path, here):
    module = importlib.import_module(module_name(path))
    public = {name: getattr(lazulite, name) for name in lazulite.__all__}
    complaints = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=public):
        run(example, complaints)
    assert not complaints, "".join(complaints)
