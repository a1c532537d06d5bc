"""Sizes that vary: `Variable`, a named integer with bounds, and `Size`, a size or position computed from bound ones.

A bound variable is a leaf, an INDEX `SCALAR` with the argument (name, low, high, value); the scheduler numbers
leaves, and its leaves are (slot, low, high).  A `Size` is a linear form over leaves.  Two sizes are equal if they
are for every value of their variables; memory for a size holds its maximum (`most`), so strides are constants.

Invariant: arithmetic keeps the form.  Whoever takes a bare number out of a size (`int`, `range`, a comparison that
the bounds leave open) gets the current value, and `OBSERVERS` are told, since what follows from it holds for this
value alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.size_terms import exact_quotient, product, text_of, value_of
from lazulite.ir.uop import UOp, index, toposort

OBSERVERS: list[Callable[[Size], object]] = []
"""Called with every size whose current value is looked at."""
_bound: list[str] = []
"""The name of the first variable that was bound, so that programs without any pay for none."""

if TYPE_CHECKING:
    _Number = int  # shapes are tuples of either, and a size can do what a number can
else:
    _Number = object  # not a number, as C code reads those without asking


class Size(_Number):
    """A size or position that follows from bound variables.

    >>> n = Variable("n", 1, 10).bind(3)
    >>> n * 2 + 1 - n, n - n, n < 11, int(n + 1), most(n + 1)
    (n + 1 = 4, 0, True, 4, 11)
    """

    __slots__ = ("_key", "form")
    form: Linear
    _key: tuple[int, frozenset[tuple[UOp, int]]] | None

    def __new__(cls, form: Linear) -> Size:
        self = object.__new__(cls)
        self.form, self._key = form, None
        return self

    @property
    def key(self) -> tuple[int, frozenset[tuple[UOp, int]]]:
        """Equal for equal sizes."""
        known = self._key
        if known is None:
            known = self._key = self.form.constant, frozenset(self.form.terms.items())
        return known

    @property
    def is_bound(self) -> bool:
        """Whether the leaves are variables with values."""
        return all(value_of(term) is not None for term in self.form.terms)

    @property
    def value(self) -> int:
        """The current value; of a size over numbered leaves, the maximum."""
        total = self.form.constant
        for term, factor in self.form.terms.items():
            value = value_of(term)
            if value is None:
                return self.form.bounds[1]
            total += factor * value
        return total

    @property
    def node(self) -> UOp:
        """The INDEX expression."""
        total: UOp | None = None
        for term, factor in sorted(self.form.terms.items(), key=lambda item: text_of(item[0])):
            part = term if factor == 1 else term * factor
            total = part if total is None else total + part
        assert total is not None
        return total + self.form.constant if self.form.constant else total

    def __repr__(self) -> str:
        parts = []
        for term, factor in self.form.terms.items():
            name = text_of(term)
            parts.append(name if factor == 1 else f"{factor} * {name}")
        if self.form.constant:
            parts.append(str(self.form.constant))
        return f"{' + '.join(parts)} = {self.value}".replace("+ -", "- ")

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> tuple[object, ...]:
        return Size, (self.form,)

    def __hash__(self) -> int:
        return hash(self.key)

    # --- a bare number ------------------------------------------------------------------------------

    def _observed(self) -> int:
        if self.is_bound:
            for observe in OBSERVERS:
                observe(self)
        return self.value

    def __index__(self) -> int:
        return self._observed()

    def __int__(self) -> int:
        return self._observed()

    def __float__(self) -> float:
        return float(self._observed())

    def __bool__(self) -> bool:
        low, high = self.form.bounds
        return True if low > 0 or high < 0 else self._observed() != 0

    def __truediv__(self, other: Any) -> Any:
        return self._observed() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._observed()

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return pow(self._observed(), other, modulus)

    # --- comparison ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.key == other.key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        low, high = (size_form(self) + size_form(other).scaled(-1)).bounds
        return high < 0 if high < 0 or low >= 0 else bool(self._observed() < _current(other))

    def __le__(self, other: Any) -> bool:
        low, high = (size_form(self) + size_form(other).scaled(-1)).bounds
        return high <= 0 if high <= 0 or low > 0 else bool(self._observed() <= _current(other))

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    # --- arithmetic ---------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return of_form(self.form + size_form(other)) if _is_size(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return of_form(self.form + size_form(other).scaled(-1)) if _is_size(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return of_form(size_form(other) + self.form.scaled(-1)) if _is_size(other) else NotImplemented

    def __neg__(self) -> Any:
        return of_form(self.form.scaled(-1))

    def __mul__(self, other: Any) -> Any:
        if not _is_size(other):
            return NotImplemented
        return of_form(product(self.form, size_form(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if not _is_size(other):
            return NotImplemented
        exact = exact_quotient(self.form, size_form(other))
        if exact is not None:
            return of_form(exact)
        if isinstance(other, Size) or other <= 0:
            return self._observed() // _current(other)
        whole = Linear(0, {t: f // other for t, f in self.form.terms.items() if f % other == 0})
        rest = self.form + whole.scaled(-other)
        if not rest.terms:
            return of_form(whole + Linear(rest.constant // other))
        return of_form(whole + linear(UOp.apply(ops.FLOORDIV, Size(rest).node, index(other))))

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self._observed()

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other if _is_size(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return other % self._observed()

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other


class Variable:
    """An integer from `min` to `max` that a program is compiled for once, whatever its value is.

    `bind` gives it a value; what that returns stands in shapes, slices and `arange`, and in arithmetic there.
    With `multiple_of`, all of its values are multiples of that number.

    >>> from lazulite import Tensor
    >>> n = Variable("n", 1, 4)
    >>> [Tensor([1, 2, 3, 4])[: n.bind(length)].sum().item() for length in (2, 4)]
    [3, 10]
    """

    __slots__ = ("max", "min", "multiple_of", "name")

    def __init__(self, name: str, min: int, max: int, multiple_of: int = 1) -> None:
        if multiple_of < 1 or min < 0 or max < min or min % multiple_of or max % multiple_of:
            raise ShapeError(
                "Variable", f"{name} cannot lie in [{min}, {max}] and be a multiple of {multiple_of}",
                rule="The range is not empty and not negative, and its ends are multiples too.",
            )  # fmt: skip
        self.name, self.min, self.max, self.multiple_of = name, min, max, multiple_of

    def __repr__(self) -> str:
        multiple = "" if self.multiple_of == 1 else f", multiple_of={self.multiple_of}"
        return f"Variable({self.name!r}, {self.min}, {self.max}{multiple})"

    def bind(self, value: int) -> int:
        """This variable with a value; ShapeError for a value outside of its range.

        >>> Variable("n", 1, 10).bind(3)
        n = 3
        """
        try:
            number = operator.index(value)
        except TypeError:
            raise DTypeError("bind", f"{self.name} takes an integer, got {type(value).__name__}") from None
        if not self.min <= number <= self.max or number % self.multiple_of:
            multiples = "" if self.multiple_of == 1 else f" multiples of {self.multiple_of}"
            raise ShapeError("bind", f"{self.name} takes{multiples} in [{self.min}, {self.max}], got {number}")
        if self.min == self.max:
            return number
        if not _bound:
            _bound.append(self.name)
        unit, name = self.multiple_of, self.name if self.multiple_of == 1 else f"({self.name} / {self.multiple_of})"
        arg = (name, self.min // unit, self.max // unit, number // unit)
        return Size(Linear(0, {UOp(ops.SCALAR, dtypes.index, (), arg): unit}))

    def __index__(self) -> NoReturn:
        raise ShapeError(
            "Variable", f"{self.name} in [{self.min}, {self.max}] is not bound to a value",
            hint=f"{self.name}.bind(value) gives what stands in shapes and slices",
        )  # fmt: skip

    def _unbound(self, *_: object) -> NoReturn:
        self.__index__()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = __neg__ = _unbound


def sizes_exist() -> bool:
    """Whether a variable was ever bound."""
    return bool(_bound)


def of_form(form: Linear) -> Any:
    """A size, or a plain number where nothing varies."""
    return Size(form) if form.terms else form.constant


def most(size: int) -> int:
    """The largest value of a size."""
    return size.form.bounds[1] if isinstance(size, Size) else size


def least(size: int) -> int:
    """The smallest value of a size."""
    return size.form.bounds[0] if isinstance(size, Size) else size


def max_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of the memory in which values of a shape lie."""
    return tuple([size.form.bounds[1] if isinstance(size, Size) else size for size in shape])


def room(shape: Sequence[int]) -> int:
    """How many elements the memory for a shape has."""
    return math.prod(max_shape(shape))


def varies(shape: Iterable[int]) -> bool:
    """Whether some size of a shape varies."""
    return any(isinstance(size, Size) for size in shape)


def size_node(size: int) -> UOp:
    """The INDEX expression of a size."""
    return size.node if isinstance(size, Size) else index(size)


def size_form(size: int) -> Linear:
    """The linear form of a size."""
    return size.form if isinstance(size, Size) else Linear(size)


def rebound(arg: Any, leaf_for: Callable[[UOp], UOp]) -> Any:
    """The argument of a node with other leaves in its sizes."""
    if type(arg) is tuple:
        return tuple([rebound(part, leaf_for) for part in arg])
    if not isinstance(arg, Size):
        return arg
    form = arg.form
    if all(term.op is ops.SCALAR for term in form.terms):
        terms = {leaf_for(term): factor for term, factor in form.terms.items()}
        if len(terms) == len(form.terms):
            return Size(Linear(form.constant, terms))
    total: Any = form.constant
    for term, factor in form.terms.items():
        total = total + _rebuilt(term, leaf_for) * factor
    return total


def outline(size: Size, name_of: Callable[[UOp], Hashable]) -> Hashable:
    """What two sizes have in common that differ in leaves with one name; made quickly."""
    return size.form.constant, *[(_outlined(term, name_of), factor) for term, factor in size.form.terms.items()]


def variables_in(arg: Any) -> Iterator[UOp]:
    """The leaves of the sizes in the argument of a node."""
    if type(arg) is tuple:
        for part in arg:
            yield from variables_in(part)
    elif isinstance(arg, Size):
        for node in toposort(*arg.form.terms):
            if node.op is ops.SCALAR:
                yield node


def _outlined(term: UOp, name_of: Callable[[UOp], Hashable]) -> Hashable:
    if term.op is ops.SCALAR:
        return name_of(term)
    return term.op.name, term.arg, *[_outlined(source, name_of) for source in term.src]


def _is_size(value: object) -> bool:
    return isinstance(value, (int, Size))


def _current(value: Any) -> Any:
    return value.value if isinstance(value, Size) else value


def _rebuilt(node: UOp, leaf_for: Callable[[UOp], UOp]) -> Any:
    """The value of a term over other leaves."""
    if node.op is ops.SCALAR:
        return of_form(Linear(0, {leaf_for(node): 1}))
    if node.op is ops.CONST:
        return int(node.arg)
    first, second = [_rebuilt(source, leaf_for) for source in node.src]
    assert node.op.meaning is not None  # it takes sizes as well
    return node.op.meaning(first, second)
