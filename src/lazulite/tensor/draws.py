"""Random orders and random choices: both sort random keys."""

from __future__ import annotations

from typing import Any, Self

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import DeviceLike, DTypeLike, as_dtype, expanded
from lazulite.tensor.create import CreateMethods
from lazulite.tensor.random import RandomMethods
from lazulite.tensor.reduce import reduced
from lazulite.tensor.sorting import SortMethods


class DrawMethods(SortMethods, RandomMethods, CreateMethods):
    """Orders and choices."""

    __slots__ = ()

    @classmethod
    def randperm(cls, n: int, device: DeviceLike = None, dtype: DTypeLike = dtypes.int32) -> Self:
        """The numbers 0 to n - 1 in random order.

        >>> sorted(Tensor.randperm(5).tolist())
        [0, 1, 2, 3, 4]
        """
        if n < 0:
            raise ArgumentError("randperm", f"there are no {n} numbers to order")
        result = as_dtype("randperm", dtype)
        keys: Any = cls.rand(n, dtype=dtypes.float64, device=device)
        return keys.argsort().cast(result)  # type: ignore[no-any-return]

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """int32 positions drawn with probabilities in proportion to the weights along the last axis.

        Weights are not negative and not all zero.  Without `replacement` no position is drawn twice, and
        one of weight zero only when no other is left.

        >>> Tensor([0.0, 1.0]).multinomial(3, replacement=True).tolist()
        [1, 1, 1]
        """
        if not 1 <= len(self.shape) <= 2 or not self.shape[-1]:
            raise ShapeError("multinomial", f"takes one or two axes of weights, got {self.shape}", about={"self": self})
        if num_samples < 1 or (not replacement and num_samples > self.shape[-1]):
            raise ArgumentError("multinomial", f"cannot draw {num_samples} of {self.shape[-1]} positions")
        weights = self._derived(self.uop.cast(dtypes.float64))
        lead, size = self.shape[:-1], self.shape[-1]
        if replacement:
            running = weights.cumsum(-1).uop
            last = UOp(ops.SHRINK, running.dtype, (running,), (*[(0, n) for n in lead], (size - 1, size)))
            drawn = self.rand(*lead, num_samples, dtype=dtypes.float64, device=self.device).uop
            level = drawn * expanded(last, drawn.shape)
            full = (*lead, num_samples, size)
            level = expanded(UOp(ops.RESHAPE, level.dtype, (level,), (*lead, num_samples, 1)), full)
            row = expanded(UOp(ops.RESHAPE, running.dtype, (running,), (*lead, 1, size)), full)
            whole = expanded(UOp(ops.RESHAPE, last.dtype, (last,), (*lead, 1, 1)), full)
            passed = reduced(ops.ADD, ((row <= level) & (row < whole)).cast(dtypes.int32), (len(full) - 1,))
            return self._derived(UOp(ops.RESHAPE, dtypes.int32, (passed,), full[:-1]))
        # The time until an event of rate w is -log(u) / w: the earliest are a draw without replacement.
        uniform = self.rand(*self.shape, dtype=dtypes.float64, device=self.device).uop
        times = self._derived(-UOp.apply(ops.LOG, 1 - uniform) / weights.uop)
        return times.topk(num_samples, -1, largest=False)[1]
