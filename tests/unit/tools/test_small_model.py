"""The packaged model is found where it is installed, and nowhere else."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pytest

from lazulite.tools import demo
from lazulite.tools.small_model import small_model


def test_the_model_of_the_package_is_a_gguf_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class File(type(Path())):  # type: ignore[misc]
        def locate(self) -> Any:
            return Path("/packages") / self

    monkeypatch.setattr(metadata, "files", lambda name: [File("llm/__init__.py"), File("llm/small.gguf")])

    assert "/packages/llm/small.gguf" == small_model()


def test_without_the_package_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)

    assert small_model() is None and demo.ask() == ""
    assert "no answer" in capsys.readouterr().err
