"""What the settings SHOW, STOP, VERIFY and DEBUG do while a kernel is compiled.

A program that is known already is compiled again where SHOW or STOP ask for a stage: what they ask for
is never left out because somebody compiled the kernel before.
"""

from __future__ import annotations

from lazulite.base.errors import SettingError, StageError, nearest
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify
from lazulite.pipeline import PIPELINE, Stage, Watch


def watch() -> Watch | None:
    """What to call after each stage, by the settings; None where nothing is asked."""
    _check_stage("SHOW", SETTINGS.SHOW)
    _check_stage("STOP", SETTINGS.STOP)
    if not (SETTINGS.SHOW or SETTINGS.STOP or SETTINGS.VERIFY or SETTINGS.DEBUG >= 4):
        return None
    return _after_stage


def _check_stage(setting: str, name: str) -> None:
    known = [stage.name for stage in PIPELINE]
    if name and name not in known:
        raise SettingError(
            setting, f"there is no stage {name}", rule=f"The stages are {', '.join(known)}.", hint=nearest(name, known)
        )


def _after_stage(stage: Stage, before: UOp, after: UOp) -> None:
    if stage.name == SETTINGS.SHOW or (SETTINGS.DEBUG >= 4 and stage is PIPELINE[0]):
        _print(f"before {stage.name}", before)
    if stage.name == SETTINGS.SHOW or SETTINGS.DEBUG >= 5:
        _print(f"after {stage.name}", after)
    if SETTINGS.VERIFY:
        verify(after, stage.writes, stage.name)
    if stage.name == SETTINGS.STOP:
        raise StageError(stage.name, "stopped here, as the setting STOP asks")


def _print(title: str, root: UOp) -> None:
    say(f"--- {title}\n{to_text(root)}")
