"""Rows of NumPy's functions: samples by family, the same function called on both sides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lazulite.interop import numpy as lnp
from lazulite.interop.elementwise import NUMPY
from surface.rows import Row, Sample, row

_numbers = np.random.default_rng(7)


def _floats(*shape: int) -> Any:
    return _numbers.normal(size=shape).astype(np.float32)


def _integers(*shape: int, low: int = -5, high: int = 9) -> Any:
    return _numbers.integers(low, high, shape).astype(np.int32)


def _bools(*shape: int) -> Any:
    return _numbers.random(shape) > 0.5


V, W, M, N, C = _floats(6), _floats(6), _floats(3, 4), _floats(3, 4), _floats(2, 3, 4)
IV, IM, B, BM, U = _integers(6), _integers(3, 4), _bools(6), _bools(3, 4), _integers(6, low=0, high=5)
HOLES = np.where(_bools(3, 4), M, np.nan).astype(np.float32)
HOLES[1] = M[1]
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], np.float32)
SORTED = np.sort(_floats(7))


def S(*args: Any, **kwargs: Any) -> Sample:
    """A call."""
    return Sample(args, kwargs)


ARRAYS = [S(V), S(M), S(C), S(_floats(1)), S(np.float32(2.5) * np.ones((), np.float32)), S(_floats(0, 3))]
REDUCED = [S(M), S(M, axis=0), S(M, axis=-1), S(C, axis=(0, 2)), S(M, axis=1, keepdims=True), S(IM), S(V)]
ALONG = [S(V), S(M), S(M, axis=0), S(M, axis=1), S(IM, axis=-1), S(C, axis=1)]
SHARES = [
    S(M, 0.3),
    S(M, [0.1, 0.9]),
    S(M, 0.5, axis=0),
    S(M, [0.2, 0.4], axis=1),
    S(V, 1.0),
    S(M, 0.5, axis=1, keepdims=True),
]


def _hundred(samples: list[Sample]) -> list[Sample]:
    return [S(s.args[0], np.multiply(s.args[1], 100).tolist(), **s.kwargs) for s in samples]


# --- universal functions ---------------------------------------------------------------------------

_INTEGERS_ONLY = {"gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "bitwise_not", "bitwise_invert",
                  "bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift", "bitwise_count"}  # fmt: skip
_UNIT = {"acos", "arccos", "asin", "arcsin", "atanh", "arctanh"}
_ABOVE_ONE = {"acosh", "arccosh"}
_POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "power", "pow", "float_power"}


def _unary(name: str) -> list[Any]:
    if name in _INTEGERS_ONLY:
        return [IV, IM, U, U.astype(np.uint8), IM.astype(np.int16), *([] if name == "bitwise_count" else [B])]
    if name == "logical_not":
        return [B, BM, IV, V, SPECIAL]
    change: Callable[[Any], Any] = lambda x: x
    if name in _UNIT:
        change = lambda x: np.tanh(x) * 0.9
    elif name in _ABOVE_ONE:
        change = lambda x: 1.01 + np.abs(x)
    elif name in _POSITIVE:
        change = lambda x: 0.1 + np.abs(x)
    return [change(V), change(M), change(C), change(M[:, 1:2]), change(np.array(0.7, np.float32)), change(_floats(9))]


def _binary(name: str) -> list[tuple[Any, Any]]:
    if "shift" in name:
        return [(IV, U), (IM, U[:4]), (U, 2), (IM, 1), (IM.astype(np.int16), U[:4].astype(np.int16))]
    if name in _INTEGERS_ONLY:
        return [(IV, U), (IM, U[:4]), (IV, 3), (IM, IM[0]), (U, U)]
    if name.startswith("logical"):
        return [(B, B[::-1].copy()), (BM, BM[0]), (IV, U), (V, W), (B, True)]
    if name == "ldexp":
        return [(V, U), (M, U[:4]), (V, 2), (C, U[:4]), (V, IV)]
    if name in _POSITIVE:
        return [(np.abs(V), W), (np.abs(M), N), (np.abs(V), 2), (np.abs(M), N[0]), (np.abs(C), N[0])]
    return [(V, W), (M, N), (V, 2.0), (M, N[0]), (C, N[:1]), (IV, np.abs(IV) + 1), (M[:, :1], N[0])]


UFUNCS = [
    row(name, *(_unary(name) if entry.operands == 1 else _binary(name)), space="numpy", relative=1e-5)
    for name, entry in NUMPY.items()
] + [
    row("cbrt", *_unary("cbrt"), space="numpy"), row("modf", *_unary("modf"), SPECIAL, space="numpy"),
    row("frexp", *_unary("frexp"), space="numpy"), row("spacing", *_unary("spacing"), space="numpy"),
    row("bitwise_count", *_unary("bitwise_count"), space="numpy"), row("divmod", *_binary("divmod"), space="numpy"), row("heaviside", *_binary("heaviside"), space="numpy"),
]  # fmt: skip

# --- functions by family ---------------------------------------------------------------------------

MATRICES = [S(M, N.T), S(M, V[:4]), S(V, W), S(C, N.T), S(IM, IM.T), S(C, _floats(2, 4, 5))]
JOINED = [S([V, W]), S([M, N]), S([V[:2], V[3:5]]), S([IM, IM]), S([M, IM])]
SAME = [*JOINED, S([C, C])]
POINTS = [S(V), S(V, W), S(M, N), S(np.array(2.0, np.float32), V), S(IV)]
SETS = [S(IV, U), S(IM, IV), S(np.array([1, 2, 2]), np.array([2, 3])), S(V, W), S(IV, IV[:3])]
PAIRS = [S(V, W), S(V[:3], W), S(IV, U), S([1.0, 2.0], V), S(V, [0.5, 0.25])]
PARTS = [
    S(_floats(6, 6), 3),
    S(_floats(6, 6, 6), 2),
    S(_floats(6, 6, 6), [2, 5]),
    S(_integers(6, 4, 2), 2),
    S(_floats(8, 8, 8), 4),
]

SAMPLES: dict[str, list[Sample]] = {
    # reductions
    **{key: [S(BM), S(BM, axis=0), S(M, axis=1), S(IM), S(B, keepdims=True), S(C, axis=(0, 1))] for key in "all any".split()},
    **dict.fromkeys("sum prod max min amax amin ptp mean".split(), REDUCED),
    **{key: [*REDUCED, S(M, ddof=1), S(M, axis=0, ddof=1)] for key in "var std".split()},
    "average": [S(M), S(M, axis=0), S(M, axis=1, weights=np.abs(N)), S(V, weights=np.abs(W)), S(M, axis=1, weights=np.abs(V[:4])),
                S(M, axis=0, returned=True)],
    "count_nonzero": [S(IM), S(IM, axis=0), S(BM, axis=1), S(V), S(IM, axis=1, keepdims=True)],
    **{key: [S(HOLES), S(HOLES, axis=0), S(M, axis=1), S(HOLES, axis=1, keepdims=True), S(C, axis=(0, 2)), S(V)] for key in "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split()},
    **{key: [S(HOLES), S(HOLES, axis=1), S(M, axis=0), S(V), S(C, axis=2)] for key in "nanargmax nanargmin".split()},
    **{key: [S(M), S(M, axis=0), S(IM, axis=1), S(V, keepdims=True), S(C, axis=1)] for key in "argmax argmin".split()},
    **{key: [S(V), S(M), S(M, axis=0), S(IM, axis=1), S(C, axis=1)] for key in "cumsum cumprod nancumsum nancumprod".split()},
    **{key: [S(V), S(M, axis=0), S(M, axis=1, include_initial=True), S(IV), S(C, axis=-1)] for key in "cumulative_sum cumulative_prod".split()},
    **{key: [*SHARES, S(V, 0.4, method="lower"), S(V, 0.4, method="nearest")] for key in "quantile nanquantile".split()},
    **dict.fromkeys("percentile nanpercentile".split(), _hundred(SHARES)),
    "median": [S(V), S(M), S(M, axis=0), S(M, axis=1, keepdims=True), S(IM, axis=1), S(C, axis=(0, 1))],
    "cov": [S(M), S(M, rowvar=False), S(V, W), S(M, ddof=0), S(M, bias=True)],
    "corrcoef": [S(M), S(M, rowvar=False), S(V, W), S(_floats(4, 9)), S(_floats(2, 30))],
    **{key: [S(V, V + 1e-07), S(V, W), S(SPECIAL, SPECIAL), S(SPECIAL, SPECIAL, equal_nan=True), S(M, M[0], rtol=0.5)] for key in "isclose allclose".split()},
    # counting
    "bincount": [S(U), S(U, weights=V), S(U, minlength=9), S(np.array([3, 3, 1])), S(np.array([0]))],
    "digitize": [S(V, SORTED), S(V, SORTED, right=True), S(V, SORTED[::-1].copy()), S(M, SORTED), S(SORTED, SORTED)],
    "histogram": [S(V), S(M, bins=4), S(V, bins=SORTED), S(V, bins=5, range=(-1, 1)), S(V, bins=3, density=True), S(V, bins=3, weights=np.abs(W))],
    "histogram_bin_edges": [S(V), S(M, bins=4), S(V, bins=SORTED), S(V, bins=5, range=(-1, 1)), S(IV, bins=2)],
    "histogram2d": [S(V, W), S(V, W, bins=3), S(V, W, bins=[2, 3]), S(V, W, bins=2, range=[[-1, 1], [-2, 2]]), S(V, W, bins=3, density=True)],
    "histogramdd": [S(_floats(9, 2)), S(_floats(9, 2), bins=3), S(_floats(9, 3), bins=2), S(_floats(9, 2), bins=[2, 4]), S(_floats(9, 1), bins=4)],
    # elementwise
    "clip": [S(V, -0.5, 0.5), S(M, 0, None), S(V, None, 0.25), S(IV, 0, 3), S(M, N, N + 1)],
    **{key: [S(V), S(M), S(V, 2), S(M * 100, -1), S(SPECIAL)] for key in "round around".split()},
    "nan_to_num": [S(SPECIAL), S(SPECIAL, nan=7.0), S(SPECIAL, posinf=1.0, neginf=-1.0), S(HOLES), S(V)],
    **{key: [S(SPECIAL[:6]), S(V), S(M), S(C), S(_floats(1))] for key in "isposinf isneginf fix real imag real_if_close isreal iscomplex angle".split()},
    **{key: [S(V), S(M), S(C), S(np.zeros(2, np.float32)), S(V * 5)] for key in "i0 sinc".split()},
    # types
    **dict.fromkeys("shape ndim iscomplexobj isrealobj".split(), ARRAYS),
    "size": [S(V), S(M), S(M, 0), S(M, axis=1), S(C)],
    **{key: [S(3), S(2.5), S("text"), S(V), S([1])] for key in ["isscalar"]},
    **{key: [S(3), S([1]), S("text"), S(V), S((1, 2))] for key in ["iterable"]},
    **{key: [S(V, V), S(V, W), S(M, M[0]), S(np.tile(V, (2, 1)), V), S(IV, IV)] for key in "array_equal array_equiv".split()},
    "can_cast": [S(np.int8, np.int16), S(np.int16, np.int8), S(np.float32, np.float64), S(np.int32, np.float32), S(np.float32, np.int64, "unsafe"),
                 S(np.uint8, np.int16), S(np.int64, np.int32, "same_kind"), S(np.bool_, np.int8)],
    "broadcast_shapes": [S((3, 1), (4,)), S((1,), (5,)), S((2, 3), (2, 3)), S((), (2,)), S((4, 1, 2), (3, 1))],
    "isdtype": [S(np.float32, "real floating"), S(np.int8, "integral"), S(np.uint8, "signed integer"), S(np.bool_, "bool"), S(np.int16, ("bool", "numeric"))],
    "astype": [S(V, np.int32), S(M, np.float64), S(IV, np.float32), S(B, np.int8), S(IM, np.bool_)],
    # creation
    "arange": [S(5), S(2, 9), S(0, 1, 0.25), S(9, 2, -2), S(0), S(3.0)],
    "linspace": [S(0, 1), S(0.0, 2.0, 5), S(1, 2, 4, endpoint=False), S(V[:3], W[:3], 4), S(0, 1, 1), S(0, 3, 4, retstep=True)],
    "logspace": [S(0, 2), S(0.0, 1.0, 5), S(1, 3, 4, base=2.0), S(0, 1, 4, endpoint=False), S(2, 3, 3)],
    "geomspace": [S(1, 1000, 4), S(1.0, 16.0, 5), S(2, 32, 5), S(-1, -8, 4), S(1, 9, 3)],
    **{key: [S(3), S((2, 3)), S(()), S((2, 0)), S(4, dtype=np.int32)] for key in "zeros ones".split()},
    "full": [S(3, 2.5), S((2, 3), 7), S((2, 2), True), S((2, 3), V[:3]), S((), 1)],
    **{key: [S(V), S(IM), S(B), S(M, dtype=np.int32), S(C)] for key in "zeros_like ones_like".split()},
    "full_like": [S(V, 2), S(IM, 7), S(M, 0.5), S(C, 1), S(B, True)],
    "eye": [S(3), S(2, 4), S(3, k=1), S(4, 2, k=-1), S(3, dtype=np.int32)],
    "identity": [S(1), S(2), S(3), S(4), S(2, dtype=np.int32)],
    "tri": [S(3), S(3, 4), S(3, k=1), S(3, 2, k=-1), S(2, dtype=np.int32)],
    **{key: [S(M), S(M, 1), S(M, k=-1), S(C), S(IM)] for key in "tril triu".split()},
    **{key: [S(3), S(3, 1), S(4, -1), S(3, 0, 4), S(2)] for key in "tril_indices triu_indices".split()},
    **{key: [S(_floats(3, 3)), S(_floats(3, 3), 1), S(_floats(4, 4), -1), S(_floats(2, 2)), S(_floats(5, 5))] for key in "tril_indices_from triu_indices_from".split()},
    "diag": [S(V), S(M), S(V, 1), S(M, -1), S(IV, k=-2)],
    "diagflat": [S(V), S(M), S(V, 1), S(IV, -1), S(IM)],
    "vander": [S(V), S(V, 3), S(IV, 2), S(V, 4, increasing=True), S(V[:2])],
    "meshgrid": [S(V, W), S(V, W, indexing="ij"), S(V[:2], W[:3], IV[:4]), S(V, W, sparse=True), S(V)],
    "indices": [S((2, 3)), S((4,)), S((2, 2, 2)), S((2, 3), sparse=True), S((1, 5))],
    **{key: [S(0), S(1), S(2), S(5), S(8)] for key in "hanning hamming blackman bartlett".split()},
    "kaiser": [S(0, 5.0), S(1, 5.0), S(6, 5.0), S(7, 0.0), S(8, 14.0)],
    **{key: [S(V), S([1, 2]), S([[1.5]]), S(IM), S(3) if True else S(V), S(M)] for key in "asarray asanyarray array copy ascontiguousarray asarray_chkfinite".split()},
    "frombuffer": [S(V.tobytes(), np.float32), S(IV.tobytes(), np.int32), S(V.tobytes(), np.float32, 2), S(V.tobytes(), np.float32, -1, 4), S(b"abc", np.uint8)],
    "fromiter": [S(range(4), np.int32), S([1.0, 2.0], np.float32), S((1, 0), np.int8), S(range(9), np.float32, 3), S([True], np.bool_)],
    # shapes
    "reshape": [S(M, (4, 3)), S(M, -1), S(C, (4, -1)), S(V, (2, 3)), S(M, (2, 6), order="F")],
    "ravel": [S(M), S(V), S(C), S(M, order="F"), S(IM)],
    **{key: [S(M), S(C), S(C, (1, 2, 0)), S(V), S(C, (-1, 0, 1))] for key in "transpose permute_dims".split()},
    "matrix_transpose": [S(M), S(C), S(IM), S(_floats(2, 2)), S(_floats(1, 3))],
    "swapaxes": [S(M, 0, 1), S(C, 0, 2), S(C, -1, 1), S(IM, 1, 0), S(C, 0, 0)],
    "moveaxis": [S(M, 0, 1), S(C, 0, -1), S(C, [0, 1], [-1, 0]), S(C, 2, 0), S(M, 0, 0)],
    "rollaxis": [S(C, 2), S(C, 0, 3), S(C, 1, 0), S(M, 1), S(C, 0, 2)],
    "squeeze": [S(_floats(1, 3, 1)), S(_floats(1, 3, 1), 0), S(_floats(1, 3, 1), (0, 2)), S(V), S(_floats(1))],
    "expand_dims": [S(V, 0), S(M, 1), S(M, (0, 2)), S(V, -1), S(C, 3)],
    "broadcast_to": [S(V, (2, 6)), S(M[:1], (3, 4)), S(M[:, :1], (3, 4)), S(V[:1], 4), S(np.array(2.0), (2, 2))],
    "broadcast_arrays": [S(V, np.float32(1) * np.ones(1, np.float32)), S(M, V[:4]), S(M[:1], M[:, :1]), S(C, M), S(V, IV)],
    **{key: [S(V), S(M), S(C), S(np.array(3.0)), S(V, M)] for key in "atleast_1d atleast_2d atleast_3d".split()},
    **{key: [*SAME, S([M, N], axis=1), S([M, V], axis=None)] for key in "concatenate concat".split()},
    "stack": [*SAME, S([M, N], axis=1), S([V, W], axis=-1)],
    **dict.fromkeys("vstack hstack dstack column_stack row_stack".split(), JOINED),
    "block": [S([V, W]), S([[M, N], [N, M]]), S([[M], [N]]), S([M, N]), S([[IM, IM]])],
    "append": [S(V, W), S(M, N, axis=0), S(M, V), S(M, N, axis=1), S(IV, [1, 2])],
    "split": [*PARTS], "vsplit": [*PARTS], "hsplit": [*PARTS], "dsplit": [*PARTS[1:], S(_floats(2, 2, 4), 2)],
    "array_split": [S(V, 4), S(M, 2, axis=1), S(V, [2, 3]), S(IV, 5), S(C, 3, axis=2)],
    "unstack": [S(M), S(C), S(M, axis=1), S(C, axis=-1), S(V)],
    "delete": [S(V, 1), S(M, 0, axis=0), S(M, [0, 2], axis=1), S(V, -1), S(M, 3), S(V, slice(1, 3))],
    "insert": [S(V, 1, 9.0), S(M, 1, 5.0, axis=0), S(M, 1, V[:4], axis=0), S(V, [1, 3], [7.0, 8.0]), S(M, 2, 1.0), S(V, 2, [1.0, 2.0])],
    "trim_zeros": [S(np.array([0.0, 1, 0, 2, 0])), S(np.array([0, 0, 3])), S(np.array([1, 2])), S(np.array([0, 1, 0]), "f"), S(np.array([0, 1, 0]), "b")],
    "flip": [S(M), S(M, 0), S(M, axis=1), S(C, (0, 2)), S(V)],
    **{key: [S(M), S(C), S(IM), S(N), S(_floats(2, 2))] for key in "fliplr flipud".split()},
    "rot90": [S(M), S(M, 2), S(M, k=-1), S(C, 1, (1, 2)), S(IM, 3)],
    "roll": [S(V, 2), S(M, 1), S(M, 1, axis=0), S(M, (1, 2), axis=(0, 1)), S(C, -1, axis=2)],
    "tile": [S(V, 2), S(M, (2, 1)), S(V, (2, 2)), S(M, 3), S(C, (2,))],
    "repeat": [S(V, 2), S(M, 2, axis=0), S(V, [1, 0, 2, 1, 1, 0]), S(M, 3), S(M, [1, 2, 0], axis=0)],
    "resize": [S(V, 4), S(V, (3, 4)), S(M, (2, 2)), S(M, 20), S(IV, (2, 6))],
    "pad": [S(V, 2), S(M, 1, constant_values=5.0), S(M, ((1, 2), (0, 1)), mode="edge"), S(V, 3, mode="reflect"), S(V, (2, 4), mode="symmetric"),
            S(V, 4, mode="wrap"), S(V, 2, mode="linear_ramp", end_values=1.0), S(M, 1, mode="maximum"), S(M, 1, mode="mean")],
    # order
    "sort": [S(V), S(M), S(M, axis=0), S(M, axis=None), S(IM)],
    "argsort": [S(V), S(M), S(M, axis=0), S(M, axis=None), S(C, axis=1)],
    "lexsort": [S((IV, U)), S((V, U)), S((U, IV, V)), S((IM, _integers(3, 4))), S((U,))],
    **{key: [S(IM), S(B), S(IV), S(BM), S(np.array([0.0, 2.0]))] for key in "nonzero flatnonzero argwhere".split()},
    "extract": [S(B, V), S(BM, M), S(M > 0, M), S(B, IV), S(V > 5, V)],
    "where": [S(B, V, W), S(BM, M, 0.0), S(BM), S(BM, M, N[0]), S(B, 1.0, V)],
    "searchsorted": [S(SORTED, V), S(SORTED, M), S(SORTED, V, side="right"), S(V, W, sorter=np.argsort(V)), S(SORTED, SORTED)],
    "unique": [S(IV), S(IM), S(IM, return_counts=True), S(IM, return_index=True, return_inverse=True), S(_integers(6, 2, low=0, high=2), axis=0)],
    **{key: [S(IV), S(U), S(IM), S(V), S(np.array([2, 2, 2]))] for key in "unique_all unique_counts unique_inverse".split()},
    **dict.fromkeys("union1d intersect1d setdiff1d setxor1d isin".split(), SETS),
    "ediff1d": [S(V), S(M), S(V, to_end=[9.0]), S(V, to_begin=[1.0, 2.0]), S(IV)],
    # positions
    "take": [S(V, [0, 2]), S(M, [1, 0], axis=0), S(M, [[0, 1], [2, 3]], axis=1), S(M, 5), S(V, [-1, 0]), S(V, [7, -8], mode="wrap"), S(V, [7], mode="clip")],
    "take_along_axis": [S(M, np.argsort(M, 0), 0), S(M, np.argsort(M, 1), 1), S(V, np.argsort(V), 0), S(M, np.array([[0], [1], [2]]), 1), S(C, np.argsort(C, 2), 2)],
    "compress": [S(B, V), S(B[:3], M, axis=0), S(B[:4], M, axis=1), S(B, IV), S([1, 0, 1], V)],
    "choose": [S(np.array([0, 1, 0]), [V[:3], W[:3]]), S(np.array([1, 1]), [[1, 2], [3, 4]]), S(np.array([2, 0]), [V[:2], W[:2], V[2:4]]),
               S(np.array([3, 0]), [V[:2], W[:2]], mode="clip"), S(np.array([3, 0]), [V[:2], W[:2]], mode="wrap")],
    "select": [S([V > 0, V < -0.5], [V, W]), S([V > 0], [V], 7.0), S([M > 1, M > 0], [M, N], -1.0), S([B, ~B], [V, W]), S([V > 9], [V])],
    "diagonal": [S(M), S(M, 1), S(C), S(C, -1, 1, 2), S(IM)],
    "trace": [S(M), S(M, 1), S(C), S(IM), S(C, 0, 1, 2)],
    "diag_indices": [S(2), S(3), S(3, 3), S(1), S(4, 1)],
    "diag_indices_from": [S(_floats(2, 2)), S(_floats(3, 3)), S(_floats(2, 2, 2)), S(_floats(1, 1)), S(_floats(4, 4))],
    "ix_": [S([0, 1], [2, 3]), S([0], [1, 2], [3]), S(np.array([True, False, True]), [0, 1]), S([2]), S([0, 2], [1])],
    "unravel_index": [S(7, (3, 4)), S([1, 5, 11], (3, 4)), S([1, 5], (2, 3, 4)), S([3], 6), S([1, 5], (3, 4), order="F")],
    "ravel_multi_index": [S(([1, 2], [0, 3]), (3, 4)), S(([1], [0], [2]), (2, 3, 4)), S(([5, -1], [0, 9]), (3, 4), mode="clip"),
                          S(([5, -1], [0, 9]), (3, 4), mode="wrap"), S(([1, 2], [0, 3]), (3, 4), order="F")],
    # products
    "matmul": MATRICES, "dot": [*MATRICES[:5], S(3.0, V), S(C, _floats(5, 4, 2))],
    "inner": [S(V, W), S(M, N), S(M, V[:4]), S(C, N), S(IV, U)],
    **{key: [S(V, W), S(V[:3], W[:3]), S(M, N), S(IV, U), S(M[:2], N[:2])] for key in "outer vdot kron".split()},
    "vecdot": [S(V, W), S(M, N), S(C, N[:3]), S(M, N, axis=0), S(IM, IM)],
    "matvec": [S(M, V[:4]), S(C, V[:4]), S(C, _floats(2, 4)), S(IM, IV[:4]), S(_floats(2, 2), V[:2])],
    "vecmat": [S(V[:3], M), S(V[:3], C), S(_floats(2, 3), C), S(IV[:3], IM), S(V[:2], _floats(2, 2))],
    "cross": [S(V[:3], W[:3]), S(_floats(4, 3), _floats(4, 3)), S(_floats(4, 3), V[:3]), S(_floats(3, 4), _floats(3, 4), axis=0), S(IV[:3], U[:3])],
    "tensordot": [S(M, N.T, 1), S(C, _floats(3, 4, 2), 2), S(M, N, axes=([1], [1])), S(C, N, axes=([1, 2], [0, 1])), S(V, W, 0)],
    "einsum": [S("ij,jk->ik", M, N.T), S("i,i->", V, W), S("ii->i", _floats(3, 3)), S("...j->...", C), S("ij->ji", M)],
    # series
    "diff": [S(V), S(M), S(M, axis=0), S(V, 2), S(V, prepend=1.0), S(M, append=N[:, :1])],
    "trapezoid": [S(V), S(M), S(V, SORTED[:6]), S(M, dx=0.5), S(M, axis=0)],
    "gradient": [S(V), S(V, 0.5), S(V, SORTED[:6]), S(M), S(M, axis=0), S(V, edge_order=2), S(M, 2.0, axis=1)],
    "interp": [S(V, SORTED, _floats(7)), S(M, SORTED, _floats(7)), S(V, SORTED, _floats(7), left=0.0, right=9.0), S(0.5, SORTED, _floats(7)),
               S(V, SORTED, _floats(7), period=3.0), S(SORTED, SORTED, SORTED * 2)],
    **{key: [S(V, W), S(V, W[:3]), S(V[:2], W), S(V, W[:3], "same"), S(V, W[:4], "valid"), S(V, W[:3], "full"), S(IV, U[:2])] for key in "convolve correlate".split()},
    "unwrap": [S(V * 4), S(M * 5), S(M * 5, axis=0), S(np.array([0, 1, 9, 10.0]), period=4), S(V * 4, discont=4.0)],
    "packbits": [S(B), S(BM), S(BM, axis=1), S(U), S(B, bitorder="little")],
    "unpackbits": [S(U.astype(np.uint8)), S(np.abs(IM).astype(np.uint8)), S(U.astype(np.uint8), count=9), S(np.abs(IM).astype(np.uint8), axis=1), S(U.astype(np.uint8), bitorder="little")],
    # polynomials
    "polyval": [S(V, W), S([1, 2, 3], V), S(V[:3], M), S([2], V), S(IV, U)],
    **dict.fromkeys("polyadd polysub polymul".split(), PAIRS),
    "polydiv": [S([2.0, 5, 2], [2.0, 1]), S(V, W[:2]), S([1.0, 2, 3], [1.0, 0, 1]), S([1.0], [1.0, 2]), S([3.0, 1, 4, 1, 5], [1.0, 2, 1])],
    "polyder": [S(V), S(V, 2), S([1, 2, 3]), S([5.0, 1]), S(V, 3)],
    "polyint": [S(V), S(V, 2), S([1.0, 2, 3]), S(V, 1, 3.0), S(V, 2, [1.0, 2.0])],
    "poly": [S([1.0, 2]), S([3.0]), S(V[:4]), S([0.0, 0, 1]), S([-1.0, 1])],
}  # fmt: skip

LINALG: dict[str, list[Sample]] = {
    "linalg.matmul": MATRICES, "linalg.multi_dot": [S([M, N.T]), S([M, N.T, M]), S([M, N.T, M, V[:4]]), S([V[:3], M]), S([M, V[:4]])],
    "linalg.outer": [S(V, W), S(V[:2], W), S(IV, U), S(V, W[:1]), S(U, U)], "linalg.tensordot": [S(M, N.T, axes=1), S(C, C, axes=3), S(M, N, axes=([0], [0])), S(M, N), S(V, W, axes=0)],
    "linalg.vecdot": [S(V, W), S(M, N), S(M, N, axis=0), S(IM, IM), S(C, N[:3])], "linalg.matrix_transpose": [S(M), S(C), S(IM), S(N), S(_floats(2, 2))],
    "linalg.cross": [S(V[:3], W[:3]), S(_floats(4, 3), _floats(4, 3)), S(_floats(3, 4), _floats(3, 4), axis=0), S(IV[:3], U[:3]), S(_floats(2, 2, 3), _floats(2, 2, 3))],
    "linalg.diagonal": [S(M), S(C), S(M, offset=1), S(C, offset=-1), S(IM)], "linalg.trace": [S(M), S(C), S(M, offset=1), S(C, offset=-1), S(IM)],
    "fft.fftfreq": [S(1), S(4), S(5), S(8, 0.5), S(7, d=2.0)], "fft.rfftfreq": [S(1), S(4), S(5), S(8, 0.5), S(7, d=2.0)],
    "fft.fftshift": [S(V), S(M), S(M, 0), S(C, (0, 2)), S(_floats(5))], "fft.ifftshift": [S(V), S(M), S(M, 0), S(C, (0, 2)), S(_floats(5))],
}  # fmt: skip


SQUARE = (_floats(4, 4) + 4 * np.eye(4)).astype(np.float32)
SQUARES = np.stack([SQUARE, SQUARE.T * 2]).astype(np.float32)
SYMMETRIC = (SQUARE + SQUARE.T).astype(np.float32)
DEFINITE = (SQUARE @ SQUARE.T).astype(np.float32)
TALL = _floats(6, 3)
LINALG |= {
    **{key: [S(SQUARE), S(SQUARES), S(DEFINITE), S(_floats(1, 1)), S(SYMMETRIC)] for key in ["linalg.det", "linalg.slogdet", "linalg.inv"]},
    "linalg.cholesky": [S(DEFINITE), S(np.stack([DEFINITE, DEFINITE * 2])), S(np.eye(3, dtype=np.float32)), S(DEFINITE, upper=True), S(DEFINITE[:1, :1])],
    **{key: [S(SYMMETRIC), S(SQUARES @ SQUARES.swapaxes(1, 2)), S(DEFINITE), S(SYMMETRIC[:2, :2]), S(SYMMETRIC[:1, :1])] for key in ["linalg.eigvalsh", "linalg.svdvals"]},
    "linalg.solve": [S(SQUARE, V[:4]), S(SQUARE, _floats(4, 2)), S(SQUARES, _floats(4, 2)), S(DEFINITE, V[:4]), S(SQUARES, _floats(2, 4, 3))],
    "linalg.lstsq": [S(TALL, V), S(TALL, _floats(6, 2)), S(SQUARE, V[:4]), S(TALL, W), S(_floats(9, 2), _floats(9))],
    "linalg.pinv": [S(TALL), S(SQUARE), S(TALL.T.copy()), S(SQUARES), S(TALL, rcond=1e-3)],
    "linalg.matrix_rank": [S(TALL), S(SQUARE), S(np.ones((3, 3), np.float32)), S(np.zeros((2, 2), np.float32)), S(V)],
    "linalg.matrix_power": [S(SQUARE, 2), S(SQUARE, 0), S(SQUARE, -1), S(SQUARES, 3), S(_integers(2, 2), 3)],
    "linalg.cond": [S(SQUARE), S(TALL), S(SQUARE, 1), S(SQUARE, "fro"), S(SQUARE, np.inf)],
    "linalg.norm": [S(V), S(M), S(M, "fro"), S(M, 1), S(M, axis=0), S(V, 1), S(C, axis=(1, 2)), S(M, ord=np.inf, axis=1, keepdims=True)],
    "linalg.vector_norm": [S(V), S(M), S(M, axis=1), S(C, axis=(0, 2), ord=1), S(M, ord=np.inf, keepdims=True)],
    "linalg.matrix_norm": [S(M), S(C), S(M, ord=1), S(M, ord=2), S(C, keepdims=True, ord="nuc")],
    "linalg.tensorinv": [S(SQUARE.reshape(2, 2, 4), 2), S(SQUARE.reshape(4, 2, 2), 1), S(SQUARE.reshape(2, 2, 2, 2), 2), S(SQUARE, 1), S(np.eye(6, dtype=np.float32).reshape(6, 2, 3), ind=1)],
    "linalg.tensorsolve": [S(SQUARE.reshape(2, 2, 4), M[:2, :2]), S(SQUARE.reshape(4, 2, 2), V[:4]), S(SQUARE.reshape(2, 2, 2, 2), M[:2, :2]), S(SQUARE, V[:4]), S(DEFINITE.reshape(2, 2, 4), M[1:3, :2])],
    "polyfit": [S(SORTED, _floats(7), 1), S(SORTED, _floats(7), 2), S(SORTED, _floats(7, 2), 1), S(SORTED, _floats(7), 1, w=np.abs(_floats(7)) + 0.1), S(V, W, 3)],
}  # fmt: skip


# --- functions of functions, and such that write -----------------------------------------------------


def _both(name: str, call: Callable[..., Any], *samples: Any) -> Row:
    """A row of a call on either module."""
    return row(name, *samples, space="numpy", ours=lambda *a: call(lnp, *a), reference=lambda *a: call(np, *a))


def _written(name: str, *samples: Any) -> Row:
    """A row of what a function leaves in a copy of its first argument."""

    def call(module: Any, target: Any, *rest: Any) -> Any:
        target = module.copy(target)
        getattr(module, name)(target, *rest)
        return target

    return _both(name, call, *samples)


OWN = [
    _both("apply_along_axis", lambda m, x, axis: m.apply_along_axis(lambda r: m.sort(r) * 2, axis, x), (M, 0), (M, 1), (C, 1), (V, 0), (C, -1)),
    _both("apply_over_axes", lambda m, x, axes: m.apply_over_axes(m.sum, x, axes), (M, [0]), (M, [0, 1]), (C, [0, 2]), (C, 1), (V, 0)),
    _both("fromfunction", lambda m, shape: m.fromfunction(lambda i, j: i * 2 + j, shape), S((2, 3)), S((1, 4)), S((3, 3)), S((4, 1)), S((2, 2))),
    _both("mask_indices", lambda m, n, k: m.mask_indices(n, m.triu, k), (3, 0), (3, 1), (4, -1), (2, 0), (5, 2)),
    _both("piecewise", lambda m, x: m.piecewise(x, [x < 0, x > 0.5], [lambda y: -y, 7.0, lambda y: y * 2]), V, M, W, N, C),
    _both("empty", lambda m, shape: m.empty(shape).shape, 3, S((2, 3)), S(()), S((0, 2)), S((1,))),
    _both("empty_like", lambda m, x: m.empty_like(x).shape, V, M, C, IV, BM),
    _both("from_dlpack", lambda m, x: m.from_dlpack(x), V, M, IV, C, _integers(2, 2)),
    _both("partition", lambda m, x, k: m.partition(x, k)[..., k], (V, 2), (M, 1), (IV, 3), (W, 0), (N, 3)),
    _both("argpartition", lambda m, x, k: m.take_along_axis(x, m.argpartition(x, k), -1)[..., k], (V, 2), (M, 1), (W, 5), (N, 0), (V, 3)),
    _both("unique_values", lambda m, x: m.sort(m.unique_values(x)), IV, U, IM, V, np.array([2, 2, 2])),
    _both("promote_types", lambda m, a, b: str(m.promote_types(a, b)).rpartition(".")[2], ("int8", "uint8"), ("int8", "int16"), ("float32", "float64"), ("bool", "int8"), ("uint8", "uint16")),
    _both("result_type", lambda m, *a: str(m.result_type(*a)).rpartition(".")[2], (V, 1), (IV, U), (V, IV.astype(np.int8)), (B, B), (V.astype(np.float64), V)),
    _both("min_scalar_type", lambda m, a: str(m.min_scalar_type(a)).rpartition(".")[2], 5, 300, -1, 1e30, True, 70000),
    _both("linalg.qr", lambda m, a: [m.matmul(*m.linalg.qr(a)), m.abs(m.linalg.qr(a, "r"))], SQUARE, TALL, DEFINITE, TALL.T.copy(), SQUARES),
    _both("linalg.svd", lambda m, a: [m.matmul(u * s[..., None, :], v) for u, s, v in [m.linalg.svd(a, False)]] + [m.linalg.svd(a, compute_uv=False)],
          SQUARE, TALL, DEFINITE, TALL.T.copy(), SQUARES),
    _both("linalg.eigh", lambda m, a: [m.matmul(v * w[..., None, :], m.matrix_transpose(v)) for w, v in [m.linalg.eigh(a)]] + [m.linalg.eigh(a, "U")[0]],
          SYMMETRIC, DEFINITE, SYMMETRIC[:2, :2], np.eye(3, dtype=np.float32), SYMMETRIC * 3),
    _written("copyto", (V, W), (M, N[0]), (M, 1.0), (IV, U), (C, M)),
    _written("putmask", (V, V > 0, W), (M, M > 0, N), (V, V > 0, [1.0, 2.0]), (M, BM, [9.0]), (IV, B, U)),
    _written("place", (V, V > 0, W), (M, M > 0, [1.0, 2.0]), (V, B, [3.0]), (IV, B, U), (M, BM, N)),
    _written("put", (V, [0, 2], [9.0, 8.0]), (M, [1, 5], 7.0), (V, [-1], 3.0), (IV, [0, 1, 2], [5, 6]), (M, [[0, 1]], [1.0, 2.0])),
    _written("put_along_axis", (M, np.array([[0], [1], [2]]), 9.0, 1), (M, np.argsort(M, 0), N, 0), (V, np.array([1, 3]), np.array([5.0, 6.0]), 0), (M, np.array([[0, 1, 0, 1]]), 1.0, 0), (IM, np.array([[1], [1], [1]]), 3, 1)),
    _written("fill_diagonal", (_floats(3, 3), 5.0), (_floats(4, 3), 1.0), (_floats(2, 2, 2), 7.0), (_integers(3, 3), 0), (_floats(3, 3), [1.0, 2.0, 3.0])),
]  # fmt: skip


def _inner(name: str, samples: list[Sample]) -> Row:
    """A row of a function of an inner module."""
    find = operator.attrgetter(name)
    return row(
        name, *samples, space="numpy", ours=find(lnp),
        reference=find(np), relative=2e-4, absolute=2e-5,
    )  # fmt: skip


ROWS = [
    *UFUNCS, *[row(name, *samples, space="numpy") for name, samples in SAMPLES.items()],
    *[_inner(name, samples) for name, samples in LINALG.items()], *OWN,
]  # fmt: skip
