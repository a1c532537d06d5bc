"""Every name of each list counts or has a reason, and the page says what is so."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="notimpl: torch is not installed here")
pytest.importorskip("expecttest", reason="notimpl: expecttest is not installed here")

from support.repository import ROOT
from surface.spaces import MEASURES
from surface.table import counted, gaps, page

PAGE = ROOT / "docs" / "coverage.md"


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.key)
def test_a_name_counts_or_there_is_a_reason(measure):
    assert [name for name in measure.names() if name not in counted(measure) and name not in gaps(measure)] == []


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.key)
def test_a_reason_is_about_a_name_of_the_list(measure):
    assert [name for name in gaps(measure) if name not in measure.names()] == []
    assert [r for r in gaps(measure).values() if not r.startswith(("notyet: ", "never: "))] == []


def test_the_page_is_what_the_tests_make_it(update_text):
    if update_text:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "pytest tests/surface/test_table.py --update-text renews it"
