"""The movements that show the windows of a convolution, as regions."""

from __future__ import annotations

from lazulite.analysis.regions import Region


def windows(length: int, size: int) -> list[tuple[str, tuple]]:
    """Movements of an axis to (size, outputs), stride 1, beside `lead` axes in front."""
    outputs, before = length - size + 1, size - 1
    row = before + length
    return [
        ("reshape", (1, length)), ("expand", (size, length)), ("pad", ((0, 0), (before, 0))),
        ("reshape", (size * row,)), ("pad", ((0, size),)), ("reshape", (size, row + 1)),
        ("shrink", ((0, size), (before, before + outputs))),
    ]  # fmt: skip


def on_axis(chain: list[tuple[str, tuple]], lead: tuple[int, ...], trail: tuple[int, ...]) -> Region:
    """The chain applied to the axes between `lead` and `trail`."""
    result = []
    for name, arg in chain:
        none = (0, 0) if name == "pad" else None
        before = tuple([none or ((0, n) if name == "shrink" else n) for n in lead])
        after = tuple([none or ((0, n) if name == "shrink" else n) for n in trail])
        result.append((name, (*before, *arg, *after)))
    return tuple(result)
