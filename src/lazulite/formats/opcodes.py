"""Pickles read as data: an interpreter of the opcodes that builds plain values only.

A pickle is a program for a small stack machine.  `interpret` runs it without ever calling or importing
what it names: a global is looked up in a table that the caller gives, and what is not there is refused by
name.  Out come numbers, texts, bytes, lists, tuples, dictionaries and sets, and what the functions of
the table make of their arguments.  The opcodes themselves are taken apart by the standard library's
`pickletools`, which holds every length against the data.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import IO, Any

from lazulite.base.errors import FormatError

MOST_OPCODES = 20_000_000
_DEEPEST_KEY = 4


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
    machine, place = _Machine(table, persistent), stream.tell()
    try:
        for count, (opcode, argument, position) in enumerate(pickletools.genops(stream)):
            place = position or 0
            if opcode.name == "STOP":
                return machine.take(1)[0]
            if count > MOST_OPCODES:
                raise RefusedError(f"it has more than {MOST_OPCODES} opcodes", place)
            machine.step(opcode.name, argument)
    except RefusedError as refused:
        raise RefusedError(refused.reason, place) from None
    except FormatError:  # of a function of the table, about another part of the file
        raise
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise RefusedError(f"it is not a pickle of plain values: {error}", place) from None
    raise RefusedError("it ends without its last opcode", place)


class _Mark:
    """The place on the stack from which an opcode takes its arguments."""


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self, table: Mapping[str, Any], persistent: Callable[[Any], Any] | None) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.table, self.persistent = table, persistent

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
        place = max(at for at, value in enumerate(self.stack) if type(value) is _Mark)
        taken = self.stack[place + 1 :]
        del self.stack[place:]
        return taken

    # --- containers -----------------------------------------------------------------------------

    def take(self, count: int) -> list[Any]:
        """The last values of the stack, taken off."""
        taken = self.stack[-count:]
        if len(taken) < count or any(type(value) is _Mark for value in taken):
            raise RefusedError(f"the stack holds fewer than the {count} values that are needed", 0)
        del self.stack[-count:]
        return taken

    def extend(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise RefusedError(f"{type(self.stack[-1]).__name__} is appended to, which is no list", 0)
        self.stack[-1].extend(values)

    def update(self, flat: list[Any]) -> None:
        if type(self.stack[-1]) is not dict:
            raise RefusedError(f"{type(self.stack[-1]).__name__} gets items, which is no dictionary", 0)
        self.stack[-1].update(_pairs(flat))

    def add(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not set:
            raise RefusedError(f"{type(self.stack[-1]).__name__} gets members, which is no set", 0)
        self.stack[-1].update(map(_key, values))

    # --- memo -------------------------------------------------------------------------------------

    def remember(self, number: Any) -> None:
        self.memo[int(number)] = self.stack[-1]

    def recall(self, number: Any) -> None:
        self.stack.append(self.memo[int(number)])

    # --- what a pickle of objects would need --------------------------------------------------------

    def look_up(self, dotted: str) -> None:
        if dotted not in self.table:
            raise RefusedError(f"it names {dotted}, which is not read: only plain values and tensors are", 0)
        self.stack.append(self.table[dotted])

    def look_up_parts(self) -> None:
        module, name = self.take(2)
        if type(name) is not str or type(module) is not str:
            raise RefusedError("a global has a module and a name", 0)
        self.look_up(f"{module}.{name}")

    def call(self) -> None:
        function, arguments = self.take(2)
        if type(function) is not Builder or type(arguments) is not tuple:
            raise RefusedError(f"it calls {type(function).__name__}, which is not read", 0)
        self.stack.append(function.build(*arguments))

    def set_state(self) -> None:
        """Attributes beside the items of a dictionary (torch keeps versions there) have no meaning here."""
        self.take(1)
        if type(self.stack[-1]) is not dict:
            raise RefusedError(f"it sets attributes of {type(self.stack[-1]).__name__}", 0)

    def resolve(self, identifier: Any) -> None:
        if self.persistent is None:
            raise RefusedError("it refers to something outside of it", 0)
        self.stack.append(self.persistent(identifier))


def _pairs(flat: list[Any]) -> list[tuple[Any, Any]]:
    return [(_key(key), value) for key, value in zip(flat[::2], flat[1::2], strict=True)]


def _key(value: Any, depth: int = 0) -> Any:
    """The value, if it can be looked up: hashing nested tuples recurses, so they may not be deep."""
    if type(value) in (tuple, frozenset):
        if depth == _DEEPEST_KEY:
            raise RefusedError("a key is nested too deeply", 0)
        for part in value:
            _key(part, depth + 1)
    elif value is not None and type(value) not in (str, bytes, int, float, bool):
        raise RefusedError(f"a key is a {type(value).__name__}", 0)
    return value


_LITERALS = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8".split()
)
"""Opcodes whose argument is the value."""
_MAKERS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_LIST": list, "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple, "EMPTY_SET": set, "MARK": _Mark,
}  # fmt: skip
"""Opcodes without an argument and what they put on the stack."""
_STEPS: dict[str, Callable[[_Machine, Any], Any]] = {
    "POP": lambda m, _: m.stack.pop(),
    "POP_MARK": lambda m, _: m.marked(),
    "DUP": lambda m, _: m.stack.extend(m.take(1) * 2),
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.take(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.take(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.take(3))),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.marked())),
    "LIST": lambda m, _: m.stack.append(m.marked()),
    "DICT": lambda m, _: m.stack.append(dict(_pairs(m.marked()))),
    "FROZENSET": lambda m, _: m.stack.append(frozenset(map(_key, m.marked()))),
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
