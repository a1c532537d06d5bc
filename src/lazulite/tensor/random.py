"""Random tensors from counters.

Element i of a draw is the Threefry block of (seed, position + i), where `position` counts the elements
drawn in the program so far: a draw is fixed by the seed and its place in the program, not by when,
where or in how many pieces it is computed.  `Tensor.manual_seed` starts again.

Floats have as many random bits as their mantissa, from 0 inclusive to 1 exclusive.  Integers are the
wide product of random bits and the size of the range: every value occurs, none outside, and the
probabilities of two values differ by less than 2**-32 of themselves (64 bits for ranges up to 2**32,
128 bits beyond; exactly equal where the size is a power of two).
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.base.settings import SETTINGS
from lazulite.engine.stream import STREAM
from lazulite.engine.tracing import THREAD
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import DeviceLike, DTypeLike, Shape, as_dtype
from lazulite.tensor.create import CreateMethods, shape_of
from lazulite.tensor.logic import LogicMethods

_WORD = dtypes.uint64


class RandomMethods(LogicMethods, CreateMethods):
    """Draws."""

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Start the stream of draws that belongs to this seed (B112).

        >>> Tensor.manual_seed(7); first = Tensor.rand(3).tolist()
        >>> Tensor.manual_seed(7); Tensor.rand(3).tolist() == first
        True
        """
        STREAM.restart(seed)

    @classmethod
    def rand(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Uniform floats from 0 inclusive to 1 exclusive.

        >>> Tensor.rand(2, 3).shape
        (2, 3)
        """
        return cls.uniform(*shape, dtype=dtype, device=device)

    @classmethod
    def uniform(
        cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike = None
    ) -> Self:
        """Uniform floats from low to high.

        >>> x = Tensor.uniform(100, low=-2.0, high=2.0)
        >>> bool((x >= -2).all().item() and (x < 2).all().item())
        True
        """
        result = _float_type("uniform", dtype)
        node = _fraction(_words(shape_of("uniform", *shape)), result)
        if (low, high) != (0.0, 1.0):
            node = node * (high - low) + low
        return cls._from_uop(node.cast(result), device)

    @classmethod
    def randn(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Floats of the standard normal distribution (Box and Muller).

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        return cls.normal(*shape, dtype=dtype, device=device)

    @classmethod
    def normal(
        cls, *shape: Any, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike = None
    ) -> Self:
        """Floats of a normal distribution.

        >>> Tensor.normal(2, mean=5.0, std=0.0).tolist()
        [5.0, 5.0]
        """
        result = _float_type("normal", dtype)
        node = _standard_normal(_words(shape_of("normal", *shape)), result)
        if (mean, std) != (0.0, 1.0):
            node = node * std + mean
        return cls._from_uop(node.cast(result), device)

    @classmethod
    def randint(
        cls, *shape: Any, low: int = 0, high: int = 10, dtype: DTypeLike = dtypes.int32, device: DeviceLike = None
    ) -> Self:
        """Integers from low inclusive to high exclusive, each equally likely, for any width (B113).

        OverflowError where the type does not hold them, ArgumentError for an empty range.

        >>> sorted(set(Tensor.randint(100, low=3, high=5).tolist()))
        [3, 4]
        """
        result = as_dtype("randint", dtype)
        if not result.is_int:
            raise DTypeError("randint", f"gives integers, not {result.name}", hint="use uniform for floats")
        if low >= high:
            raise ArgumentError("randint", f"nothing from {low} to below {high}")
        if low < result.min or high - 1 > result.max:
            raise OverflowError(f"{result.name} does not hold {low} to {high - 1}")
        size = shape_of("randint", *shape)
        offset = _below(_words(size), high - low, size)
        return cls._from_uop(offset.cast(result) + UOp.const(result, low), device)

    def rand_like(self, dtype: DTypeLike | None = None) -> Self:
        """`rand` in the shape, type and place of this tensor.

        >>> Tensor.ones(2, 3).rand_like().shape
        (2, 3)
        """
        return type(self).rand(self.shape, dtype=dtype or self.dtype, device=self.device)

    def randn_like(self, dtype: DTypeLike | None = None) -> Self:
        """`randn` in the shape, type and place of this tensor.

        >>> Tensor.ones(2, 3).randn_like().shape
        (2, 3)
        """
        return type(self).randn(self.shape, dtype=dtype or self.dtype, device=self.device)

    # --- initial weights ----------------------------------------------------------------------------

    @classmethod
    def scaled_uniform(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Uniform from -1 to 1, over the square root of the number of elements.

        >>> Tensor.scaled_uniform(2, 8).shape
        (2, 8)
        """
        bound = _inverse_root(math.prod(shape_of("scaled_uniform", *shape)))
        return cls.uniform(*shape, low=-bound, high=bound, dtype=dtype, device=device)

    @classmethod
    def glorot_uniform(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Uniform within sqrt(6 / (inputs + outputs)).

        >>> Tensor.glorot_uniform(2, 8).shape
        (2, 8)
        """
        size = shape_of("glorot_uniform", *shape)
        bound = math.sqrt(6) * _inverse_root(sum(size[:1]) + math.prod(size[1:]))
        return cls.uniform(size, low=-bound, high=bound, dtype=dtype, device=device)

    @classmethod
    def kaiming_uniform(
        cls, *shape: Any, a: float = 0.01, dtype: DTypeLike | None = None, device: DeviceLike = None
    ) -> Self:
        """Uniform within sqrt(6 / ((1 + a^2) inputs)).

        >>> Tensor.kaiming_uniform(2, 8).shape
        (2, 8)
        """
        size = shape_of("kaiming_uniform", *shape)
        bound = math.sqrt(6 / (1 + a**2)) * _inverse_root(math.prod(size[1:]))
        return cls.uniform(size, low=-bound, high=bound, dtype=dtype, device=device)

    @classmethod
    def kaiming_normal(
        cls, *shape: Any, a: float = 0.01, dtype: DTypeLike | None = None, device: DeviceLike = None
    ) -> Self:
        """Normal with the standard deviation sqrt(2 / ((1 + a^2) inputs)).

        >>> Tensor.kaiming_normal(2, 8).shape
        (2, 8)
        """
        size = shape_of("kaiming_normal", *shape)
        std = math.sqrt(2 / (1 + a**2)) * _inverse_root(math.prod(size[1:]))
        return cls.normal(size, std=std, dtype=dtype, device=device)

    def dropout(self, p: float = 0.5) -> Self:
        """In training each element is zero with probability p, and the others grow by 1 / (1 - p).

        >>> Tensor([1.0, 2.0]).dropout(0.5).tolist()  # not in training
        [1.0, 2.0]
        """
        if not 0 <= p <= 1:
            raise ArgumentError("dropout", f"a probability is from 0 to 1, got {p}")
        if not SETTINGS.TRAINING or p == 0:
            return self
        if p == 1:
            return self.zeros_like()
        kept = self.rand_like(dtypes.float32) >= p
        return kept.where(self._derived(self.uop * (1 / (1 - p))), 0)


# --- as nodes ----------------------------------------------------------------------------------


def _inverse_root(count: int) -> float:
    return 1 / math.sqrt(count) if count else 0.0


def _float_type(function: str, dtype: DTypeLike | None) -> DType:
    result = dtypes.default_float if dtype is None else as_dtype(function, dtype)
    if not result.is_float:
        raise DTypeError(function, f"gives floats, not {result.name}", hint="use randint for integers")
    return result


def _words(shape: Shape) -> UOp:
    """64 random bits for each element: the next positions of the stream."""
    count = math.prod(shape)
    key, position = STREAM.take(count)
    counter = UOp(ops.IOTA, _WORD, (), count) + UOp.const(_WORD, position)
    own = UOp.const(_WORD, key)
    for example in THREAD.examples:  # each example of a vmap draws by a key of its own
        own = UOp.apply(ops.THREEFRY, example, own)
    words = UOp.apply(ops.THREEFRY, counter, own)
    return UOp(ops.RESHAPE, _WORD, (words,), shape)


def _fraction(words: UOp, dtype: DType) -> UOp:
    """The top bits as a float from 0 to below 1, as many as the mantissa holds."""
    digits = dtype.mantissa_bits + 1
    whole = (words >> (64 - digits)).cast(dtypes.int32 if digits < 32 else dtypes.int64)
    return whole.cast(dtype) * 2.0**-digits


def _standard_normal(words: UOp, dtype: DType) -> UOp:
    """Box and Muller: the radius from the low half of the word, the angle from the high half."""
    wide = dtypes.promote(dtype, dtypes.float32)
    low, high = [_fraction(part, dtypes.float32).cast(wide) for part in (words << 32, words)]
    radius = UOp.apply(ops.SQRT, UOp.apply(ops.LOG, 1 - low) * -2)
    return (radius * UOp.apply(ops.COS, high * (2 * math.pi))).cast(dtype)


def _below(words: UOp, size: int, shape: Shape) -> UOp:
    """floor(random * size), where random is a fraction of 64 bits, of 128 where the size has over 32."""
    if size == 1 << 64:
        return words
    product = _high_product(words, size)
    if size <= 1 << 32:
        return product
    carried = words * UOp.const(_WORD, size) + _high_product(_words(shape), size)
    return product + (carried < words * UOp.const(_WORD, size)).cast(_WORD)


def _high_product(words: UOp, size: int) -> UOp:
    """The upper 64 bits of the product with a constant."""
    low, high = words & 0xFFFFFFFF, words >> 32
    size_low, size_high = [UOp.const(_WORD, part) for part in (size & 0xFFFFFFFF, size >> 32)]
    middle = high * size_low + (low * size_low >> 32)
    cross = low * size_high + (middle & 0xFFFFFFFF)
    return high * size_high + (middle >> 32) + (cross >> 32)
