"""Names that follow from others, and how the families of methods go together."""

from __future__ import annotations

from collections import Counter

import pytest

from lazulite import DTypeError, Tensor
from lazulite.tensor.base import Base
from lazulite.tensor.spellings import IN_PLACE, OTHER_NAMES


def test_no_two_families_define_one_private_method():
    families = [cls for cls in Tensor.__mro__ if cls not in (Tensor, Base, object)]
    private = Counter(name for cls in families for name in vars(cls) if name.startswith("_") and name[1] != "_")
    assert [name for name, count in private.items() if count > 1 and not hasattr(Base, name)] == []


def test_every_name_that_follows_is_there_and_documented():
    names = [f"{name}_" for name in IN_PLACE] + [other for others in OTHER_NAMES.values() for other in others.split()]
    assert [name for name in names if not getattr(Tensor, name).__doc__] == []


def test_a_form_in_place_writes_the_tensor_and_what_it_is_a_view_of():
    x = Tensor([1.0, 2.0, 3.0])
    before = x * 1
    assert x[1:].add_(1) is not x
    assert x.tolist() == [1.0, 3.0, 4.0]
    assert before.tolist() == [1.0, 2.0, 3.0]


def test_a_form_in_place_keeps_the_type():
    assert Tensor([1.5, 2.5]).gt_(2).tolist() == [0.0, 1.0]
    with pytest.raises(DTypeError, match="div_: the dtype stays int32, the result is float32"):
        Tensor([1, 2]).div_(2)


def test_a_form_that_reshapes_makes_the_tensor_stand_for_its_view():
    x = Tensor([[1, 2]])
    assert x.t_() is x
    assert x.shape == (2, 1)
