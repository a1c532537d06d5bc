"""Reads the text form: `parse` a program, `parse_expression` one expression with free names.

Both give nodes as they are written; nothing is simplified or renumbered.  Declarations number
themselves: `p2`, `n2`, `r2`, `s2` take the number in their name, any other name the place of its line.
Errors are `FormatError`s with the line.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, MutableMapping
from typing import Any

from lazulite.base.errors import FormatError
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, by_name, dtypes
from lazulite.ir.dtype import names as dtype_names
from lazulite.ir.expressions import ExpressionParser
from lazulite.ir.placement import place_of
from lazulite.ir.spelling import DEFAULT_DEVICES
from lazulite.ir.text import LANGUAGES, is_effect
from lazulite.ir.tokens import tokenize
from lazulite.ir.uop import UOp


def parse(text: str) -> UOp:
    """The graph that a text in the form of `to_text` describes.

    >>> parse("return iota(3):int32 + 1").src[1].value
    1
    """
    return _ProgramParser().program(text)


def parse_expression(text: str, dtype: DType, names: MutableMapping[str, UOp] | None = None) -> UOp:
    """One expression; names that are not in `names` become SCALARs of the type and are entered there.

    `x:0..15` gives a free name bounds, `y:float32` another type.

    >>> parse_expression("(x + 1) * 2", dtypes.int32).dtype
    dtypes.int32
    >>> parse_expression("(x:0..15) // 4", dtypes.index).bounds
    (0, 3)
    """
    parser = ExpressionParser(tokenize(text), names if names is not None else {}, {}, dtype, free=True)
    value = parser.whole()
    return parser.typed(value, dtype)


class _Loop:
    """An open loop: its range, what its block has gathered, and the names of its states."""

    def __init__(self, range_: UOp | None) -> None:
        self.range = range_
        self.states: list[str] = []
        self.carries: dict[str, UOp] = {}
        self.yields: dict[str, UOp] = {}
        self.effects: list[UOp] = []
        self.listed: list[UOp] | None = None


class _ProgramParser:
    """Statement by statement; loops close where the indentation returns."""

    def __init__(self) -> None:
        self.names: dict[str, UOp] = {}
        self.effects: dict[str, UOp] = {}
        self.awaited: set[UOp] = set()
        self.open = [_Loop(None)]
        self.indents = [0]
        self.order: list[UOp] | None = None
        self.device = ""
        self.declared = {"slot": 0, "scratch": 0, "range": 0}
        self.result: UOp | None = None
        self.info: KernelInfo | None = None
        self.range: tuple[str, UOp] | None = None

    def program(self, text: str) -> UOp:
        for number, line in enumerate(textwrap.dedent(text).splitlines(), 1):
            content = line.split("#")[0].rstrip()
            if content.strip():
                try:
                    self._indent(len(content) - len(content.lstrip()))
                    self._statement(content.strip())
                except FormatError as error:
                    raise FormatError("parse", error.message, field=f"line {number}: {content.strip()}") from None
        self._close_to(0)
        outermost = self.open[0]
        if self.order is not None:
            return UOp(ops.LINEAR, dtypes.void, tuple(self.order))
        if self.result is not None:
            return self.result
        return UOp.sink(*[e for e in outermost.effects if e not in self.awaited], arg=self.info)

    # --- blocks ---------------------------------------------------------------------------------

    def _indent(self, indent: int) -> None:
        if indent > self.indents[-1]:
            if self.range is None:
                raise FormatError("parse", "only the lines of a loop are indented")
            self.indents.append(indent)
            self.open.append(_Loop(self.range[1]))
            self._list(self.range[1])
        else:
            self._close_to(indent)
        self.range = None

    def _close_to(self, indent: int) -> None:
        while indent < self.indents[-1]:
            self.indents.pop()
            self._close()
        if indent != self.indents[-1]:
            raise FormatError("parse", "the indentation fits no open loop")

    def _close(self) -> None:
        """Make the FOR; from here on its state names mean the final values."""
        loop = self.open.pop()
        assert loop.range is not None
        missing = [name for name in loop.states if name not in loop.yields]
        if missing:
            raise FormatError("parse", f"the loop ends without a line 'next {missing[0]} = ..'")
        effects = loop.listed if loop.listed is not None else [e for e in loop.effects if e not in self.awaited]
        yields = [loop.yields[name] for name in loop.states]
        node = UOp(ops.FOR, dtypes.void, (loop.range, *yields, *effects), len(yields))
        self._list(node)
        if is_effect(node):
            self.open[-1].effects.append(node)
        for index, name in enumerate(loop.states):
            self.names[name] = UOp(ops.FINAL, yields[index].dtype, (node,), index)
        for name, known in self.names.items():
            if known is loop.range:
                self.effects[name] = node

    def _list(self, node: UOp) -> None:
        if self.order is not None:
            self.order.append(node)

    # --- statements -----------------------------------------------------------------------------

    def _statement(self, text: str) -> None:
        words = text.split(None, 1)
        rest = words[1] if len(words) > 1 else ""
        if words[0].upper() in LANGUAGES and rest.isidentifier() >= bool(rest):
            self.device = DEFAULT_DEVICES.get(words[0].upper(), "")
            self.order = [] if words[0].upper() == "LINEAR" else None
            self.info = KernelInfo(rest) if rest else None
        elif re.match(r"\w+\s*=(?!=)", text):
            name, value = text.split("=", 1)
            self._assign(name.strip(), value)
        elif words[0] in _STATEMENTS and not rest.startswith("["):
            _STATEMENTS[words[0]](self, rest)
        else:
            self._store(text)

    def _expressions(self, text: str) -> ExpressionParser:
        return ExpressionParser(tokenize(text), self.names, self.effects, None)

    def _expression(self, text: str, dtype: DType | None = None) -> UOp:
        parser = self._expressions(text)
        value = parser.typed(parser.whole(), dtype)
        self.awaited |= parser.awaited
        return value

    def _assign(self, name: str, text: str) -> None:
        node = self._expression(text)
        self.names[name] = node
        self._list(node)

    def _store(self, text: str) -> None:
        parser = self._expressions(text)
        target = parser.node(parser.primary())
        parser.expect("=")
        if target.op is not ops.LOAD:
            raise FormatError("parse", "the left side of a store must be memory[index]")
        value = parser.typed(parser.expression(), target.dtype)
        label = parser.word("a label") if parser.accept("as") else None
        parser.end()
        self.awaited |= parser.awaited
        memory, index, *gate = target.src
        node = UOp(ops.STORE, dtypes.void, (memory, index, value, *gate), target.arg)
        self.open[-1].effects.append(node)
        self._list(node)
        if label:
            self.effects[label] = node

    # --- declarations ---------------------------------------------------------------------------

    def _number(self, name: str, letter: str, kind: str) -> int:
        place = self.declared[kind]
        self.declared[kind] += 1
        return int(name[1:]) if re.fullmatch(letter + r"\d+", name) else place

    def _param(self, text: str) -> None:
        name, dtype, shape, rest = _typed_name(text, self.names)
        place = re.fullmatch(r"on\s+(['\"])(.*)\1", rest)
        if shape is None or (rest and not place):
            raise FormatError("parse", "expected: param NAME TYPE[SIZES] on 'DEVICE'")
        arg = (self._number(name, "p", "slot"), shape, place_of(place[2]) if place else self.device)
        self.names[name] = UOp(ops.PARAM, dtype, (), arg)

    def _scalar(self, text: str) -> None:
        name, dtype, shape, rest = _typed_name(text)
        bounds = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", rest)
        if shape is not None or (rest and not bounds):
            raise FormatError("parse", "expected: scalar NAME TYPE LOW..HIGH")
        low, high = (int(bounds[1]), int(bounds[2])) if bounds else (None, None)
        self.names[name] = UOp(ops.SCALAR, dtype, (), (self._number(name, "n", "slot"), low, high))

    def _scratch(self, text: str) -> None:
        name, dtype, shape, rest = _typed_name(text)
        align = re.fullmatch(r"align\s+(\d+)", rest)
        if shape is None or len(shape) != 1 or not align:
            raise FormatError("parse", "expected: scratch NAME TYPE[SIZE] align BYTES")
        arg = (self._number(name, "s", "scratch"), shape[0], int(align[1]))
        self.names[name] = UOp(ops.SCRATCH, dtype, (), arg)

    def _range(self, kind: str, text: str) -> None:
        match = re.fullmatch(r"(\w+)\s+in\s+0\.\.(.+)", text)
        if not match:
            raise FormatError("parse", f"expected: {kind} NAME in 0..EXTENT")
        extent = self._expression(match[2], dtypes.index)
        order = (self._number(match[1], "r", "range"),)
        node = UOp(ops.RANGE, dtypes.index, (extent,), (order, kind))
        self.names[match[1]] = node
        self.range = (match[1], node)

    # --- loops and results ----------------------------------------------------------------------

    def _state(self, text: str) -> None:
        name, _, first = (part.strip() for part in text.partition("="))
        loop = self.open[-1]
        if loop.range is None:
            raise FormatError("parse", "a state belongs to a loop")
        if first:
            node = self._expression(first)
            carry = UOp(ops.CARRY, node.dtype, (loop.range, node), len(loop.states))
            self.names[name] = loop.carries[name] = carry
            self._list(carry)
        loop.states.append(name)

    def _next(self, text: str) -> None:
        name, _, value = (part.strip() for part in text.partition("="))
        loop = self.open[-1]
        if name not in loop.states:
            raise FormatError("parse", f"the innermost loop has no state {name!r}")
        carry = loop.carries.get(name)
        loop.yields[name] = self._expression(value, carry.dtype if carry is not None else None)

    def _references(self, text: str) -> list[UOp]:
        parser = self._expressions(text)
        nodes = parser.references()
        parser.end()
        self.awaited |= parser.awaited
        return nodes

    def _effects(self, text: str) -> None:
        self.open[-1].listed = self._references(text)

    def _return(self, text: str) -> None:
        nodes = self._references(text.removesuffix(","))
        alone = len(nodes) == 1 and not text.endswith(",")
        self.result = nodes[0] if alone else UOp(ops.SINK, dtypes.void, tuple(nodes))


_STATEMENTS: dict[str, Callable[[Any, str], None]] = {
    "param": _ProgramParser._param,
    "scalar": _ProgramParser._scalar,
    "scratch": _ProgramParser._scratch,
    **{kind: lambda self, text, kind=kind: self._range(kind, text) for kind in ops.RANGE_KINDS},  # type: ignore[misc]
    "state": _ProgramParser._state,
    "next": _ProgramParser._next,
    "effects": _ProgramParser._effects,
    "return": _ProgramParser._return,
}


def _typed_name(
    text: str, names: MutableMapping[str, UOp] | None = None
) -> tuple[str, DType, tuple[int, ...] | None, str]:
    """`NAME TYPE[SIZES] rest`, with None for the sizes where there are no brackets; they may speak of these names."""
    match = re.fullmatch(r"([A-Za-z_]\w*)\s+(\w+)(?:\[([^\]]*)\])?\s*(.*)", text)
    if not match or match[2] not in dtype_names():
        raise FormatError("parse", "expected a name and a type")
    shape = None if match[3] is None else ExpressionParser(tokenize(match[3] + ")"), names or {}, {}, None).sizes()
    return match[1], by_name(match[2]), shape, match[4]
