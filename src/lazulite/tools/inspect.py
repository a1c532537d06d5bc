"""`lazulite inspect FILE`: what is in a model file, without reading the elements.

Names and texts come from the file, so they are shown with whatever a terminal could obey spelled out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from lazulite.base.errors import ArgumentError, nearest
from lazulite.base.terminal import columns, size_text
from lazulite.formats.contents import Contents, Stored, contents

_LONGEST = 70
"""Characters of a value of the metadata, unless it is asked for by its key."""
_FLOAT_BYTES = 4


def inspect(options: argparse.Namespace) -> None:
    """Print the format, the metadata, the tensors and the memory that they take."""
    found = contents(options.file, "inspect")
    if options.key is not None:
        print(_value(found, options.key))
    elif options.json:
        print(json.dumps(_as_data(options.file, found), default=str))
    else:
        print(*_lines(options.file, found), sep="\n")


def _lines(file: str, found: Contents) -> list[str]:
    """The whole report."""
    stored, tensors = sum(each.nbytes for each in found.tensors.values()), found.tensors
    elements = sum(prod(each.shape) for each in tensors.values())
    kinds = Counter(each.kind for each in tensors.values())
    head = [
        ("file", printable(str(file))),
        ("format", found.format),
        ("tensors", ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "none"),
        ("elements", f"{elements:,}"),
        ("memory", f"{size_text(stored)}, as float32 {size_text(elements * _FLOAT_BYTES)}"),
    ]
    facts = [(printable(str(key)), _short(value)) for key, value in found.metadata.items()]
    rows = [(printable(name), each.kind, str(each.shape), size_text(each.nbytes)) for name, each in tensors.items()]
    lines = columns(head)
    for title, block in (("metadata", facts), ("tensors", rows)):
        lines += ["", title, *(f"  {line}" for line in columns(block))] if block else []
    return lines


def _short(value: Any) -> str:
    """One line of a value; of a list how long it is and how it begins."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{len(value)} values: " + printable(repr(list(value[:8])))[:_LONGEST]
    text = printable(str(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _value(found: Contents, key: str) -> str:
    """One value of the metadata in full; texts keep their line ends."""
    if key not in found.metadata:
        near = nearest(key, map(str, found.metadata))
        raise ArgumentError("inspect", f"there is no metadata entry {key!r:.80}", hint=near)
    value = found.metadata[key]
    return "\n".join(map(printable, value.split("\n"))) if isinstance(value, str) else json.dumps(value, default=str)


def _as_data(file: str, found: Contents) -> dict[str, Any]:
    """The report for programs."""
    tensors = {name: _facts(each) for name, each in found.tensors.items()}
    return {"file": str(file), "format": found.format, "metadata": dict(found.metadata), "tensors": tensors}


def _facts(each: Stored) -> dict[str, Any]:
    return {"type": each.kind, "shape": each.shape, "bytes": each.nbytes}


def printable(text: str) -> str:
    """The text with control characters and the like spelled out.

    >>> printable("a" + chr(27) + "[2J")
    'a\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
