"""The optional base of models: names, training, printing."""

from __future__ import annotations

import pytest

from lazulite import Tensor, dtypes, nn


class Model(nn.Module):
    def __init__(self) -> None:
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def test_names_are_those_of_torch() -> None:
    names = list(Model().state_dict())

    assert ["body.0.weight", "body.0.bias"] == names[:2]
    assert {"body.1.running_mean", "head.weight"} <= set(names)


def test_what_is_kept_is_not_learned() -> None:
    model = Model()
    learned = [name for name, _ in model.named_parameters()]

    assert "body.1.running_mean" not in learned
    assert "body.1.running_mean" in dict(model.named_buffers())
    assert 6 == len(model.parameters())


def test_train_and_eval_decide_inside_of_the_call() -> None:
    model = Model()

    assert not Tensor.training()
    assert 0.0 in model.train().body(Tensor.ones(64, 3)).tolist()[0]
    model(Tensor.ones(8, 3))
    with Tensor.train():
        first, second = [model.eval()(Tensor.ones(2, 3)).tolist() for _ in range(2)]
    assert first == second


def test_a_state_goes_from_one_model_to_another() -> None:
    one, two = Model(), Model()
    two.load_state_dict(one.state_dict())

    assert one.head.weight.tolist() == two.head.weight.tolist()
    with pytest.raises(KeyError, match="unexpected"):
        two.load_state_dict(one.state_dict() | {"more": Tensor([1.0])})


def test_all_floats_become_another_type() -> None:
    model = Model().to(dtypes.float64)

    assert {"float64"} == {p.dtype.name for p in model.parameters()}


def test_it_prints_as_a_tree_and_a_table() -> None:
    model = Model()

    assert "(body): Sequential(\n    (0): " in repr(model)
    assert "ReLU(inplace=False)" in repr(model)
    assert "head.weight" in model.summary()


def test_a_function_reaches_every_part() -> None:
    model, seen = Model(), list[str]()
    model.apply(lambda part: seen.append(type(part).__name__))

    assert "Model" == seen[-1]
    assert {"Linear", "ReLU", "Sequential"} <= set(seen)


def test_without_forward_it_is_not_called() -> None:
    with pytest.raises(NotImplementedError, match="defines no forward"):
        nn.Module()(Tensor([1.0]))
