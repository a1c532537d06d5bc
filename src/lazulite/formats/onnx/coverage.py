"""Which operators run, as the table of `docs/reference/onnx.md`; it needs the package `onnx` to know all there are."""

from __future__ import annotations

from typing import Any

from lazulite.formats.onnx import families
from lazulite.formats.onnx.registry import OPERATORS, find

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


def operators_table() -> str:
    """A row for each operator of the specification and each of our own: its versions, and how it runs."""
    from onnx import defs

    families.load()
    history: dict[tuple[str, str], list[Any]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            history.setdefault((schema.domain, schema.name), []).append(schema)
    rows = [(domain, name, _row(domain, name, history.get((domain, name), []))) for domain, name in history | OPERATORS]
    lines = [f"| {domain or 'ai.onnx'} | {name} | {text} |" for domain, name, text in sorted(rows)]
    return "\n".join(["| domain | operator | versions | runs |", "| --- | --- | --- | --- |", *lines])


def _row(domain: str, name: str, schemas: list[Any]) -> str:
    """The versions, and whether each of them runs, as our own or as the specification's function."""
    versions = sorted(schema.since_version for schema in schemas if not schema.deprecated)
    if not schemas:
        versions = [each.since for each in OPERATORS[domain, name]]
    own = [version for version in versions if find(domain, name, version)]
    function = [
        schema.since_version
        for schema in schemas
        if schema.since_version not in own and (schema.has_function or schema.has_context_dependent_function)
    ]
    missing = [version for version in versions if version not in own and version not in function]
    texts = [("own", own), ("as a function", function), ("not", missing)]
    how = [text if len(each) == len(versions) else f"{text}: {_listed(each)}" for text, each in texts if each]
    return f"{_listed(versions)} | {'; '.join(how)}"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
