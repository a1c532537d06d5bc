"""What every test runs under: checked programs, a cache of its own, reproducible random examples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

try:
    import hypothesis
except ImportError:  # tests/first runs with nothing but pytest
    pass
else:
    hypothesis.settings.register_profile("here", deadline=None, max_examples=50, print_blob=True)
    hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("here"), derandomize=True, database=None)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-text", action="store_true", help="renew golden files and generated pages")


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("LAZULITE_VERIFY", "1")
    if "LAZULITE_CACHE_DIR" not in os.environ:  # workers of xdist inherit the one of the first process
        folder = TemporaryDirectory(prefix="lazulite-tests-")
        os.environ["LAZULITE_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)


@pytest.fixture
def update_text(request: pytest.FixtureRequest) -> bool:
    """Whether expectations kept in files are to be written instead of compared."""
    return bool(request.config.getoption("--update-text"))


@pytest.fixture
def here(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """An empty directory as the working directory."""
    monkeypatch.chdir(str(tmp_path))
    yield tmp_path


@pytest.fixture(scope="session", autouse=True)
def programs_come_back_from_their_text() -> Iterator[None]:
    """Every program that a test compiles is verified after each stage and parses back from its text."""
    from support.round_trips import watched

    with watched():
        yield
