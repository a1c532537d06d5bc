"""What a tensor is: predicates and layout; and tensors and casts like another.

A tensor's elements are in row-major order whatever views it came from, so strides follow from the shape.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, Self

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.dtype import names as dtype_names
from lazulite.tensor.base import Base, DeviceLike, DTypeLike, as_dtype, one_axis
from lazulite.tensor.convert import ConvertMethods
from lazulite.tensor.create import CreateMethods
from lazulite.tensor.host import HostMethods
from lazulite.tensor.movement import MovementMethods


class FactMethods(MovementMethods, ConvertMethods, HostMethods, CreateMethods):
    """Facts about a tensor, and others like it."""

    __slots__ = ()

    # --- sizes and layout -------------------------------------------------------------------------------

    def dim(self) -> builtins.int:
        """The number of axes.

        >>> Tensor.ones(2, 3).dim()
        2
        """
        return len(self.shape)

    def ndimension(self) -> builtins.int:
        """`dim` by its other name.

        >>> Tensor.ones(2, 3).ndimension()
        2
        """
        return len(self.shape)

    def nelement(self) -> builtins.int:
        """`numel` by its other name.

        >>> Tensor.ones(2, 3).nelement()
        6
        """
        return self.numel()

    def stride(self, dim: builtins.int | None = None) -> Any:
        """How many elements apart neighbours along each axis (or this one) are.

        >>> Tensor.ones(2, 3).stride()
        (3, 1)
        """
        steps = tuple([max(math.prod(self.shape[at + 1 :]), 1) for at in range(len(self.shape))])
        return steps if dim is None else steps[one_axis("stride", dim, len(steps))]

    def storage_offset(self) -> builtins.int:
        """Where the elements begin in their memory: always 0.

        >>> Tensor([1, 2])[1:].storage_offset()
        0
        """
        return 0

    def is_contiguous(self) -> builtins.bool:
        """True: elements are in row-major order.

        >>> Tensor.ones(2, 3).T.is_contiguous()
        True
        """
        return True

    # --- predicates -------------------------------------------------------------------------------------

    def is_signed(self) -> builtins.bool:
        """Whether the type has negative values.

        >>> Tensor([1], dtype="uint8").is_signed()
        False
        """
        return self.dtype.kind in ("int", "float")

    def is_complex(self) -> builtins.bool:
        """False: all numbers are real.

        >>> Tensor([1.0]).is_complex()
        False
        """
        return False

    def is_conj(self) -> builtins.bool:
        """False: all numbers are real.

        >>> Tensor([1.0]).is_conj()
        False
        """
        return False

    def is_neg(self) -> builtins.bool:
        """False: no tensor is a pending negative.

        >>> (-Tensor([1.0])).is_neg()
        False
        """
        return False

    def resolve_neg(self) -> Self:
        """This tensor, see `is_neg`.

        >>> Tensor([1.0]).resolve_neg().tolist()
        [1.0]
        """
        return self

    def resolve_conj(self) -> Self:
        """This tensor, see `is_conj`.

        >>> Tensor([1.0]).resolve_conj().tolist()
        [1.0]
        """
        return self

    def conj(self) -> Self:
        """The complex conjugate: this tensor, as all numbers are real.

        >>> Tensor([1.0]).conj().tolist()
        [1.0]
        """
        return self

    def conj_physical(self) -> Self:
        """`conj` by its other name.

        >>> Tensor([1.0]).conj_physical().tolist()
        [1.0]
        """
        return self

    def is_same_size(self, other: Self) -> builtins.bool:
        """Whether shapes are equal.

        >>> Tensor([1]).is_same_size(Tensor([2]))
        True
        """
        return self.shape == other.shape

    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not zero, looked up now; ShapeError for several.

        >>> Tensor([2.0]).is_nonzero()
        True
        """
        return bool(self._only("is_nonzero", "count_nonzero() for several"))

    def equal(self, other: Self) -> builtins.bool:
        """Whether shapes and all elements are equal, looked up now.

        >>> Tensor([1, 2]).equal(Tensor([1, 2]))
        True
        """
        if not isinstance(other, Base):
            raise DTypeError("equal", f"a tensor is compared with a tensor, got {type(other).__name__}")
        gate: Any = self == other if self.shape == other.shape else False
        return bool(gate.all().item()) if isinstance(gate, Base) else False  # type: ignore[attr-defined]

    def get_device(self) -> builtins.int:
        """-1, as for every tensor that is on no numbered accelerator.

        >>> Tensor([1]).get_device()
        -1
        """
        return -1

    # --- types ------------------------------------------------------------------------------------------

    def type(self, dtype: DTypeLike | None = None) -> Any:
        """The name of the dtype; with one given, the values in that type.

        >>> Tensor([1.0]).type(), Tensor([1.5]).type("int32").tolist()
        ('float32', [1])
        """
        return self.dtype.name if dtype is None else self.cast(dtype)

    def type_as(self, other: Self) -> Self:
        """The values in the type of another tensor.

        >>> Tensor([1.5]).type_as(Tensor([1])).tolist()
        [1]
        """
        return self.cast(other.dtype)

    def char(self) -> Self:
        """Cast to int8.

        >>> Tensor([1.5]).char().dtype
        dtypes.int8
        """
        return self.cast(dtypes.int8)

    def byte(self) -> Self:
        """Cast to uint8.

        >>> Tensor([1.5]).byte().dtype
        dtypes.uint8
        """
        return self.cast(dtypes.uint8)

    # --- others like it ---------------------------------------------------------------------------------

    def new_full(
        self, size: Any, fill_value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike = None
    ) -> Self:
        """One value in a shape, with the type and place of this tensor.

        >>> Tensor([1.0]).new_full((2,), 3).tolist()
        [3.0, 3.0]
        """
        return type(self).full(size, fill_value, dtype or self.dtype, device or self.device)

    def new_zeros(self, *size: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Zeros in a shape, with the type and place of this tensor.

        >>> Tensor([1]).new_zeros(2).tolist()
        [0, 0]
        """
        return type(self).zeros(*size, dtype=dtype or self.dtype, device=device or self.device)

    def new_ones(self, *size: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Ones in a shape, with the type and place of this tensor.

        >>> Tensor([1]).new_ones(2).tolist()
        [1, 1]
        """
        return type(self).ones(*size, dtype=dtype or self.dtype, device=device or self.device)

    def new_empty(self, *size: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """`empty` in a shape, with the type and place of this tensor.

        >>> Tensor([1]).new_empty(2).shape
        (2,)
        """
        return type(self).empty(*size, dtype=dtype or self.dtype, device=device or self.device)

    def new_tensor(self, data: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Data as a tensor of the type and place of this one.

        >>> Tensor([1.0]).new_tensor([2, 3]).tolist()
        [2.0, 3.0]
        """
        return type(self)(data, device=device or self.device, dtype=dtype or self.dtype)

    # --- written whole ----------------------------------------------------------------------------------

    def fill_(self, value: Any) -> Self:
        """Write a number to every element.

        >>> Tensor([1, 2]).fill_(7).tolist()
        [7, 7]
        """
        if isinstance(value, Base) and value.shape:
            raise ShapeError("fill_", f"the value is a number, got {value.shape}", about={"value": value})
        return self.assign(value.cast(self.dtype) if isinstance(value, Base) else value)  # type: ignore[attr-defined]

    def zero_(self) -> Self:
        """Write zeros.

        >>> Tensor([1, 2]).zero_().tolist()
        [0, 0]
        """
        return self.assign(0)

    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> Self:
        """Write the values of another tensor, cast to this type and broadcast; from any device.

        >>> Tensor([1, 2]).copy_(Tensor([7.5])).tolist()
        [7, 7]
        """
        source: Any = src if isinstance(src, Base) else self._tensor("copy_", src)
        return self.assign(source.to(self.device).cast(self.dtype))


def destination(function: str, *given: Any, dtype: Any = None, device: Any = None) -> tuple[DType | None, DeviceLike]:
    """The type and the device that the arguments of `to` name, in any order: dtypes, devices, or a tensor of both."""
    for each in given:
        if isinstance(each, Base):
            dtype, device = each.dtype, each.device
        elif isinstance(each, DType) or (isinstance(each, str) and each in dtype_names()):
            dtype = each
        elif isinstance(each, str | tuple | list):
            device = each
        elif each is not None and not isinstance(each, bool):
            raise DTypeError(function, f"goes to a device, a dtype or like a tensor, got {type(each).__name__}")
    return None if dtype is None else as_dtype(function, dtype), device
