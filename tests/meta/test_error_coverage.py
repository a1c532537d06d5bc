"""Every error class is raised somewhere in the source and met by a test of that source."""

import ast

import pytest

from lazulite.base import errors
from support.repository import PACKAGE, ROOT, files, modules, tree

CLASSES = sorted(n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, errors.LazuliteError))
NOTYET: dict[str, str] = {}
"""Classes that nothing raises yet, and why; an entry has to go when something does."""


def calls(paths):
    """Names that are called in these files, as `Name(...)`."""
    found = set()
    for path in paths:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                found.add(ast.unparse(node.func).rpartition(".")[2])
    return found


def names(paths):
    """Names that are used in these files in any way."""
    nodes = [node for path in paths for node in ast.walk(tree(path))]
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}


@pytest.fixture(scope="module")
def made():
    return calls(path for path in modules() if path != PACKAGE / "base" / "errors.py")


@pytest.fixture(scope="module")
def met():
    own = {ROOT / "tests/unit/base/test_errors.py", ROOT / "tests/meta/test_error_coverage.py"}
    return names(path for path in files(".py", below=ROOT / "tests") if path not in own)


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_raised_and_a_test_meets_it(name, made, met):
    if name in NOTYET:
        assert name not in made, f"{name} is raised now: take it out of NOTYET"
        return
    assert name in made, f"nothing raises {name}"
    builtin = {c.__name__ for c in vars(errors)[name].__mro__[1:]} - {"LazuliteError", "Exception", "object"}
    assert name in met, f"no test names {name} (naming only {sorted(builtin)} does not show the class)"
