"""tinygrad's element types and what its scripts ask of them."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from lazulite.ir import dtype as types
from lazulite.ir.dtype import STORED, DType
from lazulite.ir.dtype import dtypes as own
from lazulite.tensor.base import as_dtype, float_dtype

PyConst = bool | int | float
ConstType = PyConst
DTypeLike = DType | str


class _Names(type):
    """Whatever is set here, such as `default_float`, is set for all of Lazulite."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(own, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        setattr(own, name, value)


class dtypes(metaclass=_Names):
    """The element types by name, and questions about them.

    >>> from lazulite.interop.tinygrad.types import dtypes
    >>> dtypes.is_float(dtypes.half), dtypes.float.itemsize
    (True, 4)
    """

    bools = (own.bool,)
    uints = tuple([t for t in STORED if t.kind == "uint"])
    sints = tuple([t for t in STORED if t.kind == "int"])
    ints = uints + sints
    floats = tuple([t for t in STORED if t.is_float])
    fp8s = tuple([t for t in STORED if t.is_float and t.itemsize == 1])
    all = (*bools, *ints, *floats)
    int8s, int16s, int32s, int64s = [tuple([t for t in STORED if t.is_int and t.bits == n]) for n in (8, 16, 32, 64)]

    @staticmethod
    def is_float(x: DType) -> bool:
        return x.is_float

    @staticmethod
    def is_int(x: DType) -> bool:
        return x.is_int

    @staticmethod
    def is_unsigned(x: DType) -> bool:
        return x.kind == "uint"

    @staticmethod
    def is_bool(x: DType) -> bool:
        return x is own.bool

    @staticmethod
    def min(x: DType) -> Any:
        return x.min

    @staticmethod
    def max(x: DType) -> Any:
        return x.max

    @staticmethod
    def finfo(x: DType) -> tuple[int, int]:
        """The bits of the exponent and of the mantissa."""
        return x.exponent_bits, x.mantissa_bits

    @staticmethod
    def from_py(x: Any) -> DType:
        """The type that Python values become."""
        if isinstance(x, list | tuple):
            return types.promote(*map(dtypes.from_py, x)) if x else own.default_float
        if isinstance(x, bool):
            return own.bool
        return own.default_int if isinstance(x, int) else own.default_float


DTYPES_DICT: dict[str, DType] = {name: types.by_name(name) for name in types.names() if name not in ("void", "index")}


class InvalidType:
    """What has no value."""

    def __repr__(self) -> str:
        return "Invalid"


Invalid = InvalidType()


class AddrSpace(Enum):
    """Where memory is."""

    GLOBAL, LOCAL, REG = 1, 2, 3


truncate = {dtype: dtype.round for dtype in STORED}
"""For each type what a Python value becomes in it."""
to_dtype = partial(as_dtype, "to_dtype")


def least_upper_dtype(*ds: DType) -> DType:
    """The type at which operands meet."""
    return types.promote(*ds)


def least_upper_float(dt: DType) -> DType:
    """The type itself if it is a float, else the default one that holds it."""
    return float_dtype(dt)


def _to_np_dtype(dtype: DType) -> type | None:
    """NumPy's type, where it has one."""
    import numpy

    return getattr(numpy, "bool_" if dtype is own.bool else dtype.name, None)


def _from_np_dtype(npdtype: Any) -> DType:
    """The type that NumPy's is."""
    import numpy

    return types.by_name(numpy.dtype(npdtype).name)


def _to_torch_dtype(dtype: DType) -> Any:
    """PyTorch's type, where it has one."""
    import torch

    return getattr(torch, dtype.name, None)


def _from_torch_dtype(torchdtype: Any) -> DType:
    """The type that PyTorch's is."""
    return types.by_name(str(torchdtype).removeprefix("torch."))
