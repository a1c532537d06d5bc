"""Pickles put together opcode by opcode: what a checkpoint names needs not exist for that."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Global:
    """Something that a pickle names; calling it stands for the call that the pickle makes."""

    module: str
    name: str

    def __call__(self, *arguments: Any) -> Call:
        return Call(self, arguments)


@dataclass(frozen=True)
class Call:
    """A call of anything with arguments, and a state that is set afterwards."""

    function: Any
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(frozen=True)
class Persistent:
    """A reference to something outside of the pickle."""

    identifier: Any


@dataclass(frozen=True)
class Raw:
    """Opcodes as they are."""

    opcodes: bytes


def pickled(value: Any, protocol: int = 2) -> bytes:
    """A whole pickle of a value."""
    return bytes([0x80, protocol]) + opcodes(value) + pickle.STOP


def opcodes(value: Any) -> bytes:
    """The opcodes that leave a value on the stack."""
    match value:
        case Raw():
            return value.opcodes
        case Global():
            return pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode()
        case Call():
            called = opcodes(value.function) + opcodes(value.arguments) + pickle.REDUCE
            return called if value.state is None else called + opcodes(value.state) + pickle.BUILD
        case Persistent():
            return opcodes(value.identifier) + pickle.BINPERSID
        case None:
            return pickle.NONE
        case bool():
            return pickle.NEWTRUE if value else pickle.NEWFALSE
        case int() if -(1 << 31) <= value < 1 << 31:
            return pickle.BININT + struct.pack("<i", value)
        case int():
            return pickle.LONG1 + pickle.encode_long(value).__len__().to_bytes(1, "little") + pickle.encode_long(value)
        case float():
            return pickle.BINFLOAT + struct.pack(">d", value)
        case str():
            data = value.encode("utf-8", "surrogatepass")
            return pickle.BINUNICODE + struct.pack("<I", len(data)) + data
        case bytes():
            return pickle.BINBYTES + struct.pack("<I", len(value)) + value
        case tuple():
            return pickle.MARK + b"".join(map(opcodes, value)) + pickle.TUPLE
        case list():
            return pickle.EMPTY_LIST + pickle.MARK + b"".join(map(opcodes, value)) + pickle.APPENDS
        case dict():
            items = b"".join(opcodes(part) for item in value.items() for part in item)
            return pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS
    raise TypeError(f"no opcodes are known for {value!r}")
