"""Pickles read as data: an interpreter of the opcodes that builds plain values only.

A pickle is a program for a small stack machine.  `interpret` runs it without ever calling or importing
what it names: a global is looked up in a table that the caller gives, and what is not there is refused by
name.  Out come numbers, texts, bytes, lists, tuples, dictionaries and sets, and what the functions of
the table make of their arguments.  The opcodes themselves are taken apart by the standard library's
`pickletools`, which holds every length against the data.  What a short pickle could blow up is bounded:
keys, which hashing walks, are small, and functions are given no more in all than the pickle is long.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import IO, Any

from lazulite.base.errors import FormatError

MOST_OPCODES = 2_000_000
_MOST_PARTS = 64
"""Values in a tuple that is a key, those of its tuples included."""
_WIDEST_KEY = 64
"""Bits of an integer that is a key: of longer ones very many can have one hash."""
_LEAST_GIVEN = 1000
_LONGEST_REASON = 200


class Builder:
    """A global that may be called: what the opcodes call becomes what `build` makes of the arguments."""

    def __init__(self, build: Callable[..., Any]) -> None:
        self.build = build


class RefusedError(Exception):
    """Why a pickle is not read, and the offset of the opcode in it."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason, self.offset = reason, offset


def interpret(stream: IO[bytes], table: Mapping[str, Any], persistent: Callable[[Any], Any] | None = None) -> Any:
    """The value of the pickle that begins at the stream's place, which is then after it.

    `table` gives the globals by their dotted names: a `Builder`, or a value that stands for the global.
    RefusedError where the pickle is broken or not plain.

    >>> import io, pickle
    >>> interpret(io.BytesIO(pickle.dumps({"a": [1, 2.5]})), {})
    {'a': [1, 2.5]}
    """
    machine = _Machine(table, persistent, stream.tell())
    try:
        for count, (opcode, argument, position) in enumerate(pickletools.genops(stream)):
            machine.place = position or 0
            if opcode.name == "STOP":
                return machine.take(1)[0]
            if count > MOST_OPCODES:
                raise RefusedError(f"it has more than {MOST_OPCODES} opcodes", 0)
            machine.step(opcode.name, argument)
    except RefusedError as refused:
        raise RefusedError(refused.reason, machine.place) from None
    except FormatError:  # of a function of the table, about another part of the file
        raise
    except _BROKEN as error:
        reason = f"it is not a pickle of plain values: {error}"
        raise RefusedError(reason[:_LONGEST_REASON], machine.place) from None
    raise RefusedError("it ends without its last opcode", machine.place)


_BROKEN = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, RecursionError, Warning)
"""What running a broken pickle raises; a warning (of a text with odd escapes) where the program makes them errors."""


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self, table: Mapping[str, Any], persistent: Callable[[Any], Any] | None, begin: int) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        """Places on the stack: opcodes take their arguments from the last one on, and never reach below it."""
        self.memo: dict[int, Any] = {}
        self.table, self.persistent = table, persistent
        self.begin = self.place = begin
        self.given = 0

    def step(self, name: str, argument: Any) -> None:
        """Run one opcode."""
        if name in _LITERALS:
            self.stack.append(argument)
        elif name in _MAKERS:
            self.stack.append(_MAKERS[name]())
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME"):
            raise RefusedError(f"the opcode {name} is not needed for plain values", 0)

    def marked(self) -> list[Any]:
        """What stands above the last mark; both are taken off."""
        place = self.marks.pop()
        taken = self.stack[place:]
        del self.stack[place:]
        return taken

    def take(self, count: int) -> list[Any]:
        """The last values of the stack, taken off."""
        place = len(self.stack) - count
        if place < (self.marks[-1] if self.marks else 0):
            raise RefusedError(f"the stack holds fewer than the {count} values that are needed", 0)
        taken = self.stack[place:]
        del self.stack[place:]
        return taken

    def top(self) -> Any:
        """The last value of the stack, left there."""
        (value,) = self.take(1)
        self.stack.append(value)
        return value

    def pop(self) -> None:
        """Take off the last value, or the mark if nothing is above it."""
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.take(1)

    # --- containers -----------------------------------------------------------------------------

    def extend(self, values: list[Any]) -> None:
        target = self.top()
        if type(target) is not list:
            raise RefusedError(f"{type(target).__name__} is appended to, which is no list", 0)
        target.extend(values)

    def update(self, flat: list[Any]) -> None:
        target = self.top()
        if type(target) is not dict:
            raise RefusedError(f"{type(target).__name__} gets items, which is no dictionary", 0)
        target.update(_pairs(flat))

    def add(self, values: list[Any]) -> None:
        target = self.top()
        if type(target) is not set:
            raise RefusedError(f"{type(target).__name__} gets members, which is no set", 0)
        target.update(map(key, values))

    # --- memo -------------------------------------------------------------------------------------

    def remember(self, number: Any) -> None:
        self.memo[int(number)] = self.top()

    def recall(self, number: Any) -> None:
        self.stack.append(self.memo[int(number)])

    # --- what a pickle of objects would need --------------------------------------------------------

    def look_up(self, dotted: str) -> None:
        if dotted not in self.table:
            raise RefusedError(f"it names {dotted!r:.120}, which is not read: only plain values and tensors are", 0)
        self.stack.append(self.table[dotted])

    def look_up_parts(self) -> None:
        module, name = self.take(2)
        if type(name) is not str or type(module) is not str:
            raise RefusedError("a global has a module and a name", 0)
        self.look_up(f"{module}.{name}")

    def call(self) -> None:
        function, arguments = self.take(2)
        if type(function) is not Builder or type(arguments) is not tuple:
            raise RefusedError(f"it calls a value of type {type(function).__name__}, which is not read", 0)
        self.given += sum(len(part) for part in arguments if hasattr(part, "__len__"))
        if self.given > self.place - self.begin + _LEAST_GIVEN:
            raise RefusedError("its functions are given more than it is long", 0)
        self.stack.append(function.build(*arguments))

    def set_state(self) -> None:
        """Attributes beside the items of a dictionary (torch keeps versions there) have no meaning here."""
        self.take(1)
        if type(self.top()) is not dict:
            raise RefusedError(f"it sets attributes of {type(self.top()).__name__}", 0)

    def resolve(self, identifier: Any) -> None:
        if self.persistent is None:
            raise RefusedError("it refers to something outside of it", 0)
        self.stack.append(self.persistent(identifier))


def _pairs(flat: list[Any]) -> list[tuple[Any, Any]]:
    return [(key(name), value) for name, value in zip(flat[::2], flat[1::2], strict=True)]


def key(value: Any) -> Any:
    """The value, if it can be looked up: hashing walks all of a tuple, so it may hold only a few values."""
    pending, seen = [value], 0
    while pending:
        part, seen = pending.pop(), seen + 1
        if type(part) in (tuple, frozenset):
            if seen + len(pending) + len(part) > _MOST_PARTS:
                raise RefusedError(f"a key holds more than {_MOST_PARTS} values", 0)
            pending += part
        elif type(part) is int:
            if part.bit_length() > _WIDEST_KEY:
                raise RefusedError(f"a key is an integer of {part.bit_length()} bits", 0)
        elif part is not None and type(part) not in (str, bytes, float, bool):
            raise RefusedError(f"a key is a {type(part).__name__}", 0)
    return value


_LITERALS = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8".split()
)
"""Opcodes whose argument is the value."""
_MAKERS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_LIST": list, "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple, "EMPTY_SET": set,
}  # fmt: skip
"""Opcodes without an argument and what they put on the stack."""
_STEPS: dict[str, Callable[[_Machine, Any], Any]] = {
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "POP": lambda m, _: m.pop(),
    "POP_MARK": lambda m, _: m.marked(),
    "DUP": lambda m, _: m.stack.extend(m.take(1) * 2),
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.take(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.take(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.take(3))),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.marked())),
    "LIST": lambda m, _: m.stack.append(m.marked()),
    "DICT": lambda m, _: m.stack.append(dict(_pairs(m.marked()))),
    "FROZENSET": lambda m, _: m.stack.append(frozenset(map(key, m.marked()))),
    "APPEND": lambda m, _: m.extend(m.take(1)),
    "APPENDS": lambda m, _: m.extend(m.marked()),
    "SETITEM": lambda m, _: m.update(m.take(2)),
    "SETITEMS": lambda m, _: m.update(m.marked()),
    "ADDITEMS": lambda m, _: m.add(m.marked()),
    "PUT": _Machine.remember,
    "BINPUT": _Machine.remember,
    "LONG_BINPUT": _Machine.remember,
    "MEMOIZE": lambda m, _: m.remember(len(m.memo)),
    "GET": _Machine.recall,
    "BINGET": _Machine.recall,
    "LONG_BINGET": _Machine.recall,
    "GLOBAL": lambda m, argument: m.look_up(argument.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda m, _: m.look_up_parts(),
    "REDUCE": lambda m, _: m.call(),
    "BUILD": lambda m, _: m.set_state(),
    "PERSID": _Machine.resolve,
    "BINPERSID": lambda m, _: m.resolve(*m.take(1)),
}
"""Opcodes that work on the stack."""
