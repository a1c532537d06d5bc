"""The demonstration, on a few digits that are easy to tell apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazulite import Tensor
from lazulite.nn.data import Digits
from lazulite.tools import demo


def bars(count: int) -> Digits:
    """Digit d is a white bar in row 2 d + 3."""
    labels = [number % 10 for number in range(count)]
    return Digits([bytes(28 * (2 * d + 3)) + b"\xff" * 56 + bytes(784 - 28 * (2 * d + 5)) for d in labels], labels)


@pytest.fixture
def easy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "digits", lambda: (bars(500), bars(100)))


def test_it_learns_reports_and_draws(easy: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="notimpl: matplotlib is not installed here")
    picture = tmp_path / "demo.png"
    accuracy = demo.main(seed=0, picture=str(picture), epochs=2)
    out, err = capsys.readouterr()

    assert 0.9 < accuracy
    assert ["test accuracy", "time a step", "compile time", "in all"] == [
        row.split("   ")[0].strip() for row in out.splitlines()
    ]
    assert "kernels" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "500 digits to learn from, 100 to test with, seed 0" in err


def test_the_same_seed_gives_the_same_losses(easy: None) -> None:
    losses = []
    for _ in range(2):
        Tensor.manual_seed(3)
        losses.append(demo.train(demo.Network(), bars(200), 3, 1).losses)

    assert losses[0] == losses[1]


def test_without_tqdm_and_matplotlib_plain_lines_do(
    easy: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    demo.main(seed=1, picture=str(tmp_path / "demo.png"), epochs=1)
    err = capsys.readouterr().err

    assert "epoch 1/1: 10 steps" in err
    assert "no picture: matplotlib is not installed" in err
    assert not list(tmp_path.iterdir())
