"""Modules import only from their own package or from a layer with a smaller number.

An import inside a function or under TYPE_CHECKING counts like any other, and so does a module named
to `import_module`.  `lazulite/__init__.py` only re-exports, so it stands outside; only the programs
in the top layer, which use the library as everybody does, import from it.
"""

import ast

import pytest

from support.repository import PACKAGE, module_name, modules, name_of, tree

LAYERS = {
    "base": 0, "ir": 1, "rewrite": 2, "simplify": 3, "analysis": 4, "autograd": 5, "schedule": 6, "kernel": 7,
    "lower": 8, "emit": 9, "asm": 9, "pipeline": 10, "runtime": 11, "engine": 12, "tensor": 13, "formats": 14,
    "linalg": 14, "fft": 14, "nn": 15, "llm": 16, "tools": 17, "interop": 17, "__main__": 18,
}  # fmt: skip
TOP = LAYERS["tools"]


def layer_of(module):
    return module.split(".")[1] if "." in module else "lazulite"


def imports(path):
    """(line, dotted name) of everything of this package that the module imports."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((node.lineno, a.value) for a in node.args if isinstance(a, ast.Constant))


def faults(path):
    own = layer_of(module_name(path))
    for line, name in imports(path):
        if not name.startswith("lazulite"):
            continue
        other = layer_of(name)
        if other not in LAYERS:
            if LAYERS[own] < TOP:
                yield f"{name_of(path)}:{line}: {name} comes from the package itself, not from a layer"
        elif other != own and LAYERS[other] >= LAYERS[own]:
            yield f"{name_of(path)}:{line}: layer {LAYERS[own]} ({own}) imports {name} of layer {LAYERS[other]}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_down(path):
    if path != PACKAGE / "__init__.py":
        assert list(faults(path)) == []


def test_every_module_has_a_layer():
    assert {layer_of(module_name(path)) for path in modules()} <= LAYERS.keys() | {"lazulite"}


def test_every_folder_of_the_package_is_a_package():
    """A folder without `__init__.py` would be imported from the source tree and left out of a wheel."""
    folders = {path.parent for path in modules()}
    assert [name_of(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
