"""`vmap` equals a loop over the examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazulite import GlobalCounters, Tensor, nn, vmap
from lazulite.base.errors import ArgumentError, AxisError, CaptureError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
P = np.random.default_rng(1).integers(0, 4, (3, 6)).astype(np.int32)


def _written(x: Tensor) -> Tensor:
    x = x + 0
    x[1:3, ::2] = 7.0
    x[0] = x[3] * 2
    x[Tensor([1, 1, 2])] = x[:3] - 1
    return x


FUNCTIONS: dict[str, Any] = {
    "softmax": lambda x, p: x.softmax(),
    "product": lambda x, p: x @ x.T,
    "einsum": lambda x, p: Tensor.einsum("ij,kj->ik", x, x * 2),
    "scans": lambda x, p: x.cumsum(0) + x.cumprod(1) + x.cummax(0)[0],
    "sort": lambda x, p: x.sort(0)[0] * x.argsort(1),
    "long sort": lambda x, p: x.repeat(1, 30).sort(1)[0],
    "pick": lambda x, p: x[p] + x.gather(0, p[:5].reshape(1, 5)),
    "scatter": lambda x, p: Tensor.zeros(4).scatter(0, p, Tensor.ones(6), reduce="add"),
    "write": lambda x, p: _written(x),
    "window": lambda x, p: x.reshape(1, 1, 4, 5).max_pool2d() + x.reshape(1, 1, 4, 5).avg_pool2d(),
    "convolution": lambda x, p: x.reshape(1, 1, 4, 5).conv2d(Tensor(X[:1, :2, :2].copy()).reshape(1, 1, 2, 2)),
    "choice": lambda x, p: (x > 0).where(x, x.mean()),
    "statistics": lambda x, p: x.var(0) + x.std(0) + x.logsumexp(0),
    "loss": lambda x, p: x.cross_entropy(p[:4]),
    "attention": lambda x, p: x.scaled_dot_product_attention(x, x, is_causal=True),
    "attention mask": lambda x, p: x.softmax(1).dropout(0.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_equals_a_loop(name: str) -> None:
    f = FUNCTIONS[name]
    expected = np.stack([f(Tensor(X[i].copy()), Tensor(P[i].copy())).numpy() for i in range(3)])

    np.testing.assert_allclose(vmap(f)(Tensor(X), Tensor(P)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_axes_of_arguments_and_results() -> None:
    x, y = Tensor(X), Tensor(X[0].copy())
    found = vmap(lambda a, b: (a * b, b), in_axes=(1, None), out_axes=(-1, None))(x, Tensor(X[0, 0].copy()))
    assert (3, 5, 4) == found[0].shape
    np.testing.assert_allclose(found[0].numpy(), np.moveaxis(X * X[0, 0], 1, -1), rtol=1e-6)
    assert (5,) == found[1].shape

    nested = vmap(lambda p: p["a"] + p["b"][0], in_axes=({"a": 0, "b": [None]},))({"a": x, "b": [y]})
    np.testing.assert_allclose(nested.numpy(), X + X[0], rtol=1e-6)
    assert (4, 2) == vmap(lambda x, scale: x * scale)(Tensor.ones(4, 2), scale=Tensor.ones(4, 2)).shape
    assert (4, 7) == vmap(lambda x: Tensor.ones(7))(Tensor.ones(4)).shape


def test_one_inside_of_another() -> None:
    outer = vmap(vmap(lambda a, b: a * b, in_axes=(0, None)), in_axes=(None, 0))

    assert [[4.0, 8.0], [5.0, 10.0]] == outer(Tensor([1.0, 2.0]), Tensor([4.0, 5.0])).tolist()


def test_many_examples_are_as_few_kernels_as_one() -> None:
    x = Tensor(X).realize()
    GlobalCounters.reset()
    vmap(lambda x: (x.exp() / x.exp().sum()).sum(0))(x).realize()
    assert 3 >= GlobalCounters.kernel_count


def test_layers_inside_hold_what_all_examples_share() -> None:
    layer = nn.Linear(5, 2)

    np.testing.assert_allclose(vmap(layer)(Tensor(X)).numpy(), layer(Tensor(X)).numpy(), rtol=1e-5, atol=1e-6)


def test_draws_differ_for_each_example_unless_they_are_to_be_the_same() -> None:
    Tensor.manual_seed(3)
    different = vmap(lambda x: Tensor.rand(1000) + x)(Tensor.zeros(3)).numpy()
    same = vmap(lambda x: Tensor.rand(5) + x, randomness="same")(Tensor.zeros(3)).numpy()

    assert 3000 == len(np.unique(different)) or len(np.unique(different)) > 2990
    assert abs(different.mean() - 0.5) < 0.02
    assert (same[0] == same[1]).all() and (same[0] == same[2]).all()
    nested = vmap(vmap(lambda x: Tensor.rand() + x))(Tensor.zeros(20, 20)).numpy()
    assert len(np.unique(nested)) > 395
    Tensor.manual_seed(3)
    assert (different == vmap(lambda x: Tensor.rand(1000) + x)(Tensor.zeros(3)).numpy()).all()


def test_values_of_an_example_cannot_be_looked_at() -> None:
    with pytest.raises(CaptureError, match="is batched by vmap"):
        vmap(lambda x: x if x.item() > 0 else -x)(Tensor([1.0, 2.0]))
    with pytest.raises(CaptureError, match="no elements of its own"):
        vmap(lambda x: (x * 2).realize())(Tensor([1.0, 2.0]))


def test_a_tensor_from_outside_is_not_given_what_depends_on_an_example() -> None:
    outside = Tensor([1.0, 2.0]).realize()

    def writing(x: Tensor) -> Tensor:
        outside.assign(outside + x)
        return x

    with pytest.raises(ArgumentError, match="depends on an example"):
        vmap(writing)(Tensor([1.0, 2.0]))
    assert [1.0, 2.0] == outside.tolist()

    outside.assign(outside * 2)
    with pytest.raises(ArgumentError, match="depends on an example"):
        vmap(writing)(Tensor([1.0, 2.0]))
    assert [2.0, 4.0] == outside.tolist()


def test_mistakes_are_named() -> None:
    x = Tensor(X)
    with pytest.raises(ShapeError, match="different numbers of examples, 3 and 4"):
        vmap(lambda a, b: a + b)(x, Tensor.ones(4))
    with pytest.raises(AxisError, match="rank 0"):
        vmap(lambda a: a)(Tensor(1.0))
    with pytest.raises(AxisError, match="axis 3"):
        vmap(lambda a: a, in_axes=3)(x)
    with pytest.raises(ArgumentError, match="one entry for each of 1 arguments"):
        vmap(lambda a: a, in_axes=(0, 0))(x)
    with pytest.raises(ArgumentError, match="no tensor among the arguments"):
        vmap(lambda a: a, in_axes=None)(x)
    with pytest.raises(ArgumentError, match="out_axes is None"):
        vmap(lambda a: a, out_axes=None)(x)
    with pytest.raises(ArgumentError, match="an axis is an integer"):
        vmap(lambda a: a, in_axes="first")(x)
    with pytest.raises(ArgumentError, match="2 axes are given for 1 parts"):
        vmap(lambda a: a, in_axes=([0, 0],))([x])
    with pytest.raises(ArgumentError, match="'different' or 'same'"):
        vmap(lambda a: a, randomness="error")
