"""The stream of random numbers: its key, and how many elements were drawn.

It is state of the program like any tensor: a call that is replayed moves it on exactly as the function
would.
"""

from __future__ import annotations

import threading

_FIRST = 1 << 32
"""Positions and keys keep away from 0 and 1, which the compiler would build into a program."""
_WORD = (1 << 64) - 1


class Stream:
    """Positions are given out in program order."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.restarts = 0
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Begin the stream of a seed."""
        with self.lock:
            self.key, self.position = _key_of(seed), _FIRST
            self.restarts += 1

    def take(self, count: int) -> tuple[int, int]:
        """The key and the first of `count` positions that belong to this draw."""
        with self.lock:
            position = self.position
            self.position += count
            return self.key, position


def _key_of(seed: int) -> int:
    """Different seeds give different keys (an odd factor and a constant)."""
    return (seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & _WORD


STREAM = Stream()
