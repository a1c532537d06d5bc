"""What this machine says about itself: the features of its processor, whether those that need a permission may be
used, and the sizes of its caches.

Read from `/proc/cpuinfo` and `/sys`, without starting LLVM.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""The system call of x86-64, what it is asked, and the number of the state component."""


@cache
def tile_permission() -> bool:
    """Ask the system to save tile registers, which it does not do by itself; whether it will, for all threads.

    Where it was not asked or does not do it, their instructions are illegal.
    """
    try:
        return not ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)
    except (OSError, AttributeError):  # no such library or function: not Linux
        return False


@cache
def flags() -> tuple[str, ...]:
    """The features of the processor, in the kernel's spelling."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("flags"):
                return tuple(line.partition(":")[2].split())
    return ()


@cache
def caches() -> tuple[int, int, int]:
    """Bytes of the first, second and third level data caches of one core."""
    sizes = {1: 32 << 10, 2: 1 << 20, 3: 16 << 20}
    base = "/sys/devices/system/cpu/cpu0/cache"
    for entry in sorted(os.listdir(base)) if os.path.isdir(base) else ():
        try:
            level, kind, size = (_read(f"{base}/{entry}/{name}") for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K") and int(level) in sizes:
            sizes[int(level)] = int(size[:-1]) << 10
    return sizes[1], sizes[2], sizes[3]


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
