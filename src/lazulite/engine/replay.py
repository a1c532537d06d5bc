"""Files that repeat the compilation of one kernel: what a report of a compiler fault needs.

`write` stores the kernel's text, the schedule steps and the facts of the target as JSON in the
directory for temporary files; `read` gives them back, and `lazulite replay FILE` compiles them again.
A file holds no data of the user: kernels name memory by slots.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lazulite.base.errors import FormatError, LazuliteError
from lazulite.ir.parse import parse
from lazulite.ir.target import Target, target
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp
from lazulite.kernel import steps as schedule

_FACTS = ("name", "features", "l1", "l2", "l3", "threads")


@dataclass(frozen=True)
class Replay:
    """One compilation; `steps` is None where the fault came while they were chosen."""

    kernel: UOp
    target: Target
    steps: tuple[schedule.Step, ...] | None


_written: dict[str, str] = {}


def write(replay: Replay) -> str:
    """Store the compilation; the file's path.  The same compilation is stored once by a process."""
    steps = None if replay.steps is None else schedule.text(replay.steps)
    facts = {fact: getattr(replay.target, fact) for fact in _FACTS}
    content = json.dumps({"kernel": to_text(replay.kernel), "steps": steps, "target": facts}, indent=1)
    path = _written.get(content)
    if path is None:
        descriptor, path = tempfile.mkstemp(prefix="lazulite-", suffix=".replay.json")
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
        _written[content] = path
    return path


def read(path: str | os.PathLike[str]) -> Replay:
    """The compilation that a file repeats; FormatError where it is none."""
    try:
        content = json.loads(Path(path).read_bytes())
        facts = {fact: content["target"][fact] for fact in _FACTS}
        facts["features"] = tuple(facts["features"])
        steps = None if content["steps"] is None else schedule.parse(content["steps"])
        return Replay(parse(content["kernel"]), target(**facts), steps)
    except (ValueError, KeyError, TypeError, LazuliteError) as error:
        raise FormatError("replay", f"not a replay file: {error}", file=str(path)) from error
