"""Whatever the arguments and the surroundings of a captured function are, calls that are alike are found again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from lazulite import Tensor, jit
from support.capture import captured


@dataclass(frozen=True)
class Frozen:
    value: Any


@dataclass(frozen=True)
class Inner:
    """Stands for a class of the package, whose objects are not walked."""

    table: dict[str, int]


Inner.__module__ = "lazulite.formats.inner"


class Comparing:
    """An object whose comparison gives no answer, or raises."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> Any:
        return self.value == getattr(other, "value", None)

    def __hash__(self) -> int:
        return hash(self.value)


class Mode(Enum):
    ON = MappingProxyType({"a": 1})


class Stateless:
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None  # type: ignore[assignment]


ODD = {
    "a frozen dataclass around a dictionary": Frozen({"a": [1]}),
    "a frozen dataclass around an array": Frozen(np.arange(3.0)),
    "a frozen dataclass of the package": Inner({"a": 1}),
    "an object that compares as its array does": Comparing(np.arange(3.0)),
    "an object that compares as its tensor does": Comparing(Tensor([1.0, 2.0])),
    "a member of an enumeration around a mapping": Mode.ON,
    "an object without state or comparison": Stateless(),
    "a dictionary whose keys are objects": {Frozen(1): 1, Frozen((1, 2)): 2},
    "a set": {"x", "y"},
    "an array": np.arange(3.0),
    "nan": math.nan,
}  # fmt: skip


@pytest.mark.parametrize("how", ["closure", "argument", "attribute"])
@pytest.mark.parametrize("kind", ODD)
def test_any_value_may_be_reached(kind: str, how: str) -> None:
    value = ODD[kind]

    class Model:
        held = value

    def function(x: Tensor, given: Any = None) -> Tensor:
        reached = {"closure": lambda: value, "attribute": lambda: Model.held}.get(how, lambda: given)()
        assert reached is value
        return x + 1

    step, given = jit(function), (value,) if how == "argument" else ()
    calls = [step(Tensor([float(n)]), *given) for n in range(4)]

    assert [1.0, 2.0, 3.0, 4.0] == [call.item() for call in calls]
    assert 1 == captured(step)


@pytest.mark.parametrize("kind", ODD)
def test_any_value_may_be_in_the_result(kind: str) -> None:
    step = jit(lambda x: {"value": ODD[kind], "sum": x + 1})
    for n in range(4):
        result = step(Tensor([float(n)]))
        assert (n + 1, type(ODD[kind])) == (result["sum"].item(), type(result["value"]))


def test_keys_that_are_objects_select_by_what_they_hold() -> None:
    names = jit(lambda x, table: x + sum(key.value for key in table))

    assert [2.0, 2.0, 2.0, 4.0, 4.0] == [names(Tensor([1.0]), {Frozen(n): 0}).item() for n in (1, 1, 1, 3, 3)]


def test_numbers_of_numpy_are_numbers() -> None:
    scaled = jit(lambda x, by: x * by)
    for by in (np.float32(2), np.float32(2), np.float32(2), np.float32(3), np.float64(-0.0), np.int32(5)):
        assert [float(by) * 2] == scaled(Tensor([2.0]), by).tolist()
    assert len(scaled._families) == 3
