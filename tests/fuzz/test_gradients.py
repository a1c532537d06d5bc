"""Gradients of random programs equal finite differences, and torch's where torch is there.

The programs are those of `support.tensor_programs`, in float64, writes included: a program that writes in
place has the gradients of its out-of-place form.  FUZZ_EXAMPLES=n runs n programs of each kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from lazulite import Context, Tensor
from lazulite.ir.dtype import dtypes
from support.tensor_programs import Program, follow, programs

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "24"))
STEP = 2.0**-15

SMOOTH = ["neg", "add", "sub", "mul", "scalar", "sin", "tanh", "sum", "mean"]
KINKED = ["abs", "relu", "max", "min", "amax", "amin"]
MOVEMENT = ["reshape", "permute", "flip", "slice", "pad", "expand", "cat"]
KINDS = {
    "elementwise": [*SMOOTH, *KINKED, "div"],
    "movement": [*SMOOTH, *MOVEMENT, *MOVEMENT],
    "rows": [*SMOOTH, "permute", "reshape", "softmax", "layernorm", "matmul", "matmul"],
    "writes": [*SMOOTH, *MOVEMENT, "relu", "clone", "write", "write", "write", "write", "write"],
}


def fuzzed(test: Callable[[str, Program], None]) -> Callable[[str], None]:
    """The test on random programs of each kind."""

    @pytest.mark.parametrize("kind", KINDS)
    def run(kind: str) -> None:
        @settings(max_examples=EXAMPLES, deadline=None, derandomize="FUZZ_EXAMPLES" not in os.environ, database=None,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(programs(KINDS[kind], [dtypes.float64]))
        def check(program: Program) -> None:
            assume(all(np.isfinite(value.array).all() for value in [*program.leaves, *program.values]))
            with Context(CACHE=0):
                test(kind, program)

        check()

    run.__doc__ = test.__doc__
    return run


# --- what is differentiated --------------------------------------------------------------------


def _leaves(program: Program) -> list[Any]:
    """The contents of the leaves; a program that writes changes copies of them."""
    return [np.array(leaf.array) for leaf in program.leaves]


def _weights(program: Program) -> list[Any]:
    numbers = np.random.default_rng(1)
    return [numbers.normal(0, 1, program.values[output].shape) for output in program.outputs]


def _loss(program: Program, leaves: Sequence[Tensor]) -> Tensor:
    """A number that depends on every element of every output and, if only a little, of every leaf."""
    outputs = follow(program, [leaf.clone() for leaf in leaves])
    parts = [(output * Tensor(w)).sum() for output, w in zip(outputs, _weights(program), strict=True)]
    parts += [leaf.sum() * 0.5 for leaf in leaves]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _gradients(program: Program) -> list[Any]:
    leaves = [Tensor(array) for array in _leaves(program)]
    found = _loss(program, leaves).gradient(*leaves)
    return [gradient.numpy() for gradient in found]


# --- finite differences ------------------------------------------------------------------------


@fuzzed
def test_gradients_equal_finite_differences(kind: str, program: Program) -> None:
    """A3."""
    leaves, numbers = _leaves(program), np.random.default_rng(2)
    gradients = _gradients(program)
    for direction in range(3):
        ways = [numbers.normal(0, 1, leaf.shape) for leaf in leaves]
        claimed = sum(float(np.sum(g * way)) for g, way in zip(gradients, ways, strict=True))
        coarse, fine = [_slope(program, leaves, ways, h) for h in (STEP, STEP / 2)]
        scale = 1 + abs(claimed) + sum(float(np.abs(g * way).sum()) for g, way in zip(gradients, ways, strict=True))
        doubt = abs(coarse - fine)
        if not np.isfinite(doubt) or doubt > 1e-4 * scale:  # a kink or a pole is near
            continue
        assert abs(claimed - fine) <= 1e-6 * scale + 4 * doubt, f"direction {direction}: {claimed} is not {fine}"


def _slope(program: Program, leaves: Sequence[Any], ways: Sequence[Any], step: float) -> float:
    def loss(reach: float) -> float:
        shifted = [Tensor(np.asarray(x + reach * way)) for x, way in zip(leaves, ways, strict=True)]
        return float(_loss(program, shifted).item())

    return (loss(step) - loss(-step)) / (2 * step)


# --- torch -------------------------------------------------------------------------------------


@fuzzed
def test_gradients_equal_those_of_torch(kind: str, program: Program) -> None:
    """Ties of a maximum share the gradient there as here."""
    torch = pytest.importorskip("torch")
    leaves = [torch.tensor(array, requires_grad=True) for array in _leaves(program)]
    tensors = [leaf.clone() for leaf in leaves]
    for step in program.steps:
        operands = [tensors[o] for o in step.operands]
        if step.action == "write":
            tensors[step.operands[0]] = _written_in_torch(*operands, *step.arg)
        else:
            tensors.append(_in_torch(torch, step.action, operands, step.arg))
    outputs = [tensors[o] for o in program.outputs]
    loss = sum((o * torch.tensor(w)).sum() for o, w in zip(outputs, _weights(program), strict=True))
    expected = torch.autograd.grad(loss + sum(leaf.sum() * 0.5 for leaf in leaves), leaves)
    for theirs, ours in zip(expected, _gradients(program), strict=True):
        right = theirs.numpy()
        if np.isfinite(right).all():
            np.testing.assert_allclose(ours, right, rtol=1e-9, atol=1e-9 * (1 + np.abs(right).max(initial=0)))


def _places(shape: Sequence[int], parts: Sequence[slice]) -> Any:
    return np.ix_(*[np.arange(size)[part].copy() for size, part in zip(shape, parts, strict=True)])


def _written_in_torch(x: Any, y: Any, parts: Sequence[slice], sign: str) -> Any:
    """The write as a new value, since torch's views and saved operands see writes."""
    at = _places(x.shape, parts)
    place, result = x[at], x.clone()
    try:
        fits = np.broadcast_shapes(tuple(y.shape), tuple(place.shape)) == tuple(place.shape)
    except ValueError:
        fits = False
    result[at] = place - place if not fits else y if sign == "=" else place + y
    return result


def _in_torch(torch: Any, action: str, operands: list[Any], arg: Any) -> Any:
    x, y = operands[0], operands[-1]
    table: dict[str, Callable[[], Any]] = {
        "neg": lambda: -x, "abs": x.abs, "relu": lambda: torch.relu(x), "sin": lambda: torch.sin(x),
        "tanh": lambda: torch.tanh(x), "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y,
        "div": lambda: x / y, "max": lambda: torch.maximum(x, y), "min": lambda: torch.minimum(x, y),
        "scalar": lambda: _with_number(torch, x, *arg), "reshape": lambda: x.reshape(arg),
        "permute": lambda: x.permute(arg), "flip": lambda: x.flip(arg), "slice": lambda: x[_places(x.shape, arg)],
        "pad": lambda: torch.nn.functional.pad(x, [size for pair in arg[::-1] for size in pair]),
        "expand": lambda: x.expand(arg), "cat": lambda: torch.cat([x, y], arg), "clone": x.clone,
        "sum": lambda: _along(torch.sum, x, arg), "mean": lambda: _along(torch.mean, x, arg),
        "amax": lambda: _along(torch.amax, x, arg), "amin": lambda: _along(torch.amin, x, arg),
        "softmax": lambda: torch.softmax(x, -1), "matmul": lambda: x @ y,
        "layernorm": lambda: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    }  # fmt: skip
    return table[action]()


def _with_number(torch: Any, x: Any, sign: str, number: float) -> Any:
    if sign == "max":
        return torch.maximum(x, torch.tensor(number, dtype=x.dtype))
    return {"+": x + number, "*": x * number, "-": x - number, "r-": number - x}[sign]


def _along(function: Callable[..., Any], x: Any, arg: tuple[Any, bool]) -> Any:
    axes, keep = arg
    return function(x, tuple(range(x.dim())) if axes is None else axes, keepdim=keep)


# --- in place and out of place -----------------------------------------------------------------


@settings(
    max_examples=max(EXAMPLES // 4, 1), deadline=None, derandomize="FUZZ_EXAMPLES" not in os.environ, database=None
)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5), st.sampled_from("=+*")), min_size=1, max_size=4))
@example([(0, 5, "*"), (1, 3, "="), (0, 2, "+")])
def test_writes_have_the_gradients_of_their_out_of_place_form(writes: list[tuple[int, int, str]]) -> None:
    """A3: the same writes spelled as a choice between old and new elements."""
    x, w = Tensor(np.linspace(-1, 2, 5)), Tensor(np.linspace(1, 3, 5))
    one, two = x.clone(), x * 1
    for begin, length, sign in writes:
        end = min(begin + length, 5)
        old, fresh = one[begin:end], one[begin:end].sin()
        one[begin:end] = fresh if sign == "=" else old + fresh if sign == "+" else old * fresh
        part = two[begin:end]
        new = part.sin() if sign == "=" else part + part.sin() if sign == "+" else part * part.sin()
        two = two[:begin].cat(new, two[end:])
    ours, theirs = [(value * w).sum().gradient(x)[0].numpy() for value in (one, two)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
