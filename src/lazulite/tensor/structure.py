"""Outlines of nested results: what is around the tensors, as data that compares and can be filled again.

Lists, tuples, named tuples, dictionaries and dataclasses are containers; numbers, text, types, functions and
the like stand for themselves.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from lazulite.engine.marks import mark
from lazulite.ir.dtype import DType
from lazulite.tensor.tensor import Tensor

_PLAIN = (
    bool, int, float, complex, str, bytes, range, Enum, DType, type, FunctionType, BuiltinFunctionType, ModuleType,
)  # fmt: skip


class NoOutlineError(TypeError):
    """A value of a type that cannot be made anew."""


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor, by number."""

    number: int


@dataclass(frozen=True, slots=True)
class Plain:
    """A value without tensors."""

    kind: type
    value: Any = field(compare=False)
    mark: Hashable = field(init=False)
    """What is compared."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mark", mark(self.value))


@dataclass(frozen=True, slots=True)
class Group:
    """A container; `names` are keys or fields."""

    kind: Any
    names: tuple[Any, ...] = field(compare=False)
    items: tuple[Outline, ...]
    marks: Hashable = field(init=False)
    """What is compared of the names."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", mark(self.names))


Outline = Place | Plain | Group


def outline(value: Any, number: Callable[[Tensor], int]) -> Outline:
    """The outline of a value; `number` numbers the tensors in it."""
    kind = type(value)
    if isinstance(value, Tensor):
        return Place(number(value))
    if value is None or isinstance(value, _PLAIN):
        return Plain(kind, value)
    if kind in (dict, OrderedDict):
        return Group(kind, tuple(value), tuple([outline(each, number) for each in value.values()]))
    if kind in (list, tuple) or hasattr(kind, "_make"):
        return Group(kind, (), tuple([outline(each, number) for each in value]))
    if dataclasses.is_dataclass(value):
        names = tuple([each.name for each in dataclasses.fields(value)])
        return Group(kind, names, tuple([outline(getattr(value, name), number) for name in names]))
    raise NoOutlineError(kind.__name__)


def tensors_in(value: Any) -> tuple[Outline, list[Tensor]]:
    """The outline of a value, and its tensors in order; one that occurs twice is there twice."""
    found: list[Tensor] = []

    def number(tensor: Tensor) -> int:
        found.append(tensor)
        return len(found) - 1

    return outline(value, number), found


def filled(form: Outline, tensors: Sequence[Any]) -> Any:
    """A value with this outline around these tensors, or what stands in their places."""
    if isinstance(form, Place):
        return tensors[form.number]
    if isinstance(form, Plain):
        return form.value
    items, kind = [filled(item, tensors) for item in form.items], form.kind
    if kind in (list, tuple):
        return kind(items)
    if kind in (dict, OrderedDict):
        return kind(zip(form.names, items, strict=True))
    if hasattr(kind, "_make"):
        return kind._make(items)
    made = object.__new__(kind)
    for name, item in zip(form.names, items, strict=True):
        object.__setattr__(made, name, item)
    return made
