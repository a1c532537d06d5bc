"""Left sides of rules: patterns written as ordinary expressions, and the matchers made from them.

Takes: patterns built from `var`, `const`, `each` and operators.  Gives: straight-line Python
functions, one for each order of the operands of commutative ops, which take a node and return the
bound nodes or None.  Invariant: a matcher only compares identities, so it costs well under a
microsecond, and its source can be stepped through in a debugger like any other.
"""

from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.dtype import ALL, DType, Scalar
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp

Matcher = Callable[[UOp], "tuple[UOp, ...] | None"]
ROOT = "root"
"""The name under which a body can ask for the whole matched node."""


@dataclass(frozen=True, eq=False, slots=True)
class Pattern:
    """What a node must look like; None in a field leaves it free.

    `literal` maps each type to the `arg` that a constant of that type must have.
    """

    name: str | None = None
    ops: tuple[Op, ...] | None = None
    src: tuple[Pattern, ...] | None = None
    dtypes: frozenset[DType] | None = None
    literal: dict[DType, int] | None = None

    def __add__(self, other: Operand) -> Pattern:
        return each((ops.ADD,), self, other)

    def __radd__(self, other: Operand) -> Pattern:
        return each((ops.ADD,), other, self)

    def __sub__(self, other: Operand) -> Pattern:
        return each((ops.SUB,), self, other)

    def __rsub__(self, other: Operand) -> Pattern:
        return each((ops.SUB,), other, self)

    def __mul__(self, other: Operand) -> Pattern:
        return each((ops.MUL,), self, other)

    def __rmul__(self, other: Operand) -> Pattern:
        return each((ops.MUL,), other, self)

    def __truediv__(self, other: Operand) -> Pattern:
        return each((ops.DIV,), self, other)

    def __floordiv__(self, other: Operand) -> Pattern:
        return each((ops.FLOORDIV,), self, other)

    def __mod__(self, other: Operand) -> Pattern:
        return each((ops.MOD,), self, other)

    def __neg__(self) -> Pattern:
        return each((ops.NEG,), self)

    def __and__(self, other: Operand) -> Pattern:
        return each((ops.AND,), self, other)

    def __or__(self, other: Operand) -> Pattern:
        return each((ops.OR,), self, other)

    def __xor__(self, other: Operand) -> Pattern:
        return each((ops.XOR,), self, other)

    def __invert__(self) -> Pattern:
        return each((ops.NOT,), self)

    def __lshift__(self, other: Operand) -> Pattern:
        return each((ops.SHL,), self, other)

    def __rshift__(self, other: Operand) -> Pattern:
        return each((ops.SHR,), self, other)

    def __lt__(self, other: Operand) -> Pattern:
        return each((ops.LT,), self, other)

    def __le__(self, other: Operand) -> Pattern:
        return each((ops.LE,), self, other)

    def eq(self, other: Operand) -> Pattern:
        return each((ops.EQ,), self, other)

    def ne(self, other: Operand) -> Pattern:
        return each((ops.NE,), self, other)

    def maximum(self, other: Operand) -> Pattern:
        return each((ops.MAX,), self, other)

    def minimum(self, other: Operand) -> Pattern:
        return each((ops.MIN,), self, other)

    def where(self, yes: Operand, no: Operand) -> Pattern:
        return each((ops.WHERE,), self, yes, no)

    def cast(self) -> Pattern:
        """A CAST of this to any type."""
        return each((ops.CAST,), self)


Operand = Pattern | int | float


def var(name: str, dtypes: frozenset[DType] | None = None) -> Pattern:
    """Any node of these types (of every type if not given); the same name twice is the same node."""
    return Pattern(name, dtypes=dtypes)


def const(name: str, dtypes: frozenset[DType] | None = None) -> Pattern:
    """Any constant of these types."""
    return Pattern(name, (ops.CONST,), (), dtypes)


def any_(op: Op, name: str, dtypes: frozenset[DType] | None = None) -> Pattern:
    """A node of this op with any sources."""
    return Pattern(name, (op,), None, dtypes)


def each(operations: Sequence[Op], *operands: Operand, name: str | None = None) -> Pattern:
    """A node of any of these ops over the operands; a number stands for the constant of that value."""
    return Pattern(name, tuple(operations), tuple([_pattern(operand) for operand in operands]))


def _pattern(operand: Operand) -> Pattern:
    return operand if isinstance(operand, Pattern) else Pattern(None, (ops.CONST,), (), None, _literal(operand))


def _literal(value: Scalar) -> dict[DType, int]:
    """The `arg` of the constant `value` in each type that holds it exactly (-0.0 in floats only)."""
    negative_zero = value == 0 and math.copysign(1.0, value) < 0
    held = [t for t in ALL if t.kind != "void" and t.round(value) == value and (t.is_float or not negative_zero)]
    return {t: int(UOp.const(t, value).arg) for t in held}


def orders(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern with the operands of its commutative ops in every order."""
    if not pattern.src:
        yield pattern
        return
    commutes = pattern.ops is not None and len(pattern.src) == 2 and all(op.commutes for op in pattern.ops)
    for operands in itertools.product(*[list(orders(operand)) for operand in pattern.src]):
        for arranged in (operands, operands[::-1]) if commutes else (operands,):
            yield Pattern(pattern.name, pattern.ops, arranged, pattern.dtypes, pattern.literal)


def names_of(pattern: Pattern) -> set[str]:
    """Every name that the pattern binds, `ROOT` included."""
    found, pending = {ROOT}, [pattern]
    while pending:
        part = pending.pop()
        pending += part.src or ()
        if part.name is not None:
            found.add(part.name)
    return found


def matchers(pattern: Pattern, wanted: Sequence[str], label: str) -> list[tuple[Pattern, Matcher]]:
    """Each distinct order of operands with its function, which returns the nodes bound to the `wanted` names.

    A function relies on `may_match`: it does not look again at the ops of the root and its sources.
    """
    written: dict[str, tuple[Pattern, Matcher]] = {}
    for number, ordered in enumerate(orders(pattern)):
        writer = _Writer()
        writer.write(ordered, "node", 0)
        text = writer.text(wanted)
        key = f"{[operand.ops for operand in ordered.src or ()]}{text}"
        if key not in written:
            written[key] = ordered, _compiled(text, writer.values, f"<matcher {number} of {label}>")
    return list(written.values())


def may_match(pattern: Pattern, root: Op, first: DType, sources: Sequence[Op]) -> bool:
    """Whether a node with this op, the first source's type and the sources' ops may match."""
    if root not in (pattern.ops or ()):
        return False
    if pattern.src is None:
        return True
    if len(pattern.src) != len(sources):
        return False
    if pattern.src and not _may_have_type(pattern.src[0], first):
        return False
    return all(part.ops is None or op in part.ops for part, op in zip(pattern.src, sources, strict=True))


def _may_have_type(pattern: Pattern, dtype: DType) -> bool:
    return (pattern.dtypes is None or dtype in pattern.dtypes) and (pattern.literal is None or dtype in pattern.literal)


def _compiled(text: str, values: dict[str, object], file: str) -> Matcher:
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), values)
    return values["match"]  # type: ignore[return-value]


class _Writer:
    """Writes the tests of one pattern as Python: first all ops, then types, literals and equal names."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.shape_lines: list[str] = []
        self.other_lines: list[str] = []
        self.bound: dict[str, str] = {ROOT: "node"}

    def write(self, pattern: Pattern, here: str, depth: int) -> None:
        if pattern.ops is not None and depth > 1:
            self._test(self.shape_lines, self._op_test(pattern.ops, here))
        if pattern.literal is not None:
            self._test(self.other_lines, f"{self._value(pattern.literal)}.get({here}.dtype) != {here}.arg")
        if pattern.dtypes is not None:
            self._test(self.other_lines, f"{here}.dtype not in {self._value(pattern.dtypes)}")
        if pattern.name is not None:
            known = self.bound.setdefault(pattern.name, here)
            if known != here:
                self._test(self.other_lines, f"{here} is not {known}")
        if pattern.src:
            parts = [f"{here}_{position}" for position in range(len(pattern.src))]
            self.shape_lines.append(f"    {', '.join(parts)}, = {here}.src")
            for part, operand in zip(parts, pattern.src, strict=True):
                self.write(operand, part, depth + 1)

    def text(self, wanted: Sequence[str]) -> str:
        result = "".join([f"{self.bound[name]}, " for name in wanted])
        lines = ["def match(node):", *self.shape_lines, *self.other_lines, f"    return ({result})", ""]
        return "\n".join(lines)

    def _op_test(self, allowed: tuple[Op, ...], here: str) -> str:
        if len(allowed) == 1:
            return f"{here}.op is not {self._value(allowed[0])}"
        return f"{here}.op not in {self._value(allowed)}"

    def _test(self, lines: list[str], refused: str) -> None:
        lines += (f"    if {refused}:", "        return None")

    def _value(self, value: object) -> str:
        """A name for a value that the text refers to; equal texts of one pattern name equal values."""
        for name, known in self.values.items():
            if known is value:
                return name
        name = f"v{len(self.values)}" if not isinstance(value, Op) else value.name.upper()
        self.values[name] = value
        return name
