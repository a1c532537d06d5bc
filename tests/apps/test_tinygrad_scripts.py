"""Scripts written for tinygrad run unchanged and print what they print there.

The `.txt` beside each is what tinygrad 0.14 printed on a processor.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import ROOT

SCRIPTS = sorted(Path(__file__).with_name("tinygrad_scripts").glob("*.py"))


def run(*arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "lazulite.interop.tinygrad", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_what_it_prints_with_tinygrad(script, here):
    done = run(str(script), "a", "b")

    assert script.with_suffix(".txt").read_text(encoding="utf-8") == done.stdout, done.stderr


def test_a_name_that_is_not_there_is_an_import_error(here):
    Path("script.py").write_text("from tinygrad.helpers import no_such_name\n", encoding="utf-8")
    done = run("script.py")

    assert done.returncode != 0
    assert "cannot import name 'no_such_name'" in done.stderr


def test_wrong_usage_says_how_it_is_used(here):
    assert "usage:" in run().stderr
    assert "there is no file" in run("nowhere.py").stderr
