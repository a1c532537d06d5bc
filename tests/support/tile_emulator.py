"""Machines with matrix units for tests, on processors that have none.

`machine()` is this machine with the units of AMX; `emulated()` lets code for it run: where the processor does not
know the instructions, a library that is compiled from `tile_emulator.c` does what they say.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lazulite.ir.target import Target, host, target

_SOURCE = Path(__file__).with_suffix(".c")
_COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(_COMPILER is None, reason="never: the emulated instructions are written in C")


def machine() -> Target:
    """This machine, and all of AMX where it has nothing of it: a tile is either in the processor or here."""
    here = host()
    if here.matrix:
        return here
    features = tuple(sorted({*here.features, "amx-tile", "amx-bf16", "amx-fp16", "amx-int8"}))
    return target(here.name, features, here.l1, here.l2, here.l3, here.threads)


@cache
def _library() -> ctypes.CDLL:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tiles.so"
        subprocess.run([str(_COMPILER), "-O2", "-mfma", "-shared", "-fPIC", _SOURCE, "-o", path], check=True)
        return ctypes.CDLL(str(path))


class Emulation:
    """What the emulated processor has done."""

    @property
    def executed(self) -> int:
        """Tile instructions so far."""
        return int(_library().count())

    @property
    def configured(self) -> bool:
        """Whether this thread has tiles: a kernel gives them back."""
        return bool(_library().is_configured())


@contextmanager
def emulated() -> Iterator[Emulation]:
    """Tile instructions work in this block."""
    _library().install()
    try:
        yield Emulation()
    finally:
        _library().uninstall()
