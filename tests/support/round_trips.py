"""Every program of a test run is printed, parsed back and verified.

`watched()` wraps the two doors through which programs go: `schedule.build.build` for `TENSOR` graphs and
`pipeline.lower` for kernels, as they come and as the last stage of each language leaves them.  A program
whose text does not parse back to itself fails the test that compiled it.  Texts that were checked before,
and graphs of more than 5,000 nodes, are not checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lazulite import pipeline
from lazulite.ir import ops
from lazulite.ir.canonical import canonical
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, toposort
from lazulite.ir.verify import verify
from lazulite.schedule import build

LARGEST = 5000
checked: Counter[str] = Counter()
"""How many texts of each language came back."""
_known: set[int] = set()


def check(root: UOp, language: str, stage: str) -> None:
    """The program is well formed, and its text parses to its canonical form."""
    if len(toposort(root)) > LARGEST:
        return
    verify(root, language, stage)
    text = to_text(root)
    if hash(text) in _known:
        return
    back = parse(text)
    assert back is canonical(root), f"after {stage} the text does not parse back:\n{text}\n--- gives\n{to_text(back)}"
    _known.add(hash(text))
    checked[language] += 1


@contextmanager
def watched() -> Iterator[None]:
    """Check what is compiled in this block."""
    scheduled, lowered = build.build, pipeline.lower
    finished = {stage.writes: stage for stage in pipeline.PIPELINE}.values()

    def schedule(outputs: Any, *rest: Any, **named: Any) -> Any:
        check(UOp(ops.SINK, dtypes.void, tuple(outputs)), "TENSOR", "canonical")
        return scheduled(outputs, *rest, **named)

    def lower(kernel: UOp, target: Any, steps: Any = (), watch: Any = None) -> UOp:
        check(kernel, "KERNEL", "schedule")

        def seen(stage: pipeline.Stage, before: UOp, after: UOp) -> None:
            if watch is not None:
                watch(stage, before, after)
            if stage in finished:
                check(after, stage.writes, stage.name)

        return lowered(kernel, target, steps, seen)

    build.build, pipeline.lower = schedule, lower
    try:
        yield
    finally:
        build.build, pipeline.lower = scheduled, lowered
