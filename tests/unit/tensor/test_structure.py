"""Outlines compare, and are filled with other tensors."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest

from lazulite import Tensor
from lazulite.tensor.structure import NoOutlineError, filled, outline

Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Record:
    x: Tensor
    n: float


def numbered(value):
    """The outline of a value with its tensors in order."""
    tensors = []
    form = outline(value, lambda tensor: tensors.append(tensor) or len(tensors) - 1)
    return form, tensors


def nested(a, b, n=0.5):
    return {"pair": Pair(a, [b, (n, None)]), "ordered": OrderedDict(r=Record(a, n)), "text": "t"}


def test_an_outline_is_filled_with_other_tensors():
    form, tensors = numbered(nested(Tensor([1]), Tensor([2])))
    others = [Tensor([n]) for n in range(len(tensors))]
    assert repr(nested(others[0], others[1]) | {"ordered": OrderedDict(r=Record(others[2], 0.5))}) == repr(
        filled(form, others)
    )


def test_outlines_of_the_same_form_are_equal_and_others_are_not():
    a, b = Tensor([1]), Tensor([2])
    assert numbered(nested(a, b))[0] == numbered(nested(b, a))[0]
    assert numbered(nested(a, b))[0] != numbered(nested(a, b, n=0.25))[0]
    assert numbered(0.0)[0] != numbered(-0.0)[0]
    assert numbered(1)[0] != numbered(True)[0]
    assert numbered(float("nan"))[0] == numbered(float("nan"))[0]


def test_what_cannot_be_made_anew_is_refused():
    with pytest.raises(NoOutlineError, match="object"):
        numbered([object()])
