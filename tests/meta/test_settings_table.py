"""The page of settings is made from their declarations."""

import re

from lazulite.base.settings import DECLARED, settings_table
from support.generated import check_table
from support.repository import ROOT, modules


def test_the_page_holds_the_table_of_the_declarations(update_text):
    check_table(ROOT / "docs" / "reference" / "settings.md", settings_table(), update_text)


def test_a_setting_is_read_in_the_source_unless_it_says_notyet():
    read = {n for p in modules() for n in re.findall(r"\bSETTINGS\.([A-Z_]+)", p.read_text(encoding="utf-8"))} - {
        "NAME"
    }
    assert {name for name, setting in DECLARED.items() if not setting.notyet} == read
