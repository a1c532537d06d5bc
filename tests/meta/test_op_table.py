"""The page of languages lists every op, by family."""

from lazulite.ir.ops import OPS
from support.generated import check_table
from support.repository import ROOT


def op_table():
    rows = ["| family | ops |", "| --- | --- |"]
    for family in dict.fromkeys(record.family for record in OPS.values()):
        names = " ".join(f"`{record.name}`" for record in OPS.values() if record.family == family)
        rows.append(f"| {family} | {names} |")
    return "\n".join(rows)


def test_the_page_holds_the_table_of_ops(update_text):
    check_table(ROOT / "docs" / "reference" / "languages.md", op_table(), update_text)


def test_every_op_says_what_it_does():
    assert [] == [record.name for record in OPS.values() if not record.doc.rstrip().endswith(".")]
