"""Tables in pages that are made from the source."""

from __future__ import annotations

import re
from pathlib import Path


def check_table(page: Path, table: str, update: bool) -> None:
    """The page holds this Markdown table, found by its first line; or write it there."""
    text = page.read_text(encoding="utf-8")
    heading = table.partition("\n")[0]
    pattern = re.compile(re.escape(heading) + r"\n(\|.*\n)*")
    assert pattern.search(text), f"{page} has no table that begins with {heading}"
    renewed = pattern.sub(lambda _: table + "\n", text)
    if update:
        page.write_text(renewed, encoding="utf-8")
    else:
        assert renewed == text, "make update-text renews it"
