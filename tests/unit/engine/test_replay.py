"""A fault of the compiler leaves a file that repeats it, and names the file."""

from __future__ import annotations

import re

import pytest

from lazulite import Context, FormatError, StageError, Tensor, pipeline
from lazulite.engine.replay import Replay, read, write
from lazulite.ir.parse import parse
from lazulite.ir.target import host, target
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.pipeline import Request
from lazulite.tools.cli import main

KERNEL = """kernel
param p0 float32[64]
param p1 float32[64]
loop r0 in 0..64
p1[r0] = p0[r0] * 3.0
"""


def broken_stage(root: UOp, request: Request) -> UOp:
    raise ZeroDivisionError("a stage went wrong")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler one stage of which fails."""
    stages = [
        pipeline.Stage(s.name, broken_stage, s.reads, s.writes) if s.name == "lower.loops" else s
        for s in pipeline.PIPELINE
    ]
    monkeypatch.setattr(pipeline, "PIPELINE", tuple(stages))


def test_a_replay_reads_back_as_it_was_written() -> None:
    machine = target("CPU:LLVM", ("avx2", "fma"), l2=1 << 18, threads=3)
    for steps in (None, choose(parse(KERNEL), machine)):
        case = Replay(parse(KERNEL), machine, steps)
        assert case == read(write(case))


def test_the_same_compilation_is_stored_once() -> None:
    case = Replay(parse(KERNEL), host(), ())
    assert write(case) == write(case)


@pytest.mark.usefixtures("broken")
def test_a_fault_of_a_stage_names_the_stage_and_a_file_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    x = (Tensor([1.0, 2.0]) * 23).sqrt() + 0.125
    with Context(CACHE=0), pytest.raises(StageError, match=r"lower\.loops: ZeroDivisionError: a stage went") as caught:
        x.realize()
    found = re.search(r"lazulite replay (\S+)", str(caught.value))
    assert found is not None
    assert caught.value.replay == found[1]
    assert 1 == main(["replay", found[1]])
    assert "a stage went wrong" in capsys.readouterr().err


def test_a_replay_whose_fault_is_gone_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["replay", write(Replay(parse(KERNEL), host(), None))])
    assert "the fault is gone" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "{}", '{"kernel": 1}', "[]", "no json"])
def test_a_file_that_is_no_replay_is_refused(content: str, tmp_path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(FormatError, match="not a replay file"):
        read(tmp_path / "x.json")


def test_stopping_at_a_stage_leaves_no_file() -> None:
    x = (Tensor([1.0, 2.0]) * 29).sqrt() + 0.375
    with Context(STOP="kernel.apply"), pytest.raises(StageError) as caught:
        x.realize()
    assert "" == caught.value.replay
