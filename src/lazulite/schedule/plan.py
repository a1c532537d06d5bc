"""The plan: the result of compiling a graph, as data.

A plan names no tensor, address or device object.  Buffers are numbers: first the graph's memory
arguments, then its fresh outputs, then intermediates, which lie in one arena, then panels.  It is what the
schedule cache holds, in memory and on disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Launch:
    """One command: a kernel (or, with an empty `kernel`, a copy from its second buffer to its first)."""

    kernel: str
    """The key of the compiled kernel."""
    buffers: tuple[int, ...]
    """The buffer in each argument slot, -1 where the argument is a scalar."""
    scalars: tuple[int, ...]
    """The scalar of the graph in each argument slot, -1 where the argument is memory."""
    origin: int
    """Position in the graph of the value that this launch computes."""
    device: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    operations: int
    bytes_touched: int
    """The work, as `analysis.cost` estimates it."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A buffer that the plan's run allocates for an output."""

    dtype: str
    shape: tuple[int, ...]
    device: str


@dataclass(frozen=True, slots=True)
class Temporary:
    """An intermediate in the arena of its device."""

    offset: int
    nbytes: int
    device: str


@dataclass(frozen=True, slots=True)
class Panels:
    """An input in the order in which kernels read it: good for further runs, until the input is written."""

    source: int
    """The input."""
    nbytes: int
    filling: Launch
    """What fills the panels, before all other launches; it is none of them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Launches over numbered buffers and scalars."""

    inputs: int
    outputs: tuple[int, ...]
    """The buffer that holds each output."""
    fresh: tuple[Fresh, ...]
    temporaries: tuple[Temporary, ...]
    scalars: tuple[str, ...]
    launches: tuple[Launch, ...]
    panels: tuple[Panels, ...] = ()

    @property
    def memories(self) -> int:
        """How many buffers there are: inputs, fresh ones, intermediates, and panels."""
        return self.inputs + len(self.fresh) + len(self.temporaries) + len(self.panels)

    def to_json(self) -> str:
        return json.dumps(self, separators=(",", ":"), default=_fields)

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that `to_json` wrote; ValueError, KeyError or TypeError on anything else."""
        data: Mapping[str, Any] = json.loads(text)
        return Plan(
            data["inputs"],
            tuple(data["outputs"]),
            tuple([Fresh(**{**item, "shape": tuple(item["shape"])}) for item in data["fresh"]]),
            tuple([Temporary(**item) for item in data["temporaries"]]),
            tuple(data["scalars"]),
            tuple([_launch(item) for item in data["launches"]]),
            tuple(
                [Panels(item["source"], item["nbytes"], _launch(item["filling"])) for item in data.get("panels", ())]
            ),
        )

    def arena_sizes(self) -> dict[str, int]:
        """The bytes of the arena on each device."""
        sizes: dict[str, int] = {}
        for item in self.temporaries:
            sizes[item.device] = max(sizes.get(item.device, 0), item.offset + item.nbytes)
        return sizes


def _fields(part: Plan | Launch | Fresh | Temporary | Panels) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__slots__}


def _launch(item: Mapping[str, Any]) -> Launch:
    lists: Sequence[str] = ("buffers", "scalars", "reads", "writes")
    return Launch(**{**item, **{name: tuple(item[name]) for name in lists}})
