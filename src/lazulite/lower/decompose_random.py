"""Random bits: Threefry-2x32 in additions, exclusive ors and rotations of 32-bit words.

The counter and the key are uint64 values whose halves are the generator's lanes.  The bits equal the
interpreter's on every target (A48).
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, both_halves, joined

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS = 5


def threefry(node: UOp, native: Native) -> UOp:
    """Twenty rounds in five groups of four; after each group two words of the key are added in turn."""
    counter, key = node.src
    first, second = both_halves(key)
    keys = (first, second, first ^ second ^ _PARITY)
    x, y = both_halves(counter)
    x, y = x + keys[0], y + keys[1]
    for group in range(_GROUPS):
        for distance in _ROTATIONS[group % 2]:
            x = x + y
            y = _rotated(y, distance) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + (group + 1)
    return joined(x, y)


def _rotated(x: UOp, distance: int) -> UOp:
    return (x << distance) | (x >> (32 - distance))


RULES: dict[Op, Rule] = {ops.THREEFRY: threefry}
