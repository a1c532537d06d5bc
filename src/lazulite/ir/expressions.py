"""The expressions of the text form: precedence, calls, and types that follow from the operands.

A literal or a free name has no type of its own until it meets an operand, an index, a gate or the
default type.  One pass makes the nodes; nesting is limited, so no text can exhaust the stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from lazulite.base.errors import FormatError
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.calls import Run
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.functions import Derivative
from lazulite.ir.ops import Op
from lazulite.ir.placement import place_of
from lazulite.ir.size import of_form
from lazulite.ir.spelling import LEVELS, PREFIX, REDUCTIONS
from lazulite.ir.tokens import TokenReader
from lazulite.ir.uop import UOp

_DEEPEST = 60
_INFIX: dict[str, Op] = {op.symbol: op for op in LEVELS if op.symbol}
_SWAPPED: dict[str, Op] = {">": ops.LT, ">=": ops.LE}
_CALLS = {o.name: o for o in ops.ELEMENTWISE if o not in (ops.CAST, ops.BITCAST)}


class Literal(NamedTuple):
    """A number without a type."""

    value: Scalar


class Free(NamedTuple):
    """A name that nothing declares, without a type."""

    name: str
    bounds: tuple[int, int] | None


Value = UOp | Literal | Free


class ExpressionParser(TokenReader):
    """Reads tokens from left to right.

    `names` are values, `effects` what `after` may wait for; `default` is the type of what gets none,
    and with `free` unknown names become SCALARs and are entered in `names`.
    """

    def __init__(
        self, tokens: list[str], names: MutableMapping[str, UOp], effects: Mapping[str, UOp], default: DType | None,
        free: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(tokens)
        self.names, self.effects, self.default, self.free = names, effects, default, free
        self.awaited: set[UOp] = set()
        self.depth = 0

    def whole(self) -> Value:
        value = self.expression()
        self.end()
        return value

    # --- types ----------------------------------------------------------------------------------

    def typed(self, value: Value, dtype: DType | None) -> UOp:
        """The value as a node; `dtype` is the type of a literal or free name."""
        if isinstance(value, UOp):
            return value
        if isinstance(value, Literal) and isinstance(value.value, bool):
            return UOp.const(dtypes.bool, value.value)
        if dtype is None:
            raise FormatError("parse", f"the type of {value[0]!r} is not known here", hint="write it as 1:int32")
        if isinstance(value, Free):
            known = self.names.get(value.name)
            if known is None:
                slot = 1 + max([node.arg[0] for node in self.names.values() if node.op is ops.SCALAR], default=-1)
                known = UOp(ops.SCALAR, dtype, (), (slot, *(value.bounds or (None, None))))
                self.names[value.name] = known
            return known
        if isinstance(value.value, float) and not dtype.is_float:
            raise FormatError("parse", f"{value.value!r} is no value of {dtype.name}")
        return UOp.const(dtype, value.value)

    def node(self, value: Value) -> UOp:
        return self.typed(value, self.default)

    def same(self, *values: Value) -> list[UOp]:
        """The operands of an op that takes one type."""
        first = next((v.dtype for v in values if isinstance(v, UOp)), self.default)
        nodes = [self.typed(value, first) for value in values]
        if any(node.dtype is not nodes[0].dtype for node in nodes):
            found = " and ".join(node.dtype.name for node in nodes)
            raise FormatError("parse", f"operands must have one type, got {found}")
        return nodes

    # --- infix ----------------------------------------------------------------------------------

    def expression(self, level: int = 0) -> Value:
        """Infix ops that bind at least as tightly as `level`."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise FormatError("parse", "the expression is nested too deeply", hint="give a part of it a name")
        left = self.prefix()
        while True:
            symbol = self.peek()
            op = _INFIX.get(symbol) or _SWAPPED.get(symbol)
            if op is None or LEVELS[op] < level:
                break
            self.at += 1
            left = self._infix(symbol, op, left, self.expression(LEVELS[op] + 1))
            if LEVELS[op] == 0 and LEVELS.get(_INFIX.get(self.peek(), ops.ADD)) == 0:
                raise FormatError("parse", "comparisons do not chain")
        self.depth -= 1
        return left

    def _infix(self, symbol: str, op: Op, left: Value, right: Value) -> UOp:
        x, y = self.same(left, right)
        if symbol in _SWAPPED:
            x, y = y, x
        if op is ops.SUB and x.dtype is dtypes.index:  # there is no SUB on INDEX
            return x + (-y.arg if y.op is ops.CONST else y * -1)
        return self._apply(op, x, y)

    def _apply(self, op: Op, *src: UOp) -> UOp:
        if src[-1].dtype not in op.accepts:
            raise FormatError("parse", f"{op.name} does not take {src[-1].dtype.name}")
        return UOp.apply(op, *src)

    def prefix(self) -> Value:
        if self.peek() == "-" and self.at + 1 < len(self.tokens):
            following = self.tokens[self.at + 1]
            if following[0].isdigit() or following in ("inf", "nan"):
                self.at += 1
                return self._literal(-1)
        for symbol, op in PREFIX.items():
            if self.accept(symbol):
                self.depth += 1
                if self.depth > _DEEPEST:
                    raise FormatError("parse", "the expression is nested too deeply")
                operand = self.node(self.prefix())
                self.depth -= 1
                return operand * -1 if op is ops.NEG and operand.dtype is dtypes.index else self._apply(op, operand)
        return self.primary()

    # --- primaries ------------------------------------------------------------------------------

    def primary(self) -> Value:
        """A literal, a name, a call or a bracket, with the methods and indices behind it."""
        token = self.peek()
        if self.accept("("):
            value = self.expression()
            self.expect(")")
        elif token[:1].isdigit() or token in ("true", "false", "inf", "nan"):
            return self._literal(1)
        else:
            value = self._name()
        while True:
            if self.accept("."):
                value = self._method(self.node(value))
            elif self.accept("["):
                value = self._load(self.node(value))
            else:
                return value

    def _literal(self, sign: int) -> Value:
        token = self.take()
        bits = self._nan_bits() if token == "nan" else None
        value: Scalar
        if token in ("true", "false"):
            value = token == "true"
        elif token in ("inf", "nan"):
            value = sign * float(token)
        elif re.fullmatch(r"\d+", token):
            value = sign * int(token)
        else:
            value = sign * float(token)
        if not self.accept(":"):
            return Literal(value) if bits is None else self._nan(bits, self.default)
        dtype = self.dtype()
        return self.typed(Literal(value), dtype) if bits is None else self._nan(bits, dtype)

    def _nan_bits(self) -> int | None:
        if not self.accept("("):
            return None
        bits = int(self.take(), 16)
        self.expect(")")
        return bits

    def _nan(self, bits: int, dtype: DType | None) -> UOp:
        if dtype is None or not dtype.is_float:
            raise FormatError("parse", "a nan with its bits needs its type", hint="nan(0x7fc00001):float32")
        return UOp(ops.CONST, dtype, (), bits)

    def _name(self) -> Value:
        name = self.word("a value")
        if self.peek() == "(":
            return self._call(name)
        if name in self.names:
            return self.names[name]
        if not self.free:
            raise FormatError("parse", f"nothing is called {name!r} here")
        return self._free(name)

    def _free(self, name: str) -> Value:
        """A free name, perhaps with `:low..high` and `:type`."""
        bounds, dtype = None, None
        while self.accept(":"):
            if self.peek() == "-" or self.peek().isdigit():
                low = self.integer()
                self.expect("..")
                bounds = (low, self.integer())
            else:
                dtype = self.dtype()
        value = Free(name, bounds)
        return value if dtype is None and bounds is None else self.typed(value, dtype or self.default)

    # --- calls ----------------------------------------------------------------------------------

    def _arguments(self) -> list[Value]:
        values: list[Value] = []
        while not self.accept(")"):
            if values:
                self.expect(",")
            values.append(self.expression())
        return values

    def _call(self, name: str) -> UOp:
        self.expect("(")
        if name == "iota":
            return self._iota()
        if name == "after":
            return self._after()
        if name == "launch":
            return self._launch()
        if name == "function":
            return self._function()
        if name == "mma":
            return self._mma()
        start = self.at
        if name in REDUCTIONS:
            value = self.expression()
            if self.accept("for"):
                return self._reduction(REDUCTIONS[name], self.node(value))
            self.at = start
        values = self._arguments()
        if name == "store":
            return UOp(ops.STORE, dtypes.void, tuple(self.same(*values)))
        if name == "detach" and len(values) == 1:
            source = self.node(values[0])
            return UOp(ops.DETACH, source.dtype, (source,))
        if name == "gather" and len(values) > 1:
            x, *positions = [self.node(value) for value in values]
            return UOp(ops.GATHER, x.dtype, (x, *positions))
        op = _CALLS.get(name)
        if op is None or len(values) != op.operands:
            raise FormatError("parse", f"there is no {name} with {len(values)} operands")
        if op is ops.WHERE:
            return UOp.apply(op, self.typed(values[0], dtypes.bool), *self.same(*values[1:]))
        return self._apply(op, *self.same(*values))

    def _iota(self) -> UOp:
        size = self.size()
        self.expect(")")
        self.expect(":")
        return UOp(ops.IOTA, self.dtype(), (), size)

    def _launch(self) -> UOp:
        try:
            run = Run.from_text(self.take())
        except (ValueError, TypeError) as error:
            raise FormatError("parse", f"a launch begins with the text of its run: {error}") from None
        sources = self.references() if self.accept(",") else []
        self.expect(")")
        if not 0 <= run.result < len(sources):
            raise FormatError("parse", f"a launch gives one of its sources, not source {run.result}")
        return UOp(ops.LAUNCH, sources[run.result].dtype, tuple(sources), run)

    def _function(self) -> UOp:
        try:
            derivative = Derivative.from_text(self.take())
        except (ValueError, TypeError) as error:
            raise FormatError("parse", f"a function begins with the text of its derivative: {error}") from None
        sources = self.references() if self.accept(",") else []
        self.expect(")")
        if not sources:
            raise FormatError("parse", "a function has a value")
        return UOp(ops.FUNCTION, sources[0].dtype, tuple(sources), derivative)

    def _mma(self) -> UOp:
        operands = [self.node(self.expression())]
        while self.accept(","):
            operands.append(self.node(self.expression()))
        self.expect("for")
        ranges = self.references()
        self.expect(")")
        return UOp(ops.MMA, operands[0].dtype, (*operands, *ranges))

    def _reduction(self, op: Op, value: UOp) -> UOp:
        ranges = self.references()
        self.expect(")")
        return UOp(ops.REDUCE, value.dtype, (value, *ranges), (op, ()))

    def _after(self) -> UOp:
        value = self.node(self.expression())
        dependencies = self.references() if self.accept(",") else []
        self.expect(")")
        self.awaited.update(dependencies)
        return UOp(ops.AFTER, value.dtype, (value, *dependencies))

    def references(self) -> list[UOp]:
        """Effects and values, separated by commas."""
        nodes: list[UOp] = []
        while self.peek():
            if self.peek() in self.effects and self.followed_by(",", ")", ""):
                nodes.append(self.effects[self.word("an effect")])
            else:
                nodes.append(self.node(self.expression()))
            if not self.accept(","):
                break
        return nodes

    # --- methods and indices --------------------------------------------------------------------

    def _load(self, memory: UOp) -> UOp:
        outer, self.default = self.default, dtypes.index
        index = self.node(self.expression())
        gate = [self.typed(self.expression(), dtypes.bool)] if self.accept("if") else []
        self.default = outer
        hint = self._hint()
        self.expect("]")
        return UOp(ops.LOAD, memory.dtype, (memory, index, *gate), hint)

    def _hint(self) -> int | str | None:
        """What may be said of an access: how far ahead it also asks for memory, or that it streams."""
        if self.accept("stream"):
            return "stream"
        if not self.accept("ahead"):
            return None
        sign = -1 if self.accept("-") else 1
        return sign * int(self.take())

    def _method(self, value: UOp) -> UOp:
        name = self.word("a method")
        self.expect("(")
        if name in ("cast", "bitcast"):
            dtype = self.dtype()
            self.expect(")")
            return UOp(ops.OPS[name], dtype, (value,))
        if name == "copy":
            device = place_of(self.take()[1:-1])
            self.expect(")")
            return UOp(ops.COPY, value.dtype, (value,), device)
        if name == "write":
            return self._write(value)
        if name in REDUCTIONS:
            return UOp(ops.REDUCE, value.dtype, (value,), (REDUCTIONS[name], self.sizes()))
        op = ops.OPS.get(name)
        if op not in ops.MOVEMENT or op is None:
            raise FormatError("parse", f"there is no method {name!r}")
        return UOp(op, value.dtype, (value,), self._movement(name))

    def _movement(self, name: str) -> Any:
        """The arguments of a movement and the bracket behind them."""
        separator = {"shrink": "..", "pad": "+"}.get(name)
        return self.sizes() if separator is None else self._pairs(separator)

    def size(self) -> int:
        """A number, or in brackets an expression over scalars."""
        if not self.accept("("):
            return self.integer()
        value = self.typed(self.expression(), dtypes.index)
        self.expect(")")
        size: int = of_form(linear(value))
        return size

    def sizes(self) -> tuple[int, ...]:
        """Sizes, and the bracket behind them."""
        values: list[int] = []
        while not self.accept(")"):
            if values:
                self.expect(",")
            values.append(self.size())
        return tuple(values)

    def _pairs(self, separator: str) -> tuple[tuple[int, int], ...]:
        pairs: list[tuple[int, int]] = []
        while not self.accept(")"):
            if pairs:
                self.expect(",")
            first = self.size()
            self.expect(separator)
            pairs.append((first, self.size()))
        return tuple(pairs)

    def _write(self, previous: UOp) -> UOp:
        region: list[tuple[str, Any]] = []
        while (name := self.peek()) in _MOVEMENT_NAMES and self.followed_by("("):
            self.at += 2
            region.append((name, self._movement(name)))
            if not self.accept("."):
                self.expect(",")
                break
        (value,) = self._arguments()
        return UOp(ops.WRITE, previous.dtype, tuple(self.same(previous, value)), tuple(region))


_MOVEMENT_NAMES = frozenset(o.name for o in ops.MOVEMENT)
