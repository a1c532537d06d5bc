"""The tensors of a model, by name."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import pytest

from lazulite import ShapeError, Tensor
from lazulite.nn import Linear
from lazulite.nn.state import get_parameters, get_state_dict, load_state_dict


def test_tensors_are_found_in_everything_that_holds_them() -> None:
    pair = namedtuple("pair", "left right")(Tensor([1.0]), Tensor([2.0]))
    model = SimpleNamespace(layers=[Linear(2, 1), (Tensor([3.0]),)], table={"a": Tensor([4.0])}, pair=pair, other="x")

    assert [
        "layers.0.weight", "layers.0.bias", "layers.1.0", "table.a", "pair.left", "pair.right",
    ] == list(get_state_dict(model))  # fmt: skip
    assert 6 == len(get_parameters(model))
    assert ["net.w"] == list(get_state_dict({"w": Tensor([1.0])}, prefix="net."))


def test_models_that_contain_themselves_are_walked_once() -> None:
    model = SimpleNamespace(w=Tensor([1.0]))
    model.itself = model

    assert ["w"] == list(get_state_dict(model))


def test_values_are_written_into_the_tensors_of_the_model() -> None:
    model, other = Linear(3, 2), Linear(3, 2)
    weight = model.weight
    load_state_dict(model, get_state_dict(other))

    assert weight is model.weight
    assert other.weight.tolist() == model.weight.tolist()
    other.weight.assign(other.weight * 0)
    assert model.weight.numpy().any()


def test_values_are_cast_to_the_type_of_the_tensor() -> None:
    w = Tensor([1.0])
    load_state_dict({"w": w}, {"w": Tensor([2])})

    assert ([2.0], "float32") == (w.tolist(), w.dtype.name)


def test_names_and_shapes_must_fit_and_nothing_is_written_before(capsys: pytest.CaptureFixture[str]) -> None:
    w, v = Tensor([1.0]), Tensor([1.0, 2.0])
    new = Tensor([5.0])
    with pytest.raises(KeyError, match=r"missing \['v'\], unexpected \['u'\]"):
        load_state_dict({"w": w, "v": v}, {"w": new, "u": new})
    with pytest.raises(ShapeError, match=r"load_state_dict: v has shape \(2,\), the value \(1,\)"):
        load_state_dict({"w": w, "v": v}, {"w": new, "v": new})
    assert [1.0] == w.tolist()
    assert 1 == len(load_state_dict({"w": w, "v": v}, {"w": new, "u": new}, strict=False, verbose=True))
    assert [5.0] == w.tolist()
    assert "w (1,) float32" in capsys.readouterr().out
    assert [] == load_state_dict({}, {})
