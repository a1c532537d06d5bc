"""The namespace against `array_api_strict`: names, parameters, promotion and values."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lazulite import Tensor
from lazulite.interop import array_api as xp
from lazulite.interop.array_api.kinds import TYPES
from lazulite.interop.elementwise import STANDARD

strict: Any = pytest.importorskip("array_api_strict", reason="notimpl: array-api-strict is not installed here")

NEVER = {"complex64", "complex128", "Device", "ArrayAPIStrictFlags", "__version__", "linalg", "fft"}
"""Names of what the standard leaves out or makes optional, of complex types, and of that package itself."""
NAMES = sorted(name for name in strict.__all__ if name not in NEVER and not name.endswith("_flags"))


@pytest.fixture(autouse=True)
def version() -> Any:
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        yield


def test_every_name_of_the_standard_is_here() -> None:
    assert [] == [name for name in NAMES if not hasattr(xp, name)]
    assert "2024.12" == xp.__array_api_version__


def _parameters(function: Any) -> list[tuple[str, str]]:
    return [(p.name, p.kind.name) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(strict, n))])
def test_parameters_have_the_same_names_and_kinds(name: str) -> None:
    assert _parameters(getattr(strict, name)) == _parameters(getattr(xp, name))


@pytest.mark.parametrize("name", [n for n in dir(xp.linalg) if inspect.isfunction(getattr(xp.linalg, n))])
def test_so_have_those_of_linalg(name: str) -> None:
    if hasattr(strict.linalg, name):
        assert _parameters(getattr(strict.linalg, name)) == _parameters(getattr(xp.linalg, name))


SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], np.float32)
FACTORS: dict[str, Any] = {
    "cholesky": lambda m, a: m.linalg.cholesky(a), "cholesky upper": lambda m, a: m.linalg.cholesky(a, upper=True),
    "det": lambda m, a: m.linalg.det(a), "inv": lambda m, a: m.linalg.inv(a), "slogdet": lambda m, a: m.linalg.slogdet(a),
    "eigvalsh": lambda m, a: m.linalg.eigvalsh(a), "svdvals": lambda m, a: m.linalg.svdvals(a), "pinv": lambda m, a: m.linalg.pinv(a),
    "solve": lambda m, a: m.linalg.solve(a, a[:, 0]), "matrix_rank": lambda m, a: m.linalg.matrix_rank(a),
    "matrix_power": lambda m, a: m.linalg.matrix_power(a, 3), "norm": lambda m, a: m.linalg.vector_norm(a, axis=0, keepdims=True),
    "matrix_norm": lambda m, a: m.linalg.matrix_norm(a, ord=2), "cross": lambda m, a: m.linalg.cross(a, a[0, :]),
    "qr": lambda m, a: m.matmul(m.linalg.qr(a).Q, m.linalg.qr(a).R), "eigh": lambda m, a: m.linalg.eigh(a).eigenvalues,
    "svd": lambda m, a: m.matmul(m.linalg.svd(a).U * m.linalg.svd(a).S, m.linalg.svd(a).Vh),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORS)
def test_linear_algebra_agrees(name: str) -> None:
    _agree(name, lambda: FACTORS[name](xp, xp.asarray(SQUARE)), lambda: FACTORS[name](strict, strict.asarray(SQUARE)))
    with pytest.raises(TypeError):
        FACTORS[name](xp, xp.asarray(SQUARE > 0))


def test_linalg_has_every_name_but_those_of_complex_results() -> None:
    assert {"eig", "eigvals"} >= {name for name in strict.linalg.__all__ if not hasattr(xp.linalg, name)}


def _strict_type(name: str) -> Any:
    return getattr(strict, name)


@pytest.mark.parametrize("left", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("right", TYPES, ids=lambda t: t.name)
def test_types_meet_where_they_do_in_the_standard(left: Any, right: Any) -> None:
    try:
        expected = str(strict.result_type(_strict_type(left.name), _strict_type(right.name))).rpartition(".")[2]
    except TypeError:
        with pytest.raises(TypeError):
            xp.result_type(left, right)
        with pytest.raises(TypeError):
            xp.asarray([1], dtype=left) + xp.asarray([1], dtype=right)
    else:
        assert expected == xp.result_type(left, right).name
        assert strict.can_cast(_strict_type(left.name), _strict_type(right.name)) == xp.can_cast(left, right)


# --- values ------------------------------------------------------------------------------------------

ELEMENTS = {
    "bool": st.booleans(), "int32": st.integers(-20, 20), "uint8": st.integers(0, 20), "int64": st.integers(-20, 20),
    "float32": st.floats(-4, 4, width=32, allow_subnormal=False),
}  # fmt: skip


@st.composite
def operands(draw: Any, count: int) -> list[Any]:
    """Arrays of one type whose shapes broadcast."""
    dtype = draw(st.sampled_from(sorted(ELEMENTS)))
    shapes = draw(
        arrays.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3, min_side=0)
    ).input_shapes
    return [draw(arrays.arrays(dtype, shape, elements=ELEMENTS[dtype])) for shape in shapes]


def _agree(name: str, ours: Any, theirs: Any) -> None:
    """Both raise a TypeError, or both give the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = theirs()
        except TypeError:
            with pytest.raises(TypeError):
                ours()
            return
        except (ValueError, IndexError):
            with pytest.raises((ValueError, IndexError)):
                ours()
            return
    _same(name, ours(), expected)


def _same(name: str, found: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            _same(name, one, other)
        return
    wanted = np.asarray(expected)
    assert isinstance(found, xp.Array), name
    assert wanted.shape == found.shape, name
    assert wanted.dtype.kind == np.dtype(found.dtype.name).kind, name
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", sorted(STANDARD))
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_elementwise_functions_agree(name: str, data: Any) -> None:
    given = data.draw(operands(STANDARD[name].operands))
    if name in ("pow", "bitwise_left_shift", "bitwise_right_shift", "floor_divide", "remainder", "divide"):
        given[1] = np.abs(given[1] % 5) + 1 if given[1].dtype != bool else given[1]
    if name in ("pow", "nextafter") and given[0].dtype.kind == "f":
        given[0] = np.abs(given[0]) + 0.5
    own, other = [[space.asarray(x) for x in given] for space in (xp, strict)]
    _agree(name, lambda: getattr(xp, name)(*own), lambda: getattr(strict, name)(*other))


CALLS: dict[str, Any] = {
    **{name: lambda m, x, n=name: getattr(m, n)(x, axis=-1, keepdims=True) for name in
       ("sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero", "argmax", "argmin")},
    **{f"{name} of all": lambda m, x, n=name: getattr(m, n)(x) for name in ("sum", "prod", "max", "mean", "all", "any")},
    "cumulative_sum": lambda m, x: m.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda m, x: m.cumulative_prod(x, axis=-1),
    "diff": lambda m, x: m.diff(x, axis=0), "sort": lambda m, x: m.sort(x, axis=0, descending=True),
    "argsort": lambda m, x: m.argsort(x, axis=-1), "flip": lambda m, x: m.flip(x, axis=0), "roll": lambda m, x: m.roll(x, 2, axis=-1),
    "nonzero": lambda m, x: m.nonzero(x), "unique_all": lambda m, x: m.unique_all(x),
    "unique_counts": lambda m, x: m.unique_counts(x), "unique_inverse": lambda m, x: m.unique_inverse(x),
    "tile": lambda m, x: m.tile(x, (2, 1, 2)), "repeat": lambda m, x: m.repeat(x, 2, axis=0),
    "moveaxis": lambda m, x: m.moveaxis(x, 0, -1), "expand_dims": lambda m, x: m.expand_dims(x, axis=1),
    "concat": lambda m, x: m.concat([x, x], axis=1), "stack": lambda m, x: m.stack([x, x], axis=1),
    "concat flat": lambda m, x: m.concat([x, x], axis=None), "unstack": lambda m, x: m.unstack(x, axis=1),
    "reshape": lambda m, x: m.reshape(x, (-1,)), "permute_dims": lambda m, x: m.permute_dims(x, (1, 0)),
    "tril": lambda m, x: m.tril(x, k=1), "triu": lambda m, x: m.triu(x, k=-1), "take": lambda m, x: m.take(x, m.asarray([0, 0]), axis=1),
    "where": lambda m, x: m.where(x == x, x, x), "clip": lambda m, x: m.clip(x, 1, 3), "matmul": lambda m, x: m.matmul(x, m.permute_dims(x, (1, 0))),
    "vecdot": lambda m, x: m.vecdot(x, x), "tensordot": lambda m, x: m.tensordot(x, x, axes=2),
    "broadcast_to": lambda m, x: m.broadcast_to(x, (2, *x.shape)), "squeeze": lambda m, x: m.squeeze(m.expand_dims(x, axis=0), axis=0),
    "zeros_like": lambda m, x: m.zeros_like(x), "full_like": lambda m, x: m.full_like(x, 1), "astype": lambda m, x: m.astype(x, m.float32),
    "index": lambda m, x: x[..., 0], "mask": lambda m, x: x[x == x[0, 0]], "transpose": lambda m, x: x.mT,
    "broadcast_arrays": lambda m, x: m.broadcast_arrays(x, x[:1, :]), "real": lambda m, x: m.astype(x, m.float32),
    "trace": lambda m, x: m.linalg.trace(x), "diagonal": lambda m, x: m.linalg.diagonal(x), "searchsorted":
    lambda m, x: m.searchsorted(m.sort(m.reshape(x, (-1,))), x[0, :]), "scalars": lambda m, x: x + 1, "scalars in front": lambda m, x: 2 - x,
    "take_along_axis": lambda m, x: m.take_along_axis(x, m.argsort(x, axis=0), axis=0), "empty": lambda m, x: m.zeros_like(m.empty_like(x)),
    "outer": lambda m, x: m.linalg.outer(m.reshape(x, (-1,)), x[0, :]), "pow": lambda m, x: x ** 2, "ones_like": lambda m, x: m.ones_like(x),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=5, deadline=None, derandomize=True)
@given(data=st.data())
def test_other_functions_agree(name: str, data: Any) -> None:
    dtype = data.draw(st.sampled_from(sorted(ELEMENTS)))
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 4)))
    x = data.draw(arrays.arrays(dtype, shape, elements=ELEMENTS[dtype]))
    if name in ("std", "var", "mean") and dtype == "float32":
        x = np.round(x, 3)
    own, other = xp.asarray(x), strict.asarray(x)
    _agree(name, lambda: CALLS[name](xp, own), lambda: CALLS[name](strict, other))


CREATED: dict[str, Any] = {
    "arange": lambda m: m.arange(2, 9, 3), "arange down": lambda m: m.arange(5, 0, -2), "arange of nothing": lambda m: m.arange(3, 1),
    "arange of floats": lambda m: m.arange(0.0, 1.0, 0.25), "linspace": lambda m: m.linspace(0, 1, 5),
    "linspace open": lambda m: m.linspace(0, 1, 4, endpoint=False), "eye": lambda m: m.eye(3, 4, k=1), "full": lambda m: m.full((2, 2), 7),
    "zeros": lambda m: m.zeros((2, 0)), "ones": lambda m: m.ones(3, dtype=m.int8), "asarray": lambda m: m.asarray([[1, 2], [3, 4]], dtype=m.float32),
    "meshgrid": lambda m: m.meshgrid(m.asarray([1, 2]), m.asarray([3, 4, 5])), "bools": lambda m: m.asarray([True, False]),
    "meshgrid of matrices": lambda m: m.meshgrid(m.asarray([1, 2]), m.asarray([3, 4, 5]), indexing="ij"), "scalar": lambda m: m.asarray(3.5),
}  # fmt: skip


@pytest.mark.parametrize("name", CREATED)
def test_made_arrays_agree(name: str) -> None:
    _agree(name, lambda: CREATED[name](xp), lambda: CREATED[name](strict))


# --- the array ---------------------------------------------------------------------------------------


def test_the_array_has_the_attributes_of_the_standard() -> None:
    x = xp.asarray([[1, 2, 3]])
    public = {n for n in dir(type(strict.asarray(1))) if not n.startswith("_")} | {
        "__abs__", "__bool__", "__complex__", "__dlpack__", "__dlpack_device__", "__float__", "__index__", "__int__",
        "__invert__", "__neg__", "__pos__", "__getitem__", "__setitem__", "__matmul__", "__rmatmul__", "__imatmul__",
    }  # fmt: skip

    assert set() == {name for name in public if not hasattr(x, name)}
    assert (3, 2, (3, 1), (1, 3)) == (x.size, x.ndim, x.mT.shape, x.to_device("CPU").shape)
    assert xp is x.__array_namespace__() is Tensor([1]).__array_namespace__(api_version="2024.12")
    assert (2, 2.0, 2 + 0j, True) == (int(x[0, 1]), float(x[0, 1]), complex(x[0, 1]), bool(x[0, 1]))
    assert 20 == [10, 20, 30][x[0, 0]] and (+x).tolist() == x.tolist()
    assert [[1.0]] == xp.asarray(np.array([[1.0]])).tolist() and isinstance(x * 2, xp.Array)


def test_writing_in_place_keeps_the_type() -> None:
    x = xp.asarray([1, 2], dtype=xp.int8)
    x += 1
    x[0] = 9
    assert [9, 3] == x.tolist() and xp.int8 is x.dtype
    with pytest.raises(TypeError):
        x += xp.asarray([1000, 1], dtype=xp.int16)
    with pytest.raises(TypeError):
        x += 1.5


def test_mistakes_are_named() -> None:
    x = xp.asarray([1.0, 2.0])
    for wrong in (
        lambda: x + xp.asarray([1, 2]), lambda: xp.add([1.0], x) if False else xp.sin([1.0]), lambda: xp.sin(xp.asarray([1])),
        lambda: x & x, lambda: xp.where(x, x, x), lambda: xp.asarray([True]) + True, lambda: x + "text",
    ):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="needs axis"):
        xp.cumulative_sum(xp.ones((2, 2)))
    with pytest.raises(ValueError, match="is no kind"):
        xp.isdtype(xp.int8, "whole")
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError, match="copied"):
        xp.asarray([1], copy=False)
    with pytest.raises(ValueError, match="has not size 1"):
        xp.squeeze(x, axis=0)
    with pytest.raises(ValueError, match="two axes"):
        x.mT  # noqa: B018
    with pytest.raises(TypeError, match="no integer type"):
        xp.result_type(xp.uint64, xp.int8)


# --- questions ---------------------------------------------------------------------------------------


def test_questions_about_types_agree() -> None:
    for dtype in TYPES:
        for kind in (
            "bool",
            "signed integer",
            "unsigned integer",
            "integral",
            "real floating",
            "complex floating",
            "numeric",
        ):
            assert strict.isdtype(_strict_type(dtype.name), kind) == xp.isdtype(dtype, kind)
        if dtype.is_float:
            theirs, own = strict.finfo(_strict_type(dtype.name)), xp.finfo(dtype)
            assert [float(getattr(theirs, f)) for f in ("eps", "max", "min", "smallest_normal")] == [
                own.eps, own.max, own.min, own.smallest_normal
            ]  # fmt: skip
        elif dtype is not xp.bool:
            theirs, own = strict.iinfo(_strict_type(dtype.name)), xp.iinfo(dtype)
            assert (theirs.bits, theirs.max, theirs.min) == (own.bits, own.max, own.min)


def test_the_namespace_says_what_it_can_do() -> None:
    info = xp.__array_namespace_info__()

    assert info.capabilities()["boolean indexing"] and info.capabilities()["data-dependent shapes"]
    assert info.default_device() in info.devices()
    assert {} == info.dtypes(kind="complex floating")
    assert set(TYPES) == set(info.dtypes().values())
    assert ["float32", "float64", "uint16", "uint32", "uint64", "uint8"] == sorted(
        info.dtypes(kind=("real floating", "unsigned integer"))
    )
    assert xp.float32 is info.default_dtypes()["real floating"]
