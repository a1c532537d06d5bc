"""The modules that register operators, one for each family; `load` imports them once."""

from __future__ import annotations

from importlib import import_module

FAMILIES = (
    "arithmetic", "attention", "casts", "control", "indexing", "losses", "ml", "norms", "products", "quantize",
    "recurrent", "reductions", "resize", "sequences", "shapes", "signal", "strings", "training", "trees", "vision",
)  # fmt: skip


def load() -> None:
    """Fill the table of operators."""
    for name in FAMILIES:
        import_module(f"lazulite.formats.onnx.{name}")
