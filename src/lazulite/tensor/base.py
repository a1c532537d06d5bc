"""What every family of Tensor methods builds on.

`Base` names the few things that the families use of a tensor: its value node, the constructors of
lazy results, and the rules by which operands meet (weak Python scalars, promotion, broadcasting,
axes).  `tensor.tensor.Tensor` supplies the members that raise here.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Self, SupportsIndex

from lazulite.base.errors import AxisError, DeviceError, DTypeError, ShapeError, nearest, point_home
from lazulite.engine.handles import Handle
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.placement import Placement
from lazulite.ir.size import Size, least, most
from lazulite.ir.uop import UOp

Shape = tuple[int, ...]
Axes = int | Sequence[int] | None
DTypeLike = DType | str
DeviceName = str | tuple[str, ...]
"""The canonical name of a device, or those of several."""
DeviceLike = str | Sequence[str] | None
"""A device, several, or (None) the default one."""


class Base:
    """The members of a tensor that its families of methods rely on."""

    __slots__ = ()
    __array_ufunc__ = None
    """NumPy leaves operators between its arrays and tensors to the tensor."""

    def __init__(
        self, data: Any, device: DeviceLike = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
    ) -> None:
        raise NotImplementedError

    @property
    def uop(self) -> UOp:
        """The `TENSOR` node of the current value."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    @property
    def device(self) -> DeviceName:
        raise NotImplementedError

    def _derived(self, uop: UOp) -> Self:
        """A lazy tensor on the same device, made from this one by the public method running now."""
        raise NotImplementedError

    @classmethod
    def _made(cls, handle: Handle, device: DeviceName) -> Self:
        """A tensor with a handle of its own."""
        raise NotImplementedError

    @classmethod
    def _from_uop(cls, uop: UOp, device: DeviceLike) -> Self:
        """A lazy tensor that was made from no other."""
        raise NotImplementedError

    def _moved(self, op: Op, arg: Any) -> Self:
        """A view: the movement of this tensor, which stands for its place in the base when written to."""
        raise NotImplementedError

    def _reread(self, dtype: DType) -> Self:
        """A view: the bits of this tensor as another type."""
        raise NotImplementedError

    def assign(self, x: Any) -> Self:
        raise NotImplementedError

    # --- operands -------------------------------------------------------------------------------

    def _tensor(self, function: str, other: Any) -> Self:
        """The other operand as a tensor on this device; a Python scalar takes its type from this one."""
        if isinstance(other, Base):
            if other.device != self.device:
                raise DeviceError(
                    function,
                    f"operands are on different devices, {self.device} and {other.device}",
                    about={"left": self, "right": other},
                    hint=f"move one of them: other.to({self.device!r})",
                )
            return other  # type: ignore[return-value]
        value = plain_scalar(other)
        if value is None:
            return type(self)(other, device=self.device)
        return self._derived(constant(weak_dtype(value, self.dtype), value))

    def _matched(self, function: str, *others: Any) -> list[UOp]:
        """The nodes of this tensor and the others in their common type and shape; rank 0 stays rank 0."""
        return match(function, (self, *[self._tensor(function, other) for other in others]))

    def _floating(self) -> UOp:
        """The value node, integers and bools as floats of the default type."""
        return self.uop.cast(float_dtype(self.dtype))


# --- scalars and types -------------------------------------------------------------------------


def plain_scalar(value: Any) -> Scalar | None:
    """The Python number that a scalar operand is; None for everything else."""
    if isinstance(value, (bool, int, float, Size)):
        return value
    if getattr(value, "shape", None) == () and hasattr(value, "item") and not isinstance(value, Base):
        return value.item()  # type: ignore[no-any-return]
    return None


def weak_dtype(value: Scalar, beside: DType | None = None) -> DType:
    """The type of a Python scalar beside a tensor: the tensor's, unless its kind cannot hold the value."""
    if isinstance(value, bool):
        return beside or dtypes.bool
    if isinstance(value, (int, Size)):
        if beside is not None and beside is not dtypes.bool:
            return beside
        default = dtypes.default_int
        return default if default.min <= value <= default.max else dtypes.int64
    return beside if beside is not None and beside.is_float else dtypes.default_float


def constant(dtype: DType, value: Scalar) -> UOp:
    """A constant (of a size that varies, its value); OverflowError where an integer does not fit."""
    if isinstance(value, Size):
        for end in (least(value), most(value)):
            fitted(dtype, end)
        return value.node.cast(dtype)
    return UOp.const(dtype, fitted(dtype, value))


def fitted(dtype: DType, value: Scalar) -> Scalar:
    """A Python number as an element of a type; OverflowError where an integer does not fit."""
    if isinstance(value, int) and dtype is not dtypes.bool:
        low, high = (-dtype.largest, dtype.largest) if dtype.is_float else (dtype.min, dtype.max)
        if not low <= value <= high:
            error = OverflowError(f"the integer {value} does not fit {dtype.name} ({low} to {high})")
            point_home(error)
            raise error
    return dtype.convert(value)


def as_dtype(function: str, dtype: DTypeLike) -> DType:
    """A type given as itself or by name."""
    try:
        found = dtype if isinstance(dtype, DType) else types.by_name(dtype)
    except (KeyError, TypeError):
        known = sorted(t.name for t in types.STORED)
        raise DTypeError(
            function,
            f"{dtype!r} is no dtype",
            rule=f"The dtypes are {', '.join(known)}.",
            hint=nearest(str(dtype), known),
        ) from None
    if found not in types.STORED:
        raise DTypeError(function, f"a tensor has no elements of {found.name}: it is a type of the compiler's own")
    return found


def float_dtype(dtype: DType) -> DType:
    """The type of a result that is not an integer."""
    return dtype if dtype.is_float else types.promote(dtype, dtypes.default_float)


def wide_dtype(dtype: DType) -> DType:
    """The type in which a composed float function computes before it rounds once."""
    return types.promote(float_dtype(dtype), dtypes.float32)


def everywhere(node: UOp, devices: tuple[str, ...]) -> UOp:
    """The value whole on each of several devices."""
    return UOp(ops.COPY, node.dtype, (node,), Placement(devices))


def detached(node: UOp) -> UOp:
    """The same value without its history."""
    return UOp(ops.DETACH, node.dtype, (node,))


# --- shapes ------------------------------------------------------------------------------------


def match(function: str, tensors: Sequence[Base]) -> list[UOp]:
    """The nodes in their common type and shape; rank 0 stays rank 0."""
    nodes = [t.uop for t in tensors]
    if len({(node.dtype, node.shape) for node in nodes}) == 1:
        return nodes
    dtype = types.promote(*[node.dtype for node in nodes])
    shape = broadcast_shape(function, tensors)
    return [spread(node.cast(dtype), shape) for node in nodes]


def spread(node: UOp, shape: Shape) -> UOp:
    """The node broadcast to the shape; a node of rank 0 already stands beside any shape."""
    return node if node.shape in ((), shape) else UOp(ops.EXPAND, node.dtype, (node,), shape)


def expanded(node: UOp, shape: Shape) -> UOp:
    """The node broadcast to the shape, rank 0 too."""
    return node if node.shape == shape else UOp(ops.EXPAND, node.dtype, (node,), shape)


def counted(shape: Shape, axis: int) -> UOp:
    """0, 1, 2, .. along an axis, in a shape, as int32."""
    count = UOp(ops.IOTA, dtypes.int32, (), shape[axis])
    column = UOp(ops.RESHAPE, dtypes.int32, (count,), (shape[axis],) + (1,) * (len(shape) - axis - 1))
    return expanded(column, shape)


def broadcast_shape(function: str, tensors: Sequence[Base]) -> Shape:
    """The shape at which operands meet: axes are aligned at the end, and 1 gives way."""
    shapes = {t.shape for t in tensors}
    if len(shapes) == 1:
        return shapes.pop()
    rank = max(map(len, shapes))
    columns = list(zip(*[(1,) * (rank - len(shape)) + shape for shape in shapes], strict=True))
    sizes = [set(column) - {1} or {1} for column in columns]
    if any(len(size) > 1 for size in sizes):
        raise ShapeError(
            function,
            "shapes do not broadcast: " + " and ".join(str(t.shape) for t in tensors),
            about={f"operand {number}": t for number, t in enumerate(tensors, 1)},
            rule="Aligned at the last axis, sizes must be equal or 1.",
        )
    return tuple([size.pop() for size in sizes])


def sizes_argument(function: str, first: Any, rest: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The sizes of a shape given as one sequence or as several arguments."""
    given = (first, *rest) if rest or not isinstance(first, Sequence) else tuple(first)
    try:
        return tuple([size if size is None or isinstance(size, Size) else operator.index(size) for size in given])
    except TypeError:
        raise ShapeError(function, f"a shape consists of integers, got {given}") from None


def is_inside(begin: int, end: int, size: int) -> bool:
    """Whether a box lies within an axis, whatever the sizes that vary are."""
    return min(least(begin), least(end - begin), least(size - end)) >= 0


def one_axis(function: str, axis: SupportsIndex, rank: int) -> int:
    """An axis counted from the front; AxisError where there is none."""
    try:
        number = operator.index(axis)
    except TypeError:
        raise AxisError(function, f"an axis is an integer, got {axis!r}") from None
    if isinstance(axis, bool):
        raise AxisError(function, f"an axis is an integer, not {axis}")
    if not -max(rank, 1) <= number < max(rank, 1):
        raise AxisError(
            function,
            f"axis {number} is outside a shape of rank {rank}",
            rule=f"Axes run from {-max(rank, 1)} to {max(rank, 1) - 1}.",
        )
    return number % max(rank, 1)


def some_axes(function: str, axes: Axes, rank: int) -> tuple[int, ...]:
    """The axes counted from the front, ascending; all of them for None."""
    if axes is None:
        return tuple(range(rank))
    given = list(axes) if isinstance(axes, Sequence) else [axes]
    found = sorted(one_axis(function, axis, rank) for axis in given)
    if len(set(found)) < len(found):
        raise AxisError(function, f"an axis is named twice in {tuple(given)}")
    return tuple(found) if rank else ()
