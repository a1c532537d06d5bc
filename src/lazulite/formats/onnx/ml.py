"""Operators of `ai.onnx.ml`: labels, thresholds, linear models."""

from __future__ import annotations

import math
from typing import Any

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Host
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

DOMAIN = "ai.onnx.ml"

# --- labels ----------------------------------------------------------------------------------------


@onnx_op("LabelEncoder", since=2, domain=DOMAIN)
def label_encoder(
    x: Host, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Host | None = None, keys_floats: list[float] | None = None, keys_int64s: list[int] | None = None,
    keys_strings: list[str] | None = None, keys_tensor: Host | None = None, values_floats: list[float] | None = None,
    values_int64s: list[int] | None = None, values_strings: list[str] | None = None, values_tensor: Host | None = None,
) -> Host:  # fmt: skip
    """Each element's value in a table; of equal keys the last counts, and NaN finds NaN."""
    keys = _one_of(keys_floats, keys_int64s, keys_strings, keys_tensor)
    values = _one_of(values_floats, values_int64s, values_strings, values_tensor)
    if values_tensor is not None:
        kind: Any = values_tensor.dtype
    else:
        kind = "float32" if values_floats is not None else "int64" if values_int64s is not None else object
    default: Any = {"f": default_float, "i": default_int64, "O": default_string}[numpy.dtype(kind).kind]
    if default_tensor is not None:
        default = default_tensor.reshape(-1)[0]
    table = {_key(key): value for key, value in zip(keys, values, strict=True)}
    found = [table.get(_key(value), default) for value in x.reshape(-1).tolist()]
    return numpy.array(found, kind).reshape(x.shape)


@onnx_op("LabelEncoder", domain=DOMAIN)
def text_encoder(
    x: Host, *, classes_strings: list[str], default_int64: int = -1, default_string: str = "_Unused"
) -> Host:
    """The first version: the number of a text in a list, and back."""
    numbers = list(range(len(classes_strings)))
    return category_mapper(
        x, cats_int64s=numbers, cats_strings=classes_strings, default_int64=default_int64, default_string=default_string
    )


def _key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _one_of(*given: Any) -> list[Any]:
    chosen = next((each for each in given if each is not None), None)
    if chosen is None:
        raise FormatError("OnnxRunner", "LabelEncoder has no keys or no values")
    return list(chosen.reshape(-1).tolist()) if isinstance(chosen, numpy.ndarray) else list(chosen)


@onnx_op("CategoryMapper", domain=DOMAIN)
def category_mapper(
    x: Host,
    *,
    cats_int64s: list[int],
    cats_strings: list[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Host:
    if x.dtype.kind in "OUS":
        numbers = dict(zip(cats_strings, cats_int64s, strict=True))
        return numpy.array([numbers.get(text, default_int64) for text in x.reshape(-1)], "int64").reshape(x.shape)
    texts = dict(zip(cats_int64s, cats_strings, strict=True))
    return numpy.array([texts.get(int(n), default_string) for n in x.reshape(-1)], object).reshape(x.shape)


@onnx_op("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(
    x: Host, *, cats_int64s: list[int] | None = None, cats_strings: list[str] | None = None, zeros: int = 1
) -> Host:
    known: Host = numpy.array(cats_int64s if cats_strings is None else cats_strings)
    found = x[..., None] == known
    if not zeros and not found.any(-1).all():
        raise FormatError("OnnxRunner", "OneHotEncoder met a category that it does not know")
    return found.astype("float32")


# --- numbers ---------------------------------------------------------------------------------------


@onnx_op("Binarizer", domain=DOMAIN)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return (x > threshold).cast(x.dtype)


@onnx_op("Scaler", domain=DOMAIN)
def scaler(x: Tensor, *, offset: list[float] | None = None, scale: list[float] | None = None) -> Tensor:
    y = x.cast(dtypes.float32)
    y = y if offset is None else y - Tensor(offset, device=x.device)
    return y if scale is None else y * Tensor(scale, device=x.device)


@onnx_op("Imputer", domain=DOMAIN)
def imputer(
    x: Tensor, *, imputed_value_floats: list[float] | None = None, imputed_value_int64s: list[int] | None = None,
    replaced_value_float: float = 0.0, replaced_value_int64: int = 0,
) -> Tensor:  # fmt: skip
    if x.dtype.is_float:
        gone = x.isnan() if math.isnan(replaced_value_float) else x.eq(replaced_value_float)
        values = Tensor(imputed_value_floats or [0.0], device=x.device)
    else:
        gone, values = x.eq(replaced_value_int64), Tensor(imputed_value_int64s or [0], device=x.device)
    return gone.where(values.cast(x.dtype), x)


@onnx_op("Normalizer", domain=DOMAIN)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    y = x.cast(dtypes.float32)
    size = {
        "MAX": lambda: y.abs().max(-1, keepdim=True), "L1": lambda: y.abs().sum(-1, keepdim=True),
        "L2": lambda: (y * y).sum(-1, keepdim=True).sqrt(),
    }[norm]()  # fmt: skip
    return y / size.eq(0).where(1, size)


@onnx_op("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(*parts: Tensor, inputdimensions: list[int] | None = None) -> Tensor:
    first, *others = [part.cast(dtypes.float32).reshape((part.shape[0], -1)) for part in parts]
    return first.cat(*others, dim=1)


# --- models ----------------------------------------------------------------------------------------


def finished(y: Tensor, post_transform: str | int) -> Tensor:
    """Scores as the attribute asks for them."""
    match post_transform:
        case "NONE" | 0:
            return y
        case "SOFTMAX" | 1:
            return y.softmax(-1)
        case "LOGISTIC" | 2:
            return y.sigmoid()
        case "SOFTMAX_ZERO" | 3:
            return y.eq(0).where(0, y.softmax(-1))
    raise FormatError("OnnxRunner", f"post_transform {post_transform!r} is not supported")


@onnx_op("LinearRegressor", domain=DOMAIN)
def linear_regressor(
    x: Tensor, *, coefficients: list[float], intercepts: list[float] | None = None, post_transform: str = "NONE",
    targets: int = 1,
) -> Tensor:  # fmt: skip
    y = x.cast(dtypes.float32) @ Tensor(coefficients, device=x.device).reshape((targets, -1)).transpose(0, 1)
    return finished(y if intercepts is None else y + Tensor(intercepts, device=x.device), post_transform)


@onnx_op("LinearClassifier", domain=DOMAIN)
def linear_classifier(
    x: Tensor, *, coefficients: list[float], classlabels_ints: list[int] | None = None,
    classlabels_strings: list[str] | None = None, intercepts: list[float] | None = None, multi_class: int = 0,
    post_transform: str = "NONE", call: Call,
) -> Any:  # fmt: skip
    """The label of the best score and the scores; one row of coefficients stands for two classes."""
    labels: Any = classlabels_strings if classlabels_ints is None else classlabels_ints
    rows = Tensor(coefficients, device=x.device).reshape((-1, x.shape[-1]))
    scores = x.cast(dtypes.float32) @ rows.transpose(0, 1)
    scores = scores if intercepts is None else scores + Tensor(intercepts, device=x.device)
    if scores.shape[-1] == 1 and len(labels) == 2:
        other = 1 - scores.sigmoid() if post_transform == "LOGISTIC" else -scores
        scores = other.cat(finished(scores, post_transform), dim=-1)
    else:
        scores = finished(scores, post_transform)
    best = scores.argmax(-1)
    if classlabels_strings:
        return numpy.array(classlabels_strings, object)[best.numpy()], scores
    return Tensor(labels, dtype="int64", device=call.device)[best], scores
