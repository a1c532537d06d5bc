"""Tensors on several devices: split along an axis, or whole on each of them.

A sharded tensor is a value like any other: what is computed from it equals what is computed from the same tensor on
one device, and `schedule/place.py` decides what each device does.  Its `device` is the tuple of the names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DeviceError, ShapeError
from lazulite.engine.execute import realize
from lazulite.engine.handles import Handle
from lazulite.engine.spread import layout_of
from lazulite.ir import ops
from lazulite.ir.placement import Placement, names_of, split
from lazulite.ir.uop import UOp
from lazulite.runtime.registry import Device
from lazulite.tensor.base import Base, DeviceName, detached, one_axis


class ShardMethods(Base):
    """Laying tensors out over devices."""

    __slots__ = ()
    _handle: Handle

    def shard(self, devices: Sequence[str], axis: int | None = None) -> Self:
        """This tensor on several devices: split along an axis, or (`axis` None) whole on each of them.

        The first devices have one element more along the axis where it does not go up; those that come too late get
        none.  Operations take tensors on the same devices, however each of them is laid out, and give what they give
        on one device; only a sum over the axis of a split adds in another order, that of the devices.  `to(device)`
        brings the tensor back to one.  As in tinygrad; there a split has to be even.  A single device is `to` it.

        >>> t = Tensor([1, 2, 3]).shard(("CPU:0", "CPU:1"), axis=0)
        >>> t.device, (t * 2).tolist(), t.sum().item()
        (('CPU', 'CPU:1'), [2, 4, 6], 6)
        """
        if isinstance(devices, str) or not devices:
            raise ArgumentError(
                "shard", f"devices is a sequence of names, got {devices!r}", hint='shard(("CPU:0", "CPU:1"), axis=0)'
            )
        names = Device.canonical(tuple(devices))
        if isinstance(names, str):
            return self.to(names)  # type: ignore[attr-defined, no-any-return]
        return self._laid_out(_placement(self, names, axis))

    def shard_(self, devices: Sequence[str], axis: int | None = None) -> Self:
        """`shard` in place: this tensor is on the devices from now on, in memory, and is returned.

        For parameters: `for p in nn.state.get_parameters(model): p.shard_(devices)`.

        >>> Tensor([1.0]).shard_(("CPU:0", "CPU:1")).device
        ('CPU', 'CPU:1')
        """
        moved = self.shard(devices, axis)
        return self._spread(moved.uop.arg) if moved is not self else self

    def shard_like(self, y: Self) -> Self:
        """This tensor laid out as another one of the same shape is (on one device: on that device).

        >>> y = Tensor([[1, 2], [3, 4]]).shard(("CPU:0", "CPU:1"), axis=1)
        >>> Tensor([[5, 6], [7, 8]]).shard_like(y).device
        ('CPU', 'CPU:1')
        """
        where = layout_of(y.uop)
        if where is None or isinstance(y.device, str):
            return self.to(y.device)  # type: ignore[attr-defined, no-any-return]
        if where.axis is not None and self.shape != y.shape:
            raise ShapeError(
                "shard_like", f"a tensor of shape {self.shape} cannot be split as one of shape {y.shape} is",
                about={"tensor": self, "like": y}, hint=f"shard(devices, axis={where.axis})",
            )  # fmt: skip
        return self._laid_out(where)

    def _spread(self, where: DeviceName | Placement) -> Self:
        """This tensor in memory there, with nothing of how it was made."""
        moved = UOp(ops.COPY, self.dtype, (detached(self.uop),), where)
        handle = Handle(moved, requires_grad=self._handle.requires_grad, leaf=True)
        realize([handle])
        return self.replace(self._made(handle, names_of(where)))  # type: ignore[attr-defined, no-any-return]

    def _laid_out(self, where: Placement) -> Self:
        return self._made(Handle(UOp(ops.COPY, self.dtype, (self.uop,), where)), where.devices)


def _placement(tensor: Base, names: tuple[str, ...], axis: int | None) -> Placement:
    if axis is None:
        return Placement(names)
    if not tensor.shape:
        raise ShapeError("shard", "a tensor of rank 0 has no axis to split", hint="shard(devices)", about={"x": tensor})
    along = one_axis("shard", axis, len(tensor.shape))
    size: Any = tensor.shape[along]
    if type(size) is not int:
        raise DeviceError(
            "shard", f"the size of axis {axis} varies, and no device could tell which part is its own",
            about={"x": tensor}, hint="shard another axis",
        )  # fmt: skip
    return split(names, along, size)
