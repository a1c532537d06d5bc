"""Cast and CastLike between all types: numbers, codes and texts."""

from __future__ import annotations

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.codes import decoded, encoded
from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import CODED, Coded, Host, Lift, Value, on_host, type_name


@onnx_op("Cast")
def cast(x: Value, *, to: int | str, saturate: int = 1, round_mode: str = "up", call: Call) -> Value:
    name = to.lower().replace("float", "float32") if to == "FLOAT" else to.lower() if isinstance(to, str) else NAMES[to]
    return converted_to(x, name, bool(saturate), round_mode, call.lift)


@onnx_op("CastLike", since=15)
def cast_like(x: Value, target: Value, *, saturate: int = 1, round_mode: str = "up", call: Call) -> Value:
    return converted_to(x, type_name(target), bool(saturate), round_mode, call.lift)


def converted_to(x: Value, name: str, saturate: bool, round_mode: str, lift: Lift) -> Value:
    """A value with elements of another type."""
    if type_name(x) == name:
        return x
    if name == "string":
        return _written(decoded(x) if isinstance(x, Coded) else x)
    if type_name(x) == "string":
        x = _read(x, name)
    number = decoded(x) if isinstance(x, Coded) else lift(x)
    if name in CODED:
        return encoded(number, name, saturate, round_mode)
    if name.startswith("complex") or not name:
        raise FormatError("OnnxRunner", f"there is no cast to {name or 'this type'}")
    return number.cast(name)


def _written(x: Value) -> Host:
    """Numbers as texts, as short as they stay themselves."""
    array = on_host(x)
    texts = [str(bool(value)) if array.dtype.kind == "b" else str(value) for value in array.reshape(-1)]
    return numpy.array(texts, object).reshape(array.shape)


def _read(x: Host, name: str) -> Host:
    """Texts as numbers of the widest type of the kind."""
    if name.startswith(("int", "uint")):
        return numpy.array([int(text) for text in x.reshape(-1)], "int64").reshape(x.shape)
    kind = "float64" if name in ("float64", "bool") else "float32"
    return numpy.array([float(text) for text in x.reshape(-1)], kind).reshape(x.shape)
