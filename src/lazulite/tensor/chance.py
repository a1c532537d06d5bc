"""Random values written to a tensor, and random bools.

Draws are those of `tensor.random`: fixed by the seed and the place in the program.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import Base
from lazulite.tensor.random import RandomMethods


class ChanceMethods(RandomMethods):
    """Distributions, in place."""

    __slots__ = ()

    def _drawn(self, function: str) -> Any:
        """Uniform numbers above 0 and below 1, in float64; for float tensors only."""
        if not self.dtype.is_float:
            raise DTypeError(function, f"gives floats, this holds {self.dtype.name}", about={"tensor": self})
        return type(self).uniform(self.shape, low=2.0**-54, dtype=dtypes.float64, device=self.device)

    def _set(self, drawn: Any) -> Self:
        return self.assign(drawn.cast(self.dtype))

    def uniform_(self, from_: float = 0.0, to: float = 1.0) -> Self:
        """Write uniform numbers from `from_` inclusive to `to` exclusive.

        >>> x = Tensor.zeros(9).uniform_(2, 3)
        >>> bool((x >= 2).all().item() and (x < 3).all().item())
        True
        """
        if from_ > to:
            raise ArgumentError("uniform_", f"nothing from {from_} to {to}")
        return self._set(type(self).uniform(self.shape, low=from_, high=to, dtype=self.dtype, device=self.device))

    def normal_(self, mean: float = 0.0, std: float = 1.0) -> Self:
        """Write numbers of a normal distribution.

        >>> Tensor.zeros(2).normal_(5, 0).tolist()
        [5.0, 5.0]
        """
        if std < 0:
            raise ArgumentError("normal_", f"a standard deviation is not negative, got {std}")
        return self._set(type(self).normal(self.shape, mean=mean, std=std, dtype=self.dtype, device=self.device))

    def log_normal_(self, mean: float = 1.0, std: float = 2.0) -> Self:
        """Write exponentials of normally distributed numbers.

        >>> Tensor.zeros(1).log_normal_(0, 0).tolist()
        [1.0]
        """
        self._drawn("log_normal_")
        drawn: Any = type(self).normal(self.shape, mean=mean, std=std, dtype=dtypes.float64, device=self.device)
        return self._set(drawn.exp())

    def exponential_(self, lambd: float = 1.0) -> Self:
        """Write times between events of this rate, all above zero.

        >>> bool((Tensor.zeros(9).exponential_() > 0).all().item())
        True
        """
        if lambd <= 0:
            raise ArgumentError("exponential_", f"a rate is above zero, got {lambd}")
        return self._set(self._drawn("exponential_").log() / -lambd)

    def cauchy_(self, median: float = 0.0, sigma: float = 1.0) -> Self:
        """Write numbers of a Cauchy distribution.

        >>> Tensor.zeros(2).cauchy_(3, 1e-30).tolist()
        [3.0, 3.0]
        """
        return self._set(((self._drawn("cauchy_") - 0.5) * math.pi).tan() * sigma + median)

    def geometric_(self, p: float) -> Self:
        """Write how many trials of success probability `p` the first success takes: 1, 2, ..

        >>> Tensor.zeros(2).geometric_(1 - 1e-12).tolist()
        [1.0, 1.0]
        """
        if not 0 < p < 1:
            raise ArgumentError("geometric_", f"a probability is above 0 and below 1, got {p}")
        drawn: Any = type(self).uniform(self.shape, low=2.0**-54, dtype=dtypes.float64, device=self.device)
        return self._set((drawn.log() / math.log1p(-p)).ceil().maximum(1))

    def random_(self, from_: int | None = None, to: int | None = None) -> Self:
        """Write integers from `from_` (or 0) inclusive to `to` exclusive; without bounds, all that the type holds.

        >>> bool((Tensor.zeros(9).random_(5) < 5).all().item())
        True
        """
        if to is None:
            from_, to = 0, from_
        most = 2 ** (self.dtype.mantissa_bits + 1) if self.dtype.is_float else int(self.dtype.max)
        high = most + (not self.dtype.is_float) if to is None else to
        low = from_ or 0
        if low >= high:
            raise ArgumentError("random_", f"nothing from {low} to below {high}")
        wide = dtypes.uint64 if high > dtypes.int64.max else dtypes.int64
        return self._set(type(self).randint(self.shape, low=low, high=high, dtype=wide, device=self.device))

    def bernoulli(self, p: Any = None) -> Self:
        """1 with the probability that each element is (or with `p`), else 0, in this type.

        >>> Tensor([0.0, 1.0]).bernoulli().tolist()
        [0.0, 1.0]
        """
        chance: Any = self if p is None else p
        if isinstance(chance, float | int) and not 0 <= chance <= 1:
            raise ArgumentError("bernoulli", f"a probability is from 0 to 1, got {chance}")
        drawn = type(self).uniform(self.shape, dtype=dtypes.float64, device=self.device)
        drawn_below: Any = drawn < (chance.cast(dtypes.float64) if isinstance(chance, Base) else chance)  # type: ignore[attr-defined]
        return drawn_below.cast(self.dtype)  # type: ignore[no-any-return]

    def bernoulli_(self, p: Any = 0.5) -> Self:
        """Write 1 with probability `p`, else 0.

        >>> Tensor([7, 7]).bernoulli_(0.0).tolist()
        [0, 0]
        """
        return self._set(self.bernoulli(p))
