"""Other types for the same values, and the same value without its history."""

from __future__ import annotations

import builtins
from typing import Self

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import Base, DTypeLike, as_dtype, detached


class ConvertMethods(Base):
    """Casts."""

    __slots__ = ()

    def cast(self, dtype: DTypeLike) -> Self:
        """The values in another type: floats to integers saturate and NaN gives 0; integers wrap.

        >>> Tensor([1.7, -1.7]).cast("int32").tolist()
        [1, -1]
        """
        return self._derived(self.uop.cast(as_dtype("cast", dtype)))

    def bitcast(self, dtype: DTypeLike) -> Self:
        """The same bits as another type; where the widths differ the last axis grows or shrinks.

        ShapeError where the last axis does not divide, DTypeError for bools of another width.  No gradient.

        >>> Tensor([1.0]).bitcast("int32").tolist()
        [1065353216]
        """
        new, old = as_dtype("bitcast", dtype), self.dtype
        if new.itemsize != old.itemsize:
            if dtypes.bool in (new, old):
                raise DTypeError("bitcast", f"{old.name} and {new.name} differ in width", about={"tensor": self})
            if not self.shape or self.shape[-1] * old.itemsize % new.itemsize:
                raise ShapeError(
                    "bitcast",
                    f"the last axis of {self.shape} {old.name} does not divide into {new.name}",
                    about={"tensor": self},
                )
        return self._reread(new)

    def detach(self) -> Self:
        """The same value, through which no gradient flows.

        >>> Tensor([2.0]).detach().tolist()
        [2.0]
        """
        return self._derived(detached(self.uop))

    def is_floating_point(self) -> builtins.bool:
        """Whether the type is a float.

        >>> Tensor([2.0]).is_floating_point()
        True
        """
        return self.dtype.is_float

    def bfloat16(self) -> Self:
        """Cast to bfloat16.

        >>> Tensor([1.0]).bfloat16().dtype
        dtypes.bfloat16
        """
        return self.cast(dtypes.bfloat16)

    def half(self) -> Self:
        """Cast to float16.

        >>> Tensor([1.0]).half().dtype
        dtypes.float16
        """
        return self.cast(dtypes.float16)

    def float(self) -> Self:
        """Cast to float32.

        >>> Tensor([1]).float().dtype
        dtypes.float32
        """
        return self.cast(dtypes.float32)

    def double(self) -> Self:
        """Cast to float64.

        >>> Tensor([1]).double().dtype
        dtypes.float64
        """
        return self.cast(dtypes.float64)

    def short(self) -> Self:
        """Cast to int16.

        >>> Tensor([1]).short().dtype
        dtypes.int16
        """
        return self.cast(dtypes.int16)

    def int(self) -> Self:
        """Cast to int32.

        >>> Tensor([1.5]).int().dtype
        dtypes.int32
        """
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Cast to int64.

        >>> Tensor([1.5]).long().dtype
        dtypes.int64
        """
        return self.cast(dtypes.int64)

    def bool(self) -> Self:
        """Cast to bool: true where the value is not zero.

        >>> Tensor([0.0, 0.5]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool)
