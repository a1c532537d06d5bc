"""Keccak hashes (FIPS 202) of rows of bytes, as tensor programs.

The state of each message is a row of 25 words.  Its constants are made from their definitions: the rotations from
a walk over the lanes, the round constants from a shift register.  Each block of a message is one realize.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir.dtype import dtypes

_NAMED = {"sha3_224": (144, 6), "sha3_256": (136, 6), "shake_128": (168, 31)}
_STATE = 200
_ROUNDS = 24
_PIECE = 4096
_CHUNK = 1 << 20


def keccak(tensor: Any, config: str | tuple[int, int]) -> Any:
    """The hash of each row of bytes: half the bytes of the state that a block leaves untouched."""
    if isinstance(config, str) and config not in _NAMED:
        raise ArgumentError("keccak", f"the hash is one of {', '.join(_NAMED)}, not {config!r}")
    rate, suffix = _NAMED[config] if isinstance(config, str) else config
    if not 0 < rate < _STATE or rate % 8 or not tensor.shape:
        raise ShapeError("keccak", f"needs an axis of bytes and a rate in words, got {tensor.shape} and {rate}")
    data = tensor.bitcast(dtypes.uint8)
    lead, count = data.shape[:-1], math.prod(data.shape[:-1])
    words = _padded(data.reshape(count, data.shape[-1]), rate, suffix)
    state = tensor.zeros(count, 25, dtype=dtypes.uint64, device=tensor.device)
    words = words.realize()
    for block in range(words.shape[1]):  # a position, unlike a slice, makes the same program for each block
        place = type(tensor)([block], device=tensor.device)
        state = _permuted(state ^ words.index_select(1, place).reshape(count, 25)).realize()
    length = (_STATE - rate) // 2
    return state.bitcast(dtypes.uint8)[:, :length].reshape(*lead, length)


def tree_hash(tensor: Any) -> Any:
    """16 bytes for a tensor of any size: hashes of pieces of 4096 bytes, hashed again for each mebibyte."""
    data = tensor.flatten().bitcast(dtypes.uint8)
    chunks = -(-data.shape[0] // _CHUNK)
    while chunks > 1:
        data = _chunk_hash(data.pad_to(chunks * _CHUNK).reshape(chunks, _CHUNK)).flatten()
        chunks = -(-chunks // (_CHUNK // 16))
    return _chunk_hash(data.pad_to(_CHUNK).reshape(1, _CHUNK)).flatten()


def _chunk_hash(chunks: Any) -> Any:
    pieces = keccak(chunks.reshape(-1, _PIECE), "shake_128")
    return keccak(pieces.reshape(chunks.shape[0], -1), "shake_128")


def _padded(data: Any, rate: int, suffix: int) -> Any:
    """The messages in blocks of 25 words, closed by the suffix and a last bit."""
    missing = rate - data.shape[1] % rate
    tail = [suffix, *[0] * (missing - 2), 0x80] if missing > 1 else [suffix ^ 0x80]
    close = type(data)(tail, dtype=dtypes.uint8, device=data.device).reshape(1, missing).expand(data.shape[0], missing)
    blocks = data.cat(close, dim=1).reshape(data.shape[0], -1, rate)
    return blocks.pad_to(None, None, _STATE).bitcast(dtypes.uint64)


def _permuted(state: Any) -> Any:
    """24 rounds of the permutation; lane x + 5 y stands for column x of row y."""
    turns, sources = _walk()
    make = type(state)
    left = make(turns, dtype=dtypes.uint64, device=state.device)
    right = make([64 - turn for turn in turns], dtype=dtypes.uint64, device=state.device)
    order = make(sources, device=state.device)
    for constant in _round_constants():
        rows = state.reshape(-1, 5, 5)
        parity = rows[:, 0] ^ rows[:, 1] ^ rows[:, 2] ^ rows[:, 3] ^ rows[:, 4]
        after = parity.roll(-1, 1)
        mixed = rows ^ (parity.roll(1, 1) ^ ((after << 1) | (after >> 63))).unsqueeze(1)
        lanes = mixed.reshape(-1, 25).index_select(1, order)
        rows = ((lanes << left) | (lanes >> right)).reshape(-1, 5, 5)
        rows = rows ^ (~rows.roll(-1, 2) & rows.roll(-2, 2))
        state = rows.reshape(-1, 25) ^ make([constant] + [0] * 24, dtype=dtypes.uint64, device=state.device)
    return state


@cache
def _walk() -> tuple[list[int], list[int]]:
    """For each lane after the step that moves them: by how many bits it turns, and where it comes from."""
    turns, sources = [0] * 25, [0] * 25
    x, y = 1, 0
    for step in range(24):
        target = (y, (2 * x + 3 * y) % 5)
        turns[target[0] + 5 * target[1]] = (step + 1) * (step + 2) // 2 % 64
        sources[target[0] + 5 * target[1]] = x + 5 * y
        x, y = target
    return turns, sources


@cache
def _round_constants() -> tuple[int, ...]:
    """Bits 2**j - 1 of each constant come from the register of the polynomial x^8 + x^6 + x^5 + x^4 + 1."""
    register, constants = 1, []
    for _ in range(_ROUNDS):
        constant = 0
        for j in range(7):
            constant |= (register & 1) << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return tuple(constants)
