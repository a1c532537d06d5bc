"""ONNX models: read as data and run as functions of tensors, and made of these.

Names are imported on first use: writing a model needs nothing of what running one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lazulite.formats.onnx.export import to_onnx as to_onnx
    from lazulite.formats.onnx.runner import OnnxRunner as OnnxRunner

_HOMES = {"OnnxRunner": "runner", "to_onnx": "export"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
