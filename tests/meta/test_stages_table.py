"""The page of how a program runs lists the stages of the pipeline."""

from lazulite.pipeline import PIPELINE
from support.generated import check_table
from support.repository import PACKAGE, ROOT


def stage_table():
    rows = ["| stage | takes | gives |", "| --- | --- | --- |"]
    return "\n".join(rows + [f"| `{stage.name}` | `{stage.reads}` | `{stage.writes}` |" for stage in PIPELINE])


def test_the_page_holds_the_table_of_stages(update_text):
    check_table(ROOT / "docs" / "explain" / "how-a-program-runs.md", stage_table(), update_text)


def test_a_stage_is_named_after_its_file():
    assert [] == [stage.name for stage in PIPELINE if not (PACKAGE / f"{stage.name.replace('.', '/')}.py").exists()]
