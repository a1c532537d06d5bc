"""`Tensor`: the families of methods joined, and what ties them to the engine.

A tensor holds an engine handle and the name of its device.  Methods build `TENSOR` nodes; nothing is
computed before `realize`, `numpy`, `tolist`, `item` or a printout asks for values.  A write changes
which value the tensor stands for; tensors derived earlier keep the value they were made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.base.origin import Origin, user_frame
from lazulite.base.settings import SETTINGS, Context
from lazulite.engine.execute import realize
from lazulite.engine.handles import Handle
from lazulite.engine.storage import Storage, fill_of
from lazulite.engine.tracing import THREAD
from lazulite.engine.views import view, write
from lazulite.ir import ops
from lazulite.ir.calls import device_of
from lazulite.ir.dtype import STORED, DType
from lazulite.ir.ops import Op
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp, toposort
from lazulite.runtime.registry import Device
from lazulite.tensor.adapters import AdapterMethods
from lazulite.tensor.base import (
    DeviceLike,
    DeviceName,
    DTypeLike,
    Shape,
    as_dtype,
    constant,
    detached,
    everywhere,
    expanded,
    weak_dtype,
)
from lazulite.tensor.chance import ChanceMethods
from lazulite.tensor.custom import CustomMethods
from lazulite.tensor.draws import DrawMethods
from lazulite.tensor.exchange import ExchangeMethods
from lazulite.tensor.facts import FactMethods, destination
from lazulite.tensor.gradient import GradientMethods
from lazulite.tensor.guard import guarded
from lazulite.tensor.host import from_host
from lazulite.tensor.linalg import LinearAlgebraMethods
from lazulite.tensor.losses import LossMethods
from lazulite.tensor.matrices import MatrixMethods
from lazulite.tensor.neural import NeuralMethods
from lazulite.tensor.sharding import ShardMethods
from lazulite.tensor.spellings import spelled
from lazulite.tensor.statistics import StatisticsMethods

if TYPE_CHECKING:
    from lazulite.engine.explain import Explanation

_VIEWS = ops.MOVEMENT - {ops.EXPAND}
"""Movements whose result stands for a place in the source when it is written to."""


@guarded
@spelled
class Tensor(
    AdapterMethods,
    LossMethods,
    StatisticsMethods,
    MatrixMethods,
    NeuralMethods,
    LinearAlgebraMethods,
    DrawMethods,
    ChanceMethods,
    FactMethods,
    GradientMethods,
    ExchangeMethods,
    CustomMethods,
    ShardMethods,
):
    """An array of one element type on one device, computed when it is needed.

    `data` is a number, nested sequences of numbers, bytes, a NumPy array, another tensor (of any library that has
    DLPack) or a node; `dtype` converts it.  A `pathlib.Path` is the file there, as uint8 or what `dtype` says: only
    what is needed of it is read, and writing to the tensor writes to the file, if it may be written.  With
    `requires_grad=False` no gradient is ever kept; with True a realized descendant remembers how it was made until
    `backward`.

    >>> (Tensor([1.0, 2.0]) * 3).tolist()
    [3.0, 6.0]
    """

    __slots__ = ("__weakref__", "_device", "_handle")
    _handle: Handle
    _device: DeviceName

    def __init__(
        self, data: Any, device: DeviceLike = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
    ) -> None:
        given = None if dtype is None else as_dtype("Tensor", dtype)
        self._device = Device.DEFAULT if device is None else Device.canonical(device)
        if isinstance(data, Size):
            data = constant(weak_dtype(data), data)
        if hasattr(data, "__dlpack__") and not isinstance(data, Tensor) and not hasattr(data, "tobytes"):
            data = self.from_dlpack(data, device)  # another library's tensor
        if isinstance(data, Tensor):
            moved = data if data._device == self._device or device is None else data.to(self._device)
            self._device = moved._device
            value = moved.uop if given is None else moved.uop.cast(given)
            self._handle = Handle(value, requires_grad=requires_grad)
        elif isinstance(data, UOp):
            if data.dtype not in STORED:
                raise DTypeError(
                    "Tensor", f"a node has to be a value of elements, got {data.op.name} of {data.dtype.name}"
                )
            self._device = Device.canonical(device_of(data) or self._device)
            self._handle = Handle(data if given is None else data.cast(given), requires_grad=requires_grad)
        else:
            self._handle = self._from_host(data, given, requires_grad)
        self._name_line()

    def _from_host(self, data: Any, dtype: DType | None, requires_grad: bool | None) -> Handle:
        """The handle of data of the host, in the type and on the device, or the devices, that are asked for."""
        storage = from_host(data, dtype, self._device if isinstance(self._device, str) else self._device[0])
        node = storage.node()
        value = node if dtype is None else node.cast(dtype)
        if value is node and isinstance(self._device, str):
            return Handle(node, storage, requires_grad=requires_grad, leaf=True)
        value = value if isinstance(self._device, str) else everywhere(value, self._device)
        handle = Handle(value, requires_grad=requires_grad, leaf=True)
        realize([handle])
        return handle

    # --- what the families build on ---------------------------------------------------------------

    @classmethod
    def _made(cls, handle: Handle, device: DeviceName) -> Self:
        self = object.__new__(cls)
        self._handle, self._device = handle, device
        self._name_line()
        return self

    def _name_line(self) -> None:
        """Note the user's line in the nodes that were made on its behalf."""
        node = self._handle.value
        if node.origin is not None:
            return
        node.origin = origin = user_frame()
        if origin is None:  # a thread that runs nothing but this package
            return
        pending = [source for source in node.src if source.origin is None]
        while pending:
            node = pending.pop()
            node.origin = origin
            pending += [source for source in node.src if source.origin is None]

    @property
    def uop(self) -> UOp:
        """The `TENSOR` node of the current value.

        >>> (Tensor([1]) + 1).uop.op
        ADD
        """
        return self._handle.value

    @property
    def shape(self) -> Shape:
        """The size of each axis.

        >>> Tensor([[1, 2, 3]]).shape
        (1, 3)
        """
        return self._handle.value.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements.

        >>> Tensor([1, 2]).dtype
        dtypes.int32
        """
        return self._handle.value.dtype

    @property
    def device(self) -> DeviceName:
        """The canonical name of the device; the names of all of them where the tensor is on several (`shard`).

        >>> Tensor([1]).device
        'CPU'
        """
        return self._device

    @property
    def origin(self) -> Origin | None:
        """The line of the program that made the current value, if it is known.

        >>> Tensor([1]).origin is None
        False
        """
        origin = self._handle.value.origin
        return origin if isinstance(origin, Origin) else None

    def _derived(self, uop: UOp) -> Self:
        return self._made(Handle(detached(uop) if THREAD.constant else uop), self._device)

    @classmethod
    def _from_uop(cls, uop: UOp, device: DeviceLike) -> Self:
        name = Device.DEFAULT if device is None else Device.canonical(device)
        if not isinstance(name, str):
            return cls._made(Handle(everywhere(uop, name), leaf=True), name)
        value = uop
        while value.op is ops.EXPAND or value.op is ops.RESHAPE:
            value = value.src[0]
        if value.op is not ops.CONST:
            return cls._made(Handle(uop, leaf=True), name)
        storage = Storage(uop.dtype, uop.shape, name, fill=value.value)
        return cls._made(Handle(storage.node(), storage, leaf=True), name)

    def _moved(self, op: Op, arg: Any) -> Self:
        handle = self._handle
        node = UOp(op, self.dtype, (detached(handle.value) if THREAD.constant else handle.value,), arg)
        if op not in _VIEWS:
            return self._made(Handle(node, shared=op is ops.EXPAND), self._device)
        return self._made(view(handle, node, (op.name, arg)), self._device)

    def _reread(self, dtype: DType) -> Self:
        node = UOp(ops.BITCAST, dtype, (self.uop,))
        return self._made(view(self._handle, node, (ops.BITCAST.name, dtype)), self._device)

    # --- writing ----------------------------------------------------------------------------------

    def assign(self, x: Any) -> Self:
        """Replace the contents; the tensor keeps its memory.  A view writes its place in its base.

        `x` broadcasts to this shape and must have this dtype (Python numbers and lists of them take it).
        Tensors that were derived before keep the old values.  Returns this tensor.

        >>> t = Tensor([1, 2, 3])
        >>> before = t + 0
        >>> t[1:].assign(Tensor([7, 8])).tolist(), t.tolist(), before.tolist()
        ([7, 8], [1, 7, 8], [1, 2, 3])
        """
        other = self._tensor("assign", x)
        weak = not isinstance(x, Tensor) and not hasattr(x, "dtype") and other.dtype.is_float <= self.dtype.is_float
        if weak and other.dtype is not self.dtype:
            other = type(self)(x, device=self.device, dtype=self.dtype)
        if other.dtype is not self.dtype:
            raise DTypeError(
                "assign", f"the dtype stays {self.dtype.name}, got {other.dtype.name}",
                about={"target": self, "value": other}, hint=f"cast the value: .cast(dtypes.{self.dtype.name})",
            )  # fmt: skip
        if not _broadcasts(other.shape, self.shape):
            raise ShapeError(
                "assign", f"{other.shape} does not broadcast to {self.shape}", about={"target": self, "value": other}
            )
        self._write(expanded(other.uop, self.shape))
        return self

    def _write(self, value: UOp) -> None:
        if self._handle.shared:
            raise ShapeError(
                "assign", "an expanded tensor has several elements in one place", about={"target": self},
                hint="write to the tensor before expand, or to a clone()",
            )  # fmt: skip
        if self._handle.value.op is ops.AFTER and self._handle.value not in toposort(value):
            realize([self._handle])  # what a kernel leaves may still be read: it runs before its memory is replaced
        write(self._handle, detached(value) if THREAD.constant else value, user_frame())
        self._name_line()

    def replace(self, x: Self) -> Self:
        """Make this tensor stand for another one's value and memory.

        >>> t = Tensor([1, 2])
        >>> t.replace(Tensor([3])).tolist()
        [3]
        """
        if not isinstance(x, Tensor):
            raise DTypeError("replace", f"a tensor is replaced by a tensor, got {type(x).__name__}")
        self._handle, self._device = x._handle, x._device
        return self

    # --- realizing --------------------------------------------------------------------------------

    def realize(self, *others: Self) -> Self:
        """Compute this tensor (and the others) now.

        >>> Tensor([1, 2]).realize().tolist()
        [1, 2]
        """
        realize([self._handle, *[t._handle for t in others]])
        return self

    def explain(self) -> Explanation:
        """What `realize` would do: its kernels, their steps, and the reasons.  Nothing runs.

        >>> len((Tensor([1.0, 2.0]) * 3).sum().explain().kernels)
        1
        """
        from lazulite.engine.explain import explain  # brings the compiler along, which a finished plan does without

        return explain([self._handle])

    @property
    def requires_grad(self) -> bool | None:
        """Whether gradients are wanted: True, False (never), or None (where there is storage).

        >>> Tensor([1.0], requires_grad=True).requires_grad
        True
        """
        return self._handle.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool | None) -> None:
        self._handle.requires_grad = wanted

    def contiguous(self) -> Self:
        """The same values in row-major order (they always are, once they are in memory).

        One number repeated, which needs no memory to read, gets memory of its own to write to.

        >>> Tensor([[1, 2]]).T.contiguous().tolist()
        [[1], [2]]
        """
        value = self.uop
        if value.op is ops.EXPAND:
            constant = value.src[0].op is ops.CONST
        else:
            constant = value.op is ops.BUFFER and fill_of(value) is not None
        return self.clone() if constant else self._derived(value)

    def clone(self, device: DeviceLike = None) -> Self:
        """A copy with memory of its own, here or on another device.

        >>> a = Tensor([2])
        >>> b = a.clone()
        >>> b.assign(Tensor([7])).tolist(), a.tolist()
        ([7], [2])
        """
        name = self._device if device is None else Device.canonical(device)
        if isinstance(name, str) or name == self._device:
            return self._made(Handle(UOp(ops.COPY, self.dtype, (self.uop,), name)), name)
        return self._made(Handle(everywhere(self.uop, name)), name)

    def to(self, *args: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """This tensor on another device, in another type, or like another tensor; itself where nothing changes.

        Without arguments it goes to the default device.  To several devices it goes whole, as by `shard(devices)`.

        >>> Tensor([1]).to("PYTHON").device, Tensor([1.5]).to("int32").tolist()
        ('PYTHON', [1])
        """
        given, name = destination("to", *args, dtype=dtype, device=device)
        home = self._device if name is None and given is not None else None
        where = home or (Device.DEFAULT if name is None else Device.canonical(name))
        moved = self if where == self._device else self.clone(where)
        return moved if given in (None, moved.dtype) else moved.cast(given)

    def to_(self, *args: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """`to` in place: this tensor stands for the result from now on, and is returned.

        >>> Tensor([1]).to_("PYTHON").device
        'PYTHON'
        """
        return self.replace(self.to(*args, dtype=dtype, device=device))

    def cpu(self) -> Self:
        """This tensor on the device CPU.

        >>> Tensor([1]).cpu().device
        'CPU'
        """
        return self.to("CPU")

    def detach_(self) -> Self:
        """`detach` in place: this tensor forgets how it was made.

        >>> Tensor([1.0]).detach_().tolist()
        [1.0]
        """
        return self.replace(self.detach())

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad`; returns this tensor.

        >>> Tensor([1.0]).requires_grad_().requires_grad
        True
        """
        self.requires_grad = requires_grad
        return self

    @staticmethod
    def train(mode: bool = True) -> Context:
        """``with Tensor.train():`` makes layers behave as in training.

        >>> with Tensor.train():
        ...     Tensor.training()
        True
        """
        return Context(TRAINING=int(mode))

    @staticmethod
    def training() -> bool:
        """Whether layers behave as in training now.

        >>> Tensor.training()
        False
        """
        return bool(SETTINGS.TRAINING)


def _broadcasts(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the last axes of a shape equal those of the target, or are 1."""
    if len(source) > len(target):
        return False
    return all(s in (1, t) for s, t in zip(reversed(source), reversed(target), strict=False))
