"""The page of ONNX operators is made from the table of operators and the specification."""

import pytest

from support.generated import check_table
from support.repository import ROOT


def test_the_page_lists_every_operator(update_text):
    pytest.importorskip("onnx")
    from lazulite.formats.onnx.coverage import operators_table

    check_table(ROOT / "docs" / "reference" / "onnx.md", operators_table(), update_text)
