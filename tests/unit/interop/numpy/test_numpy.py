"""What `tests/surface` does not compare: mistakes, what is shared, and that gradients pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lazulite import DTypeError, Tensor, grad
from lazulite.interop import numpy as lnp


def test_functions_take_what_numpy_takes_and_give_tensors() -> None:
    for value in ([1.0, 4.0], (1.0, 4.0), np.array([1.0, 4.0]), Tensor([1.0, 4.0])):
        assert [1.0, 2.0] == lnp.sqrt(value).tolist()
    assert (math.pi, None, lnp.float32) == (lnp.pi, lnp.newaxis, Tensor([1.0]).dtype)


@pytest.mark.parametrize("f", [
    lambda x: lnp.interp(x, [0.0, 1.0, 3.0], [0.0, 2.0, 2.5]).sum(), lambda x: lnp.convolve(x, [1.0, 2.0]).sum(),
    lambda x: lnp.trapezoid(x * x), lambda x: lnp.pad(x, 2, mode="reflect").sum(), lambda x: lnp.percentile(x * x, 30),
    lambda x: lnp.polyval([1.0, 2.0, 3.0], x).sum(), lambda x: lnp.gradient(x * x).sum(), lambda x: lnp.nanvar(x * x),
])  # fmt: skip
def test_gradients_pass(f: Any) -> None:
    x, step = np.array([0.3, 1.4, 2.2]), 1e-4
    slopes = [(f(Tensor(x + step * way)).item() - f(Tensor(x - step * way)).item()) / (2 * step) for way in np.eye(3)]

    assert grad(f)(Tensor(x)).tolist() == pytest.approx(slopes, rel=1e-3, abs=1e-3)


def test_lines_are_functions_of_vectors_at_once() -> None:
    found = lnp.apply_along_axis(lambda row: row.sort(0)[0], 1, [[3, 1, 2], [6, 5, 4]])

    assert [[1, 2, 3], [4, 5, 6]] == found.tolist()


def test_mistakes_are_named() -> None:
    wrong: list[tuple[Any, str]] = [
        (lambda: lnp.split([1, 2, 3], 2), "does not divide"), (lambda: lnp.squeeze([1, 2], 0), "size 1"),
        (lambda: lnp.pad([1], 1, mode="sideways"), "no mode"),
        (lambda: lnp.histogram([1.0], bins="auto"), "not chosen"),
        (lambda: lnp.convolve([1.0], [1.0], "half"), "modes are"),
        (lambda: lnp.gradient([1.0, 2.0], edge_order=3), "edge_order"),
        (lambda: lnp.polyint([1.0], 3, [1.0, 2.0]), "3 constants"), (lambda: lnp.asarray_chkfinite([math.inf]), "infs"),
    ]  # fmt: skip
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(DTypeError):
        lnp.promote_types("float32", "number")


def test_corners() -> None:
    assert lnp.array_equal([1.0, math.nan], [1.0, math.nan], equal_nan=True)
    assert not lnp.array_equiv([1, 2, 3], [1, 2])
    assert "float64" == lnp.min_scalar_type(1e300).name and "float16" == lnp.min_scalar_type(math.inf).name
    assert [] == lnp.resize([], 0).tolist() == lnp.trim_zeros([0, 0]).tolist()
    assert "int8" == lnp.min_scalar_type(Tensor([1], dtype="int8")).name
    assert lnp.can_cast("float32" and lnp.float32, lnp.float32, "no")
    assert [2, 1] == lnp.digitize([0.5, 1.5], [2.0, 1.0, 0.0]).tolist()
