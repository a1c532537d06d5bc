"""`lazulite tune` runs a program and tells what a search brought."""

import pytest

from lazulite.base.settings import SETTINGS, Context
from lazulite.engine import tune as engine
from lazulite.kernel.search import Found
from lazulite.tools import cli

PROGRAM = """
import sys
from lazulite import Tensor
print((Tensor([1.0, 2.0, 3.0]) * float(sys.argv[1])).exp().tolist())
if sys.argv[2:]:
    sys.exit("over")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr(
        engine, "search", lambda kernel, target, start, *rest: Found(start, SETTINGS.BEAM, SETTINGS.BEAM_SECONDS, 7)
    )
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    with Context(CACHE_DIR=tmp_path / "cache"):
        yield str(file)


def test_each_kernel_has_a_line(program, capsys):
    assert 0 == cli.main(["tune", "--beam", "2", "--seconds", "6", program, "--", "3.5"])
    told = capsys.readouterr()
    row = next(line for line in told.out.splitlines() if line.startswith("exp"))
    assert ["6.00", "s", "2.00", "s", "3.00", "7"] == row.split()[1:]
    assert "1 kernels tuned, 0 were already" in told.out and "[" in told.err


def test_steps_are_printed_where_they_are_asked_for(program, capsys):
    assert 0 == cli.main(["tune", "--steps", program, "--", "2.5"])
    assert "vectorize" in capsys.readouterr().out


def test_a_program_that_fails_is_told_after_what_was_tuned(program, capsys):
    assert 1 == cli.main(["tune", program, "--", "1.5", "fail"])
    told = capsys.readouterr()
    assert "kernels tuned" in told.out and "ended with over" in told.err


def test_a_script_that_is_not_there_is_told(capsys):
    assert 1 == cli.main(["tune", "nowhere.py"])
    assert "there is no file nowhere.py" in capsys.readouterr().err
