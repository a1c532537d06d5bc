"""The reference of Tensor's methods, by family, made from the classes and their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from lazulite import Tensor

HEAD = """# The methods of `Tensor`

By family, one line each; `help(Tensor.name)` tells shapes, types, errors, and where a method differs from that of
PyTorch or NumPy, with an example. A name with `_` behind it is the method in place. This page is generated:
`pytest tests/meta/test_reference.py --update-text`.
"""


def page() -> str:
    """docs/reference/tensor.md."""
    own, followed = vars(Tensor), {name for name, line in _first_lines().items() if line.startswith("`")}
    parts = [HEAD]
    for family in Tensor.__mro__[::-1]:
        names = [name for name in vars(family) if not name.startswith("_") and name not in followed]
        if family.__name__.endswith("Methods") and names:
            parts.append(_family((family.__doc__ or "").partition("\n")[0].rstrip("."), names))
    ours = [name for name in own if not name.startswith("_") and not _inherited(name) and name not in followed]
    parts.append(_family("Memory, devices and realizing", ours))
    parts.append(_others(sorted(followed)))
    return "\n".join(parts)


def _family(title: str, names: list[str]) -> str:
    lines = _first_lines()
    rows = [f"| `{name}{_parameters(name)}` | {lines[name]} |" for name in sorted(names)]
    return "\n".join([f"## {title}", "", "| method | what it gives |", "| --- | --- |", *rows, ""])


def _others(names: list[str]) -> str:
    """Names that follow from others."""
    return f"## Other spellings, and methods in place\n\n{' '.join(f'`{name}`' for name in names)}\n"


def _inherited(name: str) -> bool:
    return any(name in vars(family) for family in Tensor.__mro__[1:])


def _first_lines() -> dict[str, str]:
    return {name: " ".join(paragraph(function).split()).replace("|", "\\|") for name, function in methods()}


def paragraph(function: Any) -> str:
    """The first paragraph of a docstring."""
    return (inspect.getdoc(function) or "").partition("\n\n")[0]


def methods() -> Iterator[tuple[str, Any]]:
    """Every public name of Tensor with the function behind it."""
    for name in dir(Tensor):
        if name.startswith("_"):
            continue
        found = inspect.getattr_static(Tensor, name)
        if isinstance(found, property):
            yield name, found.fget
        else:
            yield name, found.__func__ if isinstance(found, classmethod | staticmethod) else found


def _parameters(name: str) -> str:
    found = inspect.getattr_static(Tensor, name)
    if isinstance(found, property):
        return ""
    function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    shown = [
        parameter.replace(annotation=parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return str(inspect.Signature(shown)).replace("|", "\\|")
