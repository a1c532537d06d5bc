"""No argument, however strange, makes a public method end in an exception that says nothing to a user."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from lazulite import ArgumentError, DTypeError, LazuliteError, StageError, Tensor, fft, linalg, vmap
from lazulite.nn import functional

OPERATORS = ["__add__", "__getitem__", "__matmul__", "__pow__", "__lshift__", "__lt__", "__floordiv__", "__and__"]
PUBLIC = [n for n in dir(Tensor) if not n.startswith("_") and callable(getattr(Tensor, n))] + OPERATORS
FUNCTIONS = [
    (space, name)
    for space in (functional, fft, linalg)
    for name, found in vars(space).items()
    if inspect.isfunction(found) and not name.startswith("_") and found.__module__.startswith(space.__name__)
]
EXPECTED = (TypeError, ValueError, IndexError, OverflowError, LazuliteError)


class Odd:
    """Something that nobody expects."""


def nonsense() -> list[Any]:
    return [None, "x", 1.5, -7, 10**30, (1, "a"), [], {"a": 1}, Odd(), b"ab", float("nan"), slice(2), 1j, (None,),
            Tensor([1.0, 2.0]), Tensor([[1, 2], [3, 4]]), (1, 2, 3, 4, 5), range(3), lambda: 1]  # fmt: skip


def owners() -> list[Tensor]:
    """Tensors of shapes and types that a method may not have been thought for."""
    return [Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor(2.5), Tensor(3), Tensor([]), Tensor.zeros(0, 3), Tensor([1, 2]),
            Tensor([True]), Tensor.ones(1, 2, 4, 4), Tensor([1.0], dtype="float16")]  # fmt: skip


def calls(function: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of the wrong kind: in front, twice, behind a right one, and for each parameter by name."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    for value in nonsense():
        yield from (((value,), {}), ((value, value), {}), ((Tensor([1.0, 2.0]), value), {}))
        for parameter in parameters:
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
                yield (), {n: Tensor([1.0, 2.0]) for n in needed if n != parameter.name} | {parameter.name: value}


def names_the_method(error: Exception, name: str) -> bool:
    return isinstance(error, LazuliteError) or name.strip("_") in str(error)


@pytest.mark.parametrize("name", PUBLIC)
def test_arguments_that_make_no_sense_are_refused_in_words(name: str) -> None:
    for number, (positional, named) in enumerate(calls(getattr(Tensor, name))):
        owner = owners()[number % len(owners())]
        try:
            getattr(owner, name)(*positional, **named)
        except EXPECTED as error:
            assert names_the_method(error, name) and not isinstance(error, StageError), (positional, named, str(error))


@pytest.mark.parametrize(("space", "name"), FUNCTIONS, ids=lambda each: getattr(each, "__name__", each))
def test_tensors_that_a_function_is_not_made_for_are_refused_by_its_name(space: Any, name: str) -> None:
    for first in owners():
        for others in ((), *[(owner,) for owner in owners()], (2, "x"), (Tensor([1.0]), Tensor([0]))):
            try:
                getattr(space, name)(first, *others)
            except LazuliteError as error:
                assert name == error.function and not isinstance(error, StageError), (first, others, str(error))
            except OverflowError as error:
                assert name in str(error)


def test_the_fault_bears_the_name_of_the_method_that_was_called_not_of_one_that_it_uses() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0])

    def write() -> None:
        x[7] = 1

    for wrong, name in (
        (lambda: functional.mse_loss(x, y), "mse_loss"), (lambda: x.softmin(3), "softmin"), (lambda: x.add_(y), "add_"),
        (lambda: x + y, "add"), (write, "setitem"), (lambda: Tensor("x"), "Tensor"), (lambda: x.view(3), "view"),
        (lambda: vmap(lambda row: row.softmin(3))(y), "softmin"),
    ):  # fmt: skip
        with pytest.raises(LazuliteError) as caught:
            wrong()
        assert name == caught.value.function, str(caught.value)


def test_the_argument_that_does_not_fit_is_named_with_what_it_should_be() -> None:
    with pytest.raises(DTypeError, match=r"^chunk: chunks is an integer, got str 'x'") as caught:
        Tensor([1, 2]).chunk("x")  # type: ignore[arg-type]
    assert "Try: chunk(chunks, dim=0)" in str(caught.value)
    assert isinstance(caught.value.__cause__, TypeError), "what Python said is not lost"


def test_a_value_of_the_right_type_that_makes_no_sense_is_an_argument_error() -> None:
    with pytest.raises(ArgumentError, match=r"^arange: cannot work with start=float nan"):
        Tensor.arange(float("nan"))


def test_an_exception_that_no_argument_explains_passes_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handles: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("lazulite.tensor.tensor.realize", fail)
    with pytest.raises(KeyError, match="a fault of ours"):
        Tensor([1.0]).realize()


def test_a_guarded_method_still_looks_like_itself() -> None:
    assert "dim" in inspect.signature(Tensor.softmax).parameters
    assert Tensor.softmax.__doc__ and "softmax" == Tensor.softmax.__name__
    made = Tensor([1.0]).relu()
    assert made.origin is not None and "relu" == made.origin.made_by
