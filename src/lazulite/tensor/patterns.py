"""Products and rearrangements written as patterns of axis names: `einsum` and `rearrange`."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from typing import Any, Self

from lazulite.base.errors import FormatError, ShapeError
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import DType
from lazulite.ir.uop import UOp
from lazulite.tensor.base import DTypeLike, expanded
from lazulite.tensor.diagonals import DiagonalMethods
from lazulite.tensor.products import ProductMethods, product_dtype, wide_product
from lazulite.tensor.reduce import reduced

Label = str | int
"""An axis: a letter, or for an axis of an ellipsis its place counted from the end."""


class PatternMethods(ProductMethods, DiagonalMethods):
    """Patterns."""

    __slots__ = ()

    @classmethod
    def einsum(cls, formula: Any, *operands: Any, dtype: DTypeLike | None = None) -> Self:
        """The sum of products that a formula like "ij,jk->ik" names.

        Axes of one letter have one size (or 1) and meet; those that are not in the result are summed; a letter
        twice in one operand is its diagonal (B089).  "..." stands for any further axes, which broadcast (B091).
        Without "->" the result has the letters that occur once, in alphabetical order.  Several operands are
        multiplied from left to right.  Axes may be numbers instead, from 0 to 51, in a list behind each operand, with
        `...` for further axes: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

        >>> Tensor.einsum("ij,jk->ik", Tensor([[1, 2]]), Tensor([[3], [4]])).tolist()
        [[11]]
        """
        if not isinstance(formula, str):
            formula, operands = _lettered((formula, *operands))
        given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
        inputs, output = _parsed(formula, [len(x.shape) for x in given])
        result = product_dtype(types.promote(*[x.dtype for x in given]), "einsum", dtype)
        terms = [_Term.of(x, labels, wide_product(result)) for x, labels in zip(given, inputs, strict=True)]
        sizes = _sizes(formula, given, terms)
        wanted = [set(output).union(*[term.labels for term in terms[n + 1 :]]) for n in range(len(terms))]
        for n, term in enumerate(terms):
            others = set(output).union(*[other.labels for other in terms[:n] + terms[n + 1 :]])
            terms[n] = term.summed([label for label in term.labels if label not in others])
        first, *rest = terms
        for term, keep in zip(rest, wanted[1:], strict=True):
            first = first.times(term, sizes, keep)
        return given[0]._derived(first.aligned(output, sizes).cast(result))  # type: ignore[no-any-return]

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """The axes named, split, joined and reordered: "b (h w) c -> b c h w" with the size of `h` or `w` given.

        "..." stands for further axes, 1 for a new or dropped axis of size 1.

        >>> Tensor([[1, 2, 3, 4]]).rearrange("a (b c) -> b (a c)", b=2).tolist()
        [[1, 2], [3, 4]]
        """
        left, right = _sides("rearrange", formula, self.shape)
        known = dict(sizes)
        for group, size in zip(left, self.shape, strict=True):
            _measure(formula, group, size, known)
        names = [name for group in left for name in group]
        flat = [name for group in right for name in group]
        if sorted(names) != sorted(flat) or len(set(names)) < len(names):
            raise FormatError("rearrange", f"both sides of {formula!r} must name the same axes, each once")
        split = self.reshape([known[name] for name in names])
        ordered = split.permute([names.index(name) for name in flat])
        return ordered.reshape([math.prod(known[name] for name in group) for group in right])


class _Term:
    """A value whose axes have names."""

    def __init__(self, node: UOp, labels: list[Label]) -> None:
        self.node, self.labels = node, labels

    @classmethod
    def of(cls, x: Any, labels: list[Label], dtype: DType) -> _Term:
        """An operand; a name twice is a diagonal."""
        labels = list(labels)
        while repeated := [label for label in labels if labels.count(label) > 1]:
            first = labels.index(repeated[0])
            second = labels.index(repeated[0], first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError("einsum", f"the axes {repeated[0]!r} of {x.shape} differ", about={"operand": x})
            x = x.diagonal(0, first, second)
            labels = [label for n, label in enumerate(labels) if n not in (first, second)] + [repeated[0]]
        return cls(x.uop.cast(dtype), labels)

    def summed(self, labels: Iterable[Label]) -> _Term:
        """The sum over axes, which go."""
        axes = tuple([self.labels.index(label) for label in labels])
        if not axes:
            return self
        node = reduced(ops.ADD, self.node, axes)
        left = [n for n in range(len(self.labels)) if n not in axes]
        node = UOp(ops.RESHAPE, node.dtype, (node,), tuple([node.shape[n] for n in left]))
        return _Term(node, [self.labels[n] for n in left])

    def aligned(self, labels: Sequence[Label], sizes: dict[Label, int]) -> UOp:
        """The value with exactly these axes, repeated along those that it lacks."""
        order = tuple([self.labels.index(label) for label in labels if label in self.labels])
        node = UOp(ops.PERMUTE, self.node.dtype, (self.node,), order)
        own = dict(zip(self.labels, self.node.shape, strict=True))
        node = UOp(ops.RESHAPE, node.dtype, (node,), tuple([own.get(label, 1) for label in labels]))
        return expanded(node, tuple([sizes[label] for label in labels]))

    def times(self, other: _Term, sizes: dict[Label, int], keep: set[Label]) -> _Term:
        """The product, summed over the axes that are not to be kept."""
        union = list(dict.fromkeys([*self.labels, *other.labels]))
        kept = [label for label in union if label in keep]
        gone = [label for label in union if label not in keep]
        node = self.aligned(kept + gone, sizes) * other.aligned(kept + gone, sizes)
        return _Term(node, kept + gone).summed(gone)


def _parsed(formula: str, ranks: Sequence[int]) -> tuple[list[list[Label]], list[Label]]:
    """The names of the axes of each operand and of the result."""
    inputs, arrow, output = formula.replace(" ", "").partition("->")
    texts = inputs.split(",")
    if len(texts) != len(ranks):
        raise FormatError("einsum", f"{formula!r} names {len(texts)} operands, got {len(ranks)}")
    named = [_labels(formula, text, rank) for text, rank in zip(texts, ranks, strict=True)]
    flat = [label for labels in named for label in labels]
    spread: list[Label] = sorted({label for label in flat if isinstance(label, int)})
    if not arrow:
        return named, [*spread, *sorted(name for name in set(flat) if isinstance(name, str) and flat.count(name) == 1)]
    before, dots, after = output.partition("...")
    labels: list[Label] = [*before, *(spread if dots else []), *after]
    if len(set(labels)) < len(labels) or not set(labels) <= set(flat):
        raise FormatError("einsum", f"the result in {formula!r} must name axes of the operands, each once")
    return named, labels


def _lettered(parts: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Operands that are followed by lists of numbers, as a formula and the operands."""
    operands, lists = parts[: len(parts) // 2 * 2 : 2], parts[1::2]
    texts = [_letters(numbers) for numbers in (*lists, *parts[len(operands) * 2 :])]
    formula = ",".join(texts[: len(operands)])
    return (formula if len(parts) % 2 == 0 else f"{formula}->{texts[-1]}"), operands


def _letters(numbers: Any) -> str:
    fits = isinstance(numbers, list | tuple) and all(n is ... or (isinstance(n, int) and 0 <= n < 52) for n in numbers)
    if not fits:
        raise FormatError("einsum", f"axes are numbers from 0 to 51 or ..., got {numbers!r}")
    return "".join(["..." if number is ... else string.ascii_letters[number] for number in numbers])


def _labels(formula: str, text: str, rank: int) -> list[Label]:
    before, dots, after = text.partition("...")
    further = rank - len(before) - len(after)
    if further < 0 or (further and not dots) or (not (before + after).isalpha() and before + after):
        raise FormatError("einsum", f"{text!r} in {formula!r} does not name the axes of an operand of rank {rank}")
    return [*before, *range(-further, 0), *after]


def _sizes(formula: str, operands: Sequence[Any], terms: Sequence[_Term]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for term in terms:
        for label, size in zip(term.labels, term.node.shape, strict=True):
            if size not in (1, sizes.setdefault(label, size)) and sizes[label] != 1:
                raise ShapeError(
                    "einsum", f"the axes {label!r} of {formula!r} have the sizes {sizes[label]} and {size}",
                    about={f"operand {n}": x for n, x in enumerate(operands, 1)},
                )  # fmt: skip
            if sizes[label] == 1:
                sizes[label] = size
    return sizes


# --- rearrange -----------------------------------------------------------------------------------


def _sides(function: str, formula: str, shape: tuple[int, ...]) -> tuple[list[list[str]], list[list[str]]]:
    """The groups of names on both sides, with names of their own for the axes of an ellipsis."""
    left, arrow, right = formula.partition("->")
    sides = [_groups(function, formula, side) for side in (left, right)]
    further = len(shape) - sum(group != ["..."] for group in sides[0])
    if not arrow or further < 0 or (further and ["..."] not in sides[0]):
        raise FormatError(function, f"{formula!r} does not fit a tensor of shape {shape}")
    dots = [[f"axis {n}"] for n in range(further)]
    spread = [[g for group in side for g in (dots if group == ["..."] else [group])] for side in sides]
    return spread[0], spread[1]


def _groups(function: str, formula: str, side: str) -> list[list[str]]:
    groups: list[list[str]] = []
    inside = False
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word in "()":
            if inside == (word == "("):
                raise FormatError(function, f"the brackets of {formula!r} do not match")
            inside = word == "("
            if inside:
                groups.append([])
        elif word == "1":
            groups += [] if inside else [[]]
        elif inside:
            groups[-1].append(word)
        else:
            groups.append([word])
    if inside:
        raise FormatError(function, f"the brackets of {formula!r} do not match")
    return groups


def _measure(formula: str, group: Sequence[str], size: int, known: dict[str, int]) -> None:
    """Find the size of the one name of a group that is not known yet."""
    unknown = [name for name in group if name not in known]
    rest = math.prod(known[name] for name in group if name in known)
    if len(unknown) == 1 and rest and size % rest == 0:
        known[unknown[0]] = size // rest
    elif unknown or rest != size:
        raise ShapeError("rearrange", f"an axis of size {size} does not split into {tuple(group)} of {formula!r}")
