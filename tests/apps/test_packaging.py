"""The wheel holds what the source tree holds."""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
from pathlib import Path

import lazulite

ROOT = Path(__file__).parents[2]


def test_no_package_is_left_out_by_hand() -> None:
    """B134: packages are found by where they lie, and every folder with modules is one."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = {path.parent for path in (ROOT / "src" / "lazulite").rglob("*.py")}

    assert ["src/lazulite"] == settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert set() == {folder for folder in folders if not (folder / "__init__.py").exists()}


def test_every_module_of_the_installed_package_can_be_imported() -> None:
    """B134."""
    found = [module.name for module in pkgutil.walk_packages(lazulite.__path__, "lazulite.")]
    for name in found:
        if not name.endswith("__main__"):
            importlib.import_module(name)

    assert len(found) > 100
