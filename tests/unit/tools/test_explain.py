"""`lazulite explain` runs a program and tells what its realizes did."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lazulite.tools import cli

PROGRAM = """\
import sys
from lazulite import Tensor

print("the program's own words", sys.argv[1:])
weight = Tensor([[0.5, 0.25], [1.0, 2.0]]).realize()
for step in range(3):
    weight -= weight @ weight * 0.1
    weight.realize()
if "fail" in sys.argv:
    weight @ Tensor([1.0, 2.0, 3.0])
if "raise" in sys.argv:
    raise RuntimeError("enough")
if "leave" in sys.argv:
    sys.exit(3)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return "program.py"


def test_it_tells_each_realize_once_with_the_users_lines(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = list(sys.path), list(sys.argv)
    assert 0 == cli.main(["explain", program])
    out, err = capsys.readouterr()
    assert "=== realized 3 times, first asked for at program.py:8   weight.realize()" in out
    assert "program.py:7   weight -= weight @ weight * 0.1" in out
    assert "the program's own words []" in err and "own words" not in out
    assert (sys.path, sys.argv) == before


def test_what_comes_after_two_dashes_is_for_the_program(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == cli.main(["explain", program, "--kernel", "0", "--", "--epochs", "2"])
    out, err = capsys.readouterr()
    assert out.startswith("kernel 0  ") and "own words ['--epochs', '2']" in err


def test_a_kernel_and_a_stage_narrow_it_down(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == cli.main(["explain", program, "--kernel", "0", "--stage", "lower.loops"])
    out = capsys.readouterr().out
    assert out.startswith("--- kernel 0: ") and ", after lower.loops\n" in out and 1 == out.count("---")


def test_rules_are_listed_with_counts_and_those_that_never_fired(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == cli.main(["explain", program, "--rules"])
    out = capsys.readouterr().out
    assert out.startswith("rule") and "rules never fired: " in out and " nodes visited; " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["program.py", "--kernel", "99"], "there is no kernel 99"),
        (["program.py", "--stage", "lower.loop"], "Try: lower.loops"),
        (["nowhere.py"], "there is no file nowhere.py"),
        (["program.py", "--", "fail"], "matmul: inner sizes must be equal"),
        (["program.py", "--", "raise"], "program.py ended with RuntimeError"),
        (["program.py", "--", "leave"], "program.py ended with 3"),
    ],
)
def test_what_cannot_be_done_ends_with_1_and_a_reason(
    arguments: list[str], message: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == cli.main(["explain", *arguments])
    err = capsys.readouterr().err
    assert message in err and "tools/" not in err and "runpy" not in err


def test_what_ran_before_the_program_failed_is_explained(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == cli.main(["explain", program, "--", "raise"])
    out, err = capsys.readouterr()
    assert "=== realized 3 times" in out and 'raise RuntimeError("enough")' in err


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "a.py", "--kernel", "x"], ["devices", "--", "x"]])
def test_a_command_line_that_makes_no_sense_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert 2 == caught.value.code
