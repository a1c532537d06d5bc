"""Names of tinygrad's `Tensor` that concern its compiler, as what they come to here; and hashes and files.

Each is a few lines over what the other families and the engine offer.
"""

from __future__ import annotations

from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.engine.handles import Handle
from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.size import variables_in
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.tensor.base import DeviceLike, DTypeLike, as_dtype, constant, weak_dtype
from lazulite.tensor.products import ProductMethods
from lazulite.tensor.random import RandomMethods


class AdapterMethods(ProductMethods, RandomMethods):
    """tinygrad's names."""

    __slots__ = ()
    _handle: Handle

    # --- operations of the intermediate representation ------------------------------------------------------

    def alu(self, op: Op | str, *src: Any) -> Self:
        """An elementwise operation of the intermediate representation, by its record or its name.

        >>> Tensor([1, 2]).alu("add", Tensor([3, 4])).tolist()
        [4, 6]
        """
        record = ops.OPS.get(op.lower()) if isinstance(op, str) else op
        if not isinstance(record, Op) or record.family != "elementwise" or record.result is None:
            raise ArgumentError("alu", f"{op!r} is no elementwise operation")
        if record.operands != 1 + len(src):
            raise ArgumentError("alu", f"{record.name} has {record.operands} operands, got {1 + len(src)}")
        return self._derived(UOp.apply(record, *[*self._matched("alu", *src)]))

    def ufix(self, x: Any) -> Self:
        """A number as a tensor of the type of this one; a tensor as itself.

        >>> Tensor([1.5]).ufix(2).dtype
        dtypes.float32
        """
        return self._tensor("ufix", x)

    def usum(self, *uops: Any) -> Self:
        """The sum of this and the others.

        >>> Tensor([1]).usum(2, Tensor([3])).tolist()
        [6]
        """
        total = self
        for each in uops:
            total = total + each
        return total

    def uprod(self, *uops: Any) -> Self:
        """The product of this and the others.

        >>> Tensor([2]).uprod(3, Tensor([4])).tolist()
        [24]
        """
        total = self
        for each in uops:
            total = total * each
        return total

    @classmethod
    def const(cls, b: Scalar, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """A number as a tensor without axes.

        >>> Tensor.const(2.5).item()
        2.5
        """
        return cls._from_uop(constant(weak_dtype(b) if dtype is None else as_dtype("const", dtype), b), device)

    @classmethod
    def invalids(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """`empty` by its other name.

        >>> Tensor.invalids(2, 3).shape
        (2, 3)
        """
        return cls.empty(*shape, dtype=dtype, device=device)

    def contiguous_backward(self) -> Self:
        """The same values; gradients are in row-major order anyway.

        >>> Tensor([1.0]).contiguous_backward().tolist()
        [1.0]
        """
        return self._derived(self.uop)

    def image_dot(self, w: Any, dtype: DTypeLike | None = None) -> Self:
        """`dot`: no device here keeps matrices as images.

        >>> Tensor([1, 2]).image_dot(Tensor([3, 4])).item()
        11
        """
        return self.dot(w, dtype)

    def image_conv2d(
        self, weight: Self, bias: Self | None = None, groups: int = 1, stride: Any = 1, dilation: Any = 1,
        padding: Any = 0, dtype: DTypeLike | None = None,
    ) -> Self:  # fmt: skip
        """`conv2d`: no device here keeps tensors as images.

        >>> Tensor.ones(1, 1, 3, 3).image_conv2d(Tensor.ones(1, 1, 3, 3)).item()
        9.0
        """
        return self.conv2d(weight, bias, groups, stride, dilation, padding, dtype)

    # --- functions of parameters --------------------------------------------------------------------------

    def as_param(self, slot: int) -> Self:
        """A stand-in for a tensor of this shape, type and device, for the body of a `call`.

        >>> x = Tensor([1, 2])
        >>> x.call(fxn=x.as_param(0) * 2).tolist()
        [2, 4]
        """
        node = UOp(ops.PARAM, self.dtype, (), (slot, self.shape, self.device))
        return self._derived(node)

    def call(self, *lst: Any, fxn: Any, grad_fxn: Any = None) -> Self:
        """The body `fxn`, an expression of `as_param` stand-ins, with this tensor in slot 0 and the others behind it.

        Its gradient is that of the expression; a gradient of its own is what `custom_kernel` takes.

        >>> x, y = Tensor([1, 2]), Tensor([3, 4])
        >>> x.call(y, fxn=x.as_param(0) + y.as_param(1)).tolist()
        [4, 6]
        """
        if grad_fxn is not None:
            raise ArgumentError("call", "grad_fxn goes with custom_kernel, and with calls of a node")
        body = fxn if isinstance(fxn, UOp) else self._tensor("call", fxn).uop
        arguments = {
            UOp(ops.PARAM, x.dtype, (), (slot, x.shape, x.device)): x.uop
            for slot, x in enumerate((self, *[self._tensor("call", other) for other in lst]))
        }
        return self._derived(substitute([body], arguments)[0])

    def callify(self, *lst: Any) -> Self:
        """This tensor: a pending expression becomes kernels when it is realized, and only then.

        >>> Tensor([1]).callify().tolist()
        [1]
        """
        return self

    def schedule_linear(self, *lst: Any) -> UOp:
        """The kernels that realizing this and the others would launch, in their order, as a LINEAR node.

        Nothing runs.

        >>> len((Tensor([1.0]) + 1).schedule_linear().src)
        1
        """
        from lazulite.engine.explain import explain

        report = explain([self._handle, *[other._handle for other in lst]])
        return UOp(ops.LINEAR, dtypes.void, tuple([k.sink for k in report.kernels if k.sink is not None]))

    def linear_with_vars(self, *lst: Any) -> tuple[UOp, dict[str, int]]:
        """`schedule_linear`, and the variables bound in it with their values.

        >>> (Tensor([1.0]) + 1).linear_with_vars()[1]
        {}
        """
        nodes = toposort(self.uop, *[other.uop for other in lst])
        leaves = [leaf for node in nodes for leaf in variables_in(node.arg)]
        return self.schedule_linear(*lst), {name: value for name, _, _, value in [leaf.arg for leaf in leaves]}

    @property
    def is_param(self) -> bool:
        """Whether this tensor is one that is trained: `requires_grad` is True.

        >>> Tensor([1.0]).is_param
        False
        """
        return self._handle.requires_grad is True

    def is_param_(self, is_param: bool = True) -> Self:
        """Say whether this tensor is one that is trained; returns it.

        >>> Tensor([1.0]).is_param_().is_param
        True
        """
        self._handle.requires_grad = True if is_param else None
        return self

    # --- bits ---------------------------------------------------------------------------------------------

    def threefry(self, seed: Any) -> Self:
        """64 random bits for each counter in this uint64 tensor, under the key `seed` (Threefry 2x32, 20 rounds).

        >>> Tensor([1], dtype="uint64").threefry(Tensor([2], dtype="uint64")).dtype
        dtypes.uint64
        """
        if self.dtype is not dtypes.uint64:
            raise DTypeError("threefry", f"counters are uint64, got {self.dtype.name}", about={"counter": self})
        left, right = self._matched("threefry", seed)
        return self._derived(UOp.apply(ops.THREEFRY, left, right))

    @classmethod
    def random_bits(cls, key: Any, counter: Any, num: int) -> Self:
        """`num` random uint32 for a key and a counter of two uint32 words each.

        >>> words = Tensor([1, 2], dtype="uint32")
        >>> Tensor.random_bits(words, words, 3).shape
        (3,)
        """
        if key.dtype is not dtypes.uint32 or counter.dtype is not dtypes.uint32 or num < 0:
            raise DTypeError("random_bits", "key and counter are two uint32 words each")
        inner = _crypted(key, counter[0:1], counter[1:2])
        half = -(-num // 2)
        places: Any = cls.arange(half, device=key.device).cast(dtypes.uint32)
        return _crypted(inner, places, places + half)[:num]  # type: ignore[no-any-return]

    def keccak(self, cfg: str | tuple[int, int] = "sha3_256") -> Self:
        """The Keccak hash of each row of bytes along the last axis: "sha3_224", "sha3_256", "shake_128", or
        (rate, suffix).

        >>> bytes(Tensor(b"abc").keccak().data()).hex()[:16]
        '3a985da74fe225b2'
        """
        from lazulite.tensor.keccak import keccak

        return keccak(self, cfg)  # type: ignore[no-any-return]

    def hash(self) -> Self:
        """16 bytes that depend on all bytes of the tensor: Keccak hashes of pieces, and of these.

        >>> Tensor(b"Hello World!").hash().shape
        (16,)
        """
        from lazulite.tensor.keccak import tree_hash

        return tree_hash(self)  # type: ignore[no-any-return]

    @classmethod
    def from_url(cls, url: str, gunzip: bool = False, device: DeviceLike = None) -> Self:
        """The bytes of a ``file:`` URL as uint8, unpacked with `gunzip`.

        Nothing is fetched from a network: for other URLs ArgumentError says to download the file first.

        >>> from pathlib import Path
        >>> _ = Path("four.bin").write_bytes(b"1234")
        >>> Tensor.from_url(Path("four.bin").resolve().as_uri()).tolist()
        [49, 50, 51, 52]
        """
        import gzip
        from pathlib import Path
        from urllib.parse import urlsplit
        from urllib.request import url2pathname

        parts = urlsplit(url)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise ArgumentError(
                "from_url", f"only file: URLs are read, got {url!r}", hint="download the file, and give its path"
            )
        data = Path(url2pathname(parts.path)).read_bytes()
        return cls(gzip.decompress(data) if gunzip else data, dtype=dtypes.uint8, device=device)


def _crypted(key: Any, low: Any, high: Any) -> Any:
    """Threefry of counter words under a key, the low words of the results first."""
    wide = dtypes.uint64
    counter = (high.cast(wide) << 32) | low.cast(wide)
    seed = (key[1:2].cast(wide) << 32) | key[0:1].cast(wide)
    bits = counter.threefry(seed.expand(counter.shape))
    return (bits & 0xFFFFFFFF).cast(dtypes.uint32).cat((bits >> 32).cast(dtypes.uint32))
