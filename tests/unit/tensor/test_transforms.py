"""Transforms equal those of torch.func, alone and composed, and keep to what a Lazulite program means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazulite import (
    Tensor,
    checkpoint,
    dtypes,
    function,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    value_and_grad,
    vjp,
    vmap,
)
from lazulite.base.errors import ArgumentError, DTypeError, GradientError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
V = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
W = np.random.default_rng(2).normal(size=(4, 4)).astype(np.float32)


def assert_equal(expected: Any, found: Tensor) -> None:
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


# --- against torch.func ----------------------------------------------------------------------------


def _scattered(x: Any, torch: Any) -> Any:
    if torch is None:
        made = Tensor.zeros(5, 4).scatter(0, Tensor([[0, 1, 2, 3]] * 3), x * x, reduce="add")
        return made[Tensor([0, 2, 2])].max(0).sum()
    made = torch.zeros(5, 4).scatter_add(0, torch.tensor([[0, 1, 2, 3]] * 3), x * x)
    return made[torch.tensor([0, 2, 2])].amax(0).sum()


def _convolved(x: Any, torch: Any) -> Any:
    image, kernel = x.reshape(1, 1, 3, 4), V[:2, :2].reshape(1, 1, 2, 2)
    if torch is None:
        return (image.conv2d(Tensor(kernel.copy())).relu() ** 2).sum()
    return (torch.nn.functional.conv2d(image, torch.tensor(kernel)).relu() ** 2).sum()


def _chosen(x: Any, torch: Any) -> Any:
    if torch is None:
        return (x.maximum(0) * (x > 0.3).where(x * x, x)).prod(1).sum()
    return (torch.maximum(x, torch.tensor(0.0)) * torch.where(x > 0.3, x * x, x)).prod(1).sum()


def _chain(x: Any, torch: Any) -> Any:
    weight = Tensor(W) if torch is None else torch.tensor(W)
    return (((x @ weight).tanh().cumsum(1)) * x.exp().sqrt()).sum()


FUNCTIONS = [_scattered, _convolved, _chosen, _chain]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_first_and_second_derivatives(f: Any) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (lambda x: f(x, None)), (lambda x: f(x, torch))
    x, v = torch.tensor(X), torch.tensor(V)

    assert_equal(torch.func.grad(theirs)(x), grad(ours)(Tensor(X)))
    assert_equal(torch.func.jacrev(torch.func.grad(theirs))(x), hessian(ours)(Tensor(X)))
    assert_equal(torch.func.jacrev(torch.func.grad(theirs))(x), jacrev(grad(ours))(Tensor(X)))
    slope = (torch.func.grad(theirs)(x) * v).sum()
    assert_equal(slope, jvp(ours, (Tensor(X),), (Tensor(V),))[1])


ROWS: dict[str, tuple[Any, Any]] = {
    "softmax": (lambda r: r.softmax(), lambda r: r.softmax(-1)),
    "cumprod": (lambda r: r.cumprod(0), lambda r: r.cumprod(0)),
    "sort": (lambda r: r.sort(0)[0] * r, lambda r: r.sort(0)[0] * r),
    "norm": (lambda r: r / (r * r).sum().sqrt(), lambda r: r / (r * r).sum().sqrt()),
}


@pytest.mark.parametrize("name", ROWS)
def test_compositions(name: str) -> None:
    torch = pytest.importorskip("torch")
    func, (ours, theirs) = torch.func, ROWS[name]
    x, v = torch.tensor(X), torch.tensor(V)

    assert_equal(func.vmap(theirs)(x), vmap(ours)(Tensor(X)))
    assert_equal(
        func.vmap(func.grad(lambda r: theirs(r).sin().sum()))(x), vmap(grad(lambda r: ours(r).sin().sum()))(Tensor(X))
    )
    assert_equal(func.jacrev(func.vmap(theirs))(x), jacobian(vmap(ours))(Tensor(X)))
    assert_equal(func.jacrev(func.vmap(theirs))(x), jacfwd(vmap(ours))(Tensor(X)))
    assert_equal(
        func.grad(lambda x: func.jvp(theirs, (x,), (v,))[1].sin().sum())(x),
        grad(lambda x: jvp(ours, (x,), (Tensor(V),))[1].sin().sum())(Tensor(X)),
    )
    assert_equal(func.vmap(func.jacrev(theirs))(x), vmap(jacobian(ours))(Tensor(X)))


def test_vjp_pulls_back_to_every_argument_more_than_once() -> None:
    torch = pytest.importorskip("torch")
    value, pull_back = vjp(lambda x, w: (x @ w, x.sum()), Tensor(X), Tensor(W))
    expected, their_pull_back = torch.func.vjp(lambda x, w: (x @ w, x.sum()), torch.tensor(X), torch.tensor(W))

    for ours, theirs in zip(value, expected, strict=True):
        assert_equal(theirs, ours)
    for weight in (V, V * 2):
        theirs = their_pull_back((torch.tensor(weight), torch.tensor(3.0)))
        for one, other in zip(pull_back((Tensor(weight), Tensor(3.0))), theirs, strict=True):
            assert_equal(other, one)


MATRIX = np.random.default_rng(5).normal(size=(3, 3)) * 0.3 + np.eye(3) * 2


@pytest.mark.parametrize("f", [
    lambda a: a.inv(), lambda a: a.det(), lambda a: (a @ a.T).cholesky(), lambda a: a.qr()[1], lambda a: a.svdvals(),
], ids=["inv", "det", "cholesky", "qr", "svdvals"])  # fmt: skip
def test_factors_of_matrices_in_every_direction(f: Any) -> None:
    """Forward, forward over reverse, and many at once."""
    way, step = V[:, :3].astype(np.float64), 1e-6
    before, behind = Tensor(MATRIX - step * way), Tensor(MATRIX + step * way)

    def loss(a: Tensor) -> Tensor:
        return (f(a) * f(a)).sum()

    slope = (f(behind).numpy() - f(before).numpy()) / (2 * step)
    np.testing.assert_allclose(jvp(f, (Tensor(MATRIX),), (Tensor(way),))[1].numpy(), slope, rtol=1e-4, atol=1e-6)
    slope = (grad(loss)(behind).numpy() - grad(loss)(before).numpy()) / (2 * step)
    found = jvp(grad(loss), (Tensor(MATRIX),), (Tensor(way),))[1]
    np.testing.assert_allclose(found.numpy(), slope, rtol=1e-3, atol=1e-5)
    many = vmap(grad(loss))(Tensor(np.stack([MATRIX, MATRIX.T])))
    np.testing.assert_allclose(many[1].numpy(), grad(loss)(Tensor(MATRIX.T.copy())).numpy(), rtol=1e-8)


# --- forms -----------------------------------------------------------------------------------------


def test_gradients_have_the_form_of_the_arguments() -> None:
    parameters = {"w": Tensor(W), "b": [Tensor(X[0]), (Tensor(X[1]),)]}
    value, (slopes, outer) = value_and_grad(
        lambda p, x: (x @ p["w"] + p["b"][0] * p["b"][1][0]).sum(), argnums=(0, -1)
    )(parameters, Tensor(X))

    assert () == value.shape
    assert ["w", "b"] == list(slopes)
    assert (4, 4) == slopes["w"].shape
    assert np.allclose((3 * X[1]), slopes["b"][0].numpy())
    assert (3, 4) == outer.shape


def test_what_is_beside_the_value_is_handed_through() -> None:
    (value, rest), slope = value_and_grad(lambda x: (x * x, {"twice": x * 2}), has_aux=True)(Tensor(3.0))

    assert (9.0, 6.0, 6.0) == (value.item(), rest["twice"].item(), slope.item())
    assert [6.0] == [grad(lambda x: (x * x, x), has_aux=True)(Tensor(3.0))[0].item()]
    assert 3.0 == vjp(lambda x: (x * x, x), Tensor(3.0), has_aux=True)[2].item()
    assert 3.0 == jvp(lambda x: (x * x, x), (Tensor(3.0),), (Tensor(1.0),), has_aux=True)[2].item()


def test_a_python_float_is_a_tensor_of_rank_0() -> None:
    assert 6.0 == grad(lambda x: x * x)(3.0).item()


def test_derivatives_of_containers_nest_result_then_argument() -> None:
    found = jacobian(lambda p: {"sum": p["a"].sum(), "rows": p["a"] * p["b"]})(
        {"a": Tensor([1.0, 2.0]), "b": Tensor(3.0)}
    )

    assert [1.0, 1.0] == found["sum"]["a"].tolist()
    assert 0.0 == found["sum"]["b"].item()
    assert [[3.0, 0.0], [0.0, 3.0]] == found["rows"]["a"].tolist()
    assert [1.0, 2.0] == found["rows"]["b"].tolist()


# --- what a program means --------------------------------------------------------------------------


def test_what_a_function_holds_is_constant_even_if_it_is_the_argument() -> None:
    x = Tensor([2.0, 3.0])

    assert [2.0, 3.0] == grad(lambda y: (x * y).sum())(x).tolist()
    assert [4.0, 6.0] == grad(lambda y: (y * y).sum())(x).tolist()
    assert [[3.0], [2.0]] == [part.tolist() for part in grad(lambda a, b: (a * b).sum(), (0, 1))(x[:1], x[1:])]
    assert [2.0, 3.0] == grad(lambda a, b: (a * b).sum())(x, x).tolist()


def test_a_function_may_look_at_its_values_and_realize() -> None:
    """A3: a gradient after a realize."""

    def branching(x: Tensor) -> Tensor:
        y = (x * 2).realize()
        return (y * x).sum() if y.sum().item() > 0 and x.max().item() < 9 else (y * x * x).sum()

    assert [4.0, 8.0] == grad(branching)(Tensor([1.0, 2.0])).tolist()
    assert [-12.0, 12.0] != grad(branching)(Tensor([-2.0, 1.0])).tolist()
    assert [24.0, 6.0] == grad(branching)(Tensor([-2.0, 1.0])).tolist()
    assert [[4.0, 0.0], [0.0, 4.0]] == hessian(branching)(Tensor([1.0, 2.0])).tolist()
    assert [4.0, 8.0] == grad(lambda x: branching(x.realize()))(Tensor([1.0, 2.0])).tolist()


def test_writes_of_an_argument_stay_inside_and_follow_program_order() -> None:
    x = Tensor([1.0, 2.0, 3.0])

    def writing(x: Tensor) -> Tensor:
        before = x * 10
        x[:1] = x[1:2] * x[1:2]
        return (x * x).sum() + before.sum()

    assert [10.0, 4 * 8.0 + 4.0 + 10.0, 16.0] == grad(writing)(x).tolist()
    assert [1.0, 2.0, 3.0] == x.tolist()


def test_writes_of_other_tensors_are_done() -> None:
    seen = Tensor([0.0, 0.0]).realize()

    def counting(x: Tensor) -> Tensor:
        seen.assign(seen + x.detach())
        return (x * seen).sum()

    assert [1.0, 2.0] == grad(counting)(Tensor([1.0, 2.0])).tolist()
    assert [1.0, 2.0] == seen.tolist()


def test_a_gradient_passes_through_a_transform() -> None:
    """`gradient` of what a transform gave, and of a kernel written by hand."""
    x = Tensor([2.0, 3.0])

    assert [12.0, 18.0] == grad(lambda x: (x * x * x).sum())(x).sum().gradient(x)[0].tolist()


def test_a_captured_function_inside_is_run_and_one_around_captures() -> None:
    inner = jit(lambda x: (x * x).sum())
    assert [2.0, 4.0] == grad(inner)(Tensor([1.0, 2.0])).tolist()

    outer = jit(grad(lambda y: (y * y * y).sum()))
    assert [[3.0 * n * n] for n in range(5)] == [outer(Tensor([float(n)])).tolist() for n in range(5)]


def test_a_kernel_by_hand_has_the_derivatives_that_it_says() -> None:
    def double(out: Any, x: Any) -> Any:
        from lazulite import UOp

        i = UOp.range(2, 0)
        return out[i].store(x[i] * 2)

    def run(x: Tensor) -> Tensor:
        out = Tensor.zeros(2)
        return out.custom_kernel(x * x, fxn=double, grad_fxn=lambda upstream, call: (None, upstream * 2))[0]

    assert [8.0, 12.0] == grad(lambda x: run(x).sum())(Tensor([2.0, 3.0])).tolist()
    assert [8.0, 0.0] == jvp(run, (Tensor([2.0, 3.0]),), (Tensor([1.0, 0.0]),))[1].tolist()
    assert [[8.0, 18.0], [2.0, 32.0]] == vmap(run)(Tensor([[2.0, 3.0], [1.0, 4.0]])).tolist()
    assert [[8.0, 12.0]] == vmap(grad(lambda x: run(x).sum()))(Tensor([[2.0, 3.0]])).tolist()


def test_everything_at_once() -> None:
    """vmap of a gradient of a checkpoint of a function with a gradient of its own."""
    cube = function(lambda x: x * x * x, grad_fxn=lambda upstream, call: (upstream * call.src[1] * call.src[1] * 3,))
    found = vmap(hessian(lambda x: checkpoint(cube)(x).sum()))(Tensor([[1.0, 2.0]]))

    assert [[[6.0, 0.0], [0.0, 12.0]]] == found.tolist()


def test_half_and_double() -> None:
    assert dtypes.float16 is grad(lambda x: (x * x).sum())(Tensor([1.0], dtype="float16")).dtype
    assert [4.0] == grad(lambda x: (x * x).double().sum())(Tensor([2.0], dtype="float16")).tolist()


# --- mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_named() -> None:
    x = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="one number"):
        grad(lambda x: x)(x)
    with pytest.raises(ShapeError, match="one number"):
        grad(lambda x: 3)(x)
    with pytest.raises(GradientError, match="only floats have derivatives, got int32"):
        grad(lambda x: x.sum())(Tensor([1]))
    with pytest.raises(GradientError, match="gives floats"):
        grad(lambda x: (x > 0).sum())(x)
    with pytest.raises(ArgumentError, match="argnums names argument 1"):
        grad(lambda x: x.sum(), argnums=1)(x)
    with pytest.raises(DTypeError, match="gives a pair"):
        grad(lambda x: x.sum(), has_aux=True)(x)
    with pytest.raises(DTypeError, match="lists, tuples"):
        grad(lambda x: x.sum())(object())
    with pytest.raises(ArgumentError, match="two tuples"):
        jvp(lambda x: x, (x,), ())
    with pytest.raises(ShapeError, match="a tangent of shape"):
        jvp(lambda x: x, (x,), (Tensor([1.0, 2.0, 3.0]),))
    with pytest.raises(ArgumentError, match="a cotangent has the form"):
        vjp(lambda x: x, x)[1]((x, x))
    with pytest.raises(ArgumentError, match="'reverse' or 'forward'"):
        jacobian(lambda x: x, mode="sideways")
