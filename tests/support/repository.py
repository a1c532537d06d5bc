"""The files of the repository, for tests that read the source instead of running it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "lazulite"
_SKIPPED = {".git", ".venv", "build", "dist", "__pycache__", "_generated"}
_HIDDEN_BUT_OURS = {".ci", ".gitignore"}


def files(*suffixes: str, below: Path = ROOT) -> list[Path]:
    """Every file of the repository with one of these suffixes, or every one of all, in a fixed order."""
    found: list[Path] = []
    for folder, folders, names in os.walk(below):
        folders[:] = sorted(name for name in folders if _is_ours(name))
        found += [Path(folder, name) for name in sorted(names) if _is_ours(name)]
    return [path for path in found if not suffixes or path.suffix in suffixes]


def _is_ours(name: str) -> bool:
    return name not in _SKIPPED and (name in _HIDDEN_BUT_OURS or not name.startswith("."))


def modules() -> list[Path]:
    """Every module of the package."""
    return files(".py", below=PACKAGE)


def pages() -> list[Path]:
    """Every page that people read."""
    return files(".md")


def name_of(path: Path) -> str:
    """The path as this repository's pages write it."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """The dotted name under which a module of the package is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module, methods and inner ones too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def docstrings(path: Path) -> Iterator[str]:
    """Every docstring of a module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
