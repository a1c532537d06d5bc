"""Special functions, and parts and tests of floats.

Results are right to two units in the last place of float32 (float64: see each method); they are composed in float64
(`tensor.special_series`) and rounded once.  Definitions are those of the DLMF, names those of PyTorch.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import constant, expanded, float_dtype
from lazulite.tensor.pairs import PairMethods

_LARGEST_DIMENSION = 1000
"""Of a multivariate gamma function: each dimension is a logarithm more."""
_LARGEST_ORDER = 169
"""Of a polygamma function: the factorial beyond it is no double."""
_BITS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


class SpecialMethods(PairMethods):
    """Special functions, and what floats consist of."""

    __slots__ = ()

    # --- error functions ------------------------------------------------------------------------------

    def erfc(self) -> Self:
        """1 - erf(x), exact where that is almost 0; in float64 to 1e-12 of itself.

        >>> round(Tensor([1.0]).erfc().item(), 6)
        0.157299
        """
        from lazulite.tensor.special_series import erfc

        return self._inverse(erfc(self._double()))

    def erfinv(self) -> Self:
        """The number whose error function is this; infinite at -1 and 1, NaN beyond; in float64 to 1e-13.

        >>> round(Tensor([0.5]).erfinv().item(), 6)
        0.476936
        """
        from lazulite.tensor.special_series import erfinv

        return self._inverse(erfinv(self._double()))

    # --- gamma and Bessel functions ---------------------------------------------------------------------

    def lgamma(self) -> Self:
        """The logarithm of |gamma(x)|; infinite at 0, -1, -2, ..

        >>> round(Tensor([5.0]).lgamma().exp().item(), 4)
        24.0
        """
        from lazulite.tensor.special_series import log_gamma

        return self._inverse(log_gamma(self._double()))

    def digamma(self) -> Self:
        """The derivative of `lgamma`; NaN at -1, -2, .., infinite at zero.

        >>> round(Tensor([1.0]).digamma().item(), 6)
        -0.577216
        """
        from lazulite.tensor.special_series import digamma

        return self._inverse(digamma(self._double()))

    def polygamma(self, n: int) -> Self:
        """The `n`-th derivative of `digamma`, for x > -15 where n is above 1.

        >>> round(Tensor([1.0]).polygamma(1).item(), 6)
        1.644934
        """
        from lazulite.tensor.special_series import digamma, hurwitz_zeta, trigamma

        if n < 0:
            raise ArgumentError("polygamma", f"the order is not negative, got {n}")
        if n > _LARGEST_ORDER:
            raise ArgumentError("polygamma", f"the order is {_LARGEST_ORDER} at most, got {n}")
        x = self._double()
        if n < 2:
            return self._inverse(trigamma(x) if n else digamma(x))
        return self._inverse(hurwitz_zeta(n + 1, x) * float((-1) ** (n + 1) * math.factorial(n)))

    def mvlgamma(self, p: int) -> Self:
        """The logarithm of the multivariate gamma function of dimension `p`.

        >>> Tensor([3.0]).mvlgamma(1).item() == Tensor([3.0]).lgamma().item()
        True
        """
        from lazulite.tensor.special_series import log_gamma

        if not 1 <= p <= _LARGEST_DIMENSION:
            raise ArgumentError("mvlgamma", f"the dimension lies between 1 and {_LARGEST_DIMENSION}, got {p}")
        x = self._double()
        total = log_gamma(x) + p * (p - 1) / 4 * math.log(math.pi)
        for step in range(1, p):
            total = total + log_gamma(x - step / 2)
        return self._inverse(total)

    def i0(self) -> Self:
        """The modified Bessel function of the first kind, of order 0.

        >>> Tensor([0.0]).i0().item()
        1.0
        """
        from lazulite.tensor.special_series import bessel_i0

        return self._inverse(bessel_i0(self._double()))

    # --- elementary -----------------------------------------------------------------------------------

    def sinc(self) -> Self:
        """sin(pi x) / (pi x); 1 at zero.

        >>> Tensor([0.0]).sinc().item()
        1.0
        """
        x = self._double()
        zero = x.eq(0)
        angle = zero.where(UOp.const(x.dtype, 1), x) * math.pi
        return self._inverse(zero.where(UOp.const(x.dtype, 1), UOp.apply(ops.SIN, angle) / angle))

    def logit(self, eps: float | None = None) -> Self:
        """log(x / (1 - x)); with `eps` of x brought into [eps, 1 - eps].

        >>> Tensor([0.5]).logit().item()
        0.0
        """
        x = self._double()
        if eps is not None:
            x = x.maximum(UOp.const(x.dtype, eps)).minimum(UOp.const(x.dtype, 1 - eps))
        return self._inverse(UOp.apply(ops.LOG, x / (1 - x)))

    def deg2rad(self) -> Self:
        """Degrees as radians.

        >>> round(Tensor([180.0]).deg2rad().item(), 6)
        3.141593
        """
        return self._inverse(self._double() * (math.pi / 180))

    def rad2deg(self) -> Self:
        """Radians as degrees.

        >>> round(Tensor([3.14159265]).rad2deg().item(), 3)
        180.0
        """
        return self._inverse(self._double() * (180 / math.pi))

    def positive(self) -> Self:
        """The same values; DTypeError for bools.

        >>> Tensor([-1]).positive().tolist()
        [-1]
        """
        if self.dtype is dtypes.bool:
            raise DTypeError("positive", "has no meaning for bool", about={"operand": self})
        return self._derived(self.uop)

    # --- parts of floats ------------------------------------------------------------------------------

    def frac(self) -> Self:
        """The part behind the point, with the sign of the value.

        >>> Tensor([1.5, -1.5]).frac().tolist()
        [0.5, -0.5]
        """
        return self - self.trunc()

    def frexp(self) -> tuple[Self, Self]:
        """Mantissas from 0.5 to below 1, and int32 exponents: mantissa * 2**exponent is the value.

        >>> [part.tolist() for part in Tensor([3.0, 0.0]).frexp()]
        [[0.75, 0.0], [2, 0]]
        """
        x = self._floating()
        wide = x.cast(dtypes.float64)
        tiny = (wide < 2.0**-1000) & (wide > -(2.0**-1000))
        lifted = tiny.where(wide * 2.0**100, wide)
        bits = UOp(ops.BITCAST, dtypes.int64, (lifted,))
        exponent = ((bits >> 52) & 0x7FF) - 1022 - tiny.where(UOp.const(dtypes.int64, 100), UOp.const(dtypes.int64, 0))
        plain = wide.eq(0) | wide.ne(wide) | wide.eq(math.inf) | wide.eq(-math.inf)
        exponent = plain.where(UOp.const(dtypes.int64, 0), exponent)
        low = UOp.apply(ops.FLOOR, exponent.cast(dtypes.float64) * -0.5)
        high = -exponent.cast(dtypes.float64) - low
        mantissa = wide * UOp.apply(ops.EXP2, low) * UOp.apply(ops.EXP2, high)
        return self._derived(plain.where(wide, mantissa).cast(x.dtype)), self._derived(exponent.cast(dtypes.int32))

    def signbit(self) -> Self:
        """Where the sign is minus, that of zero too; that of NaN is the one of its bits.

        >>> Tensor([-0.0, 1.0]).signbit().tolist()
        [True, False]
        """
        x = self.uop
        if x.dtype.is_float and x.dtype.itemsize > 1:
            x = UOp(ops.BITCAST, _BITS[x.dtype.itemsize], (x,))
        return self._derived(x < 0 if x.dtype.kind == "int" else expanded(UOp.const(dtypes.bool, False), x.shape))

    def angle(self) -> Self:
        """The angle of a number in the complex plane: 0, below zero pi; NaN stays.

        >>> Tensor([1.0, -1.0]).angle().tolist()
        [0.0, 3.1415927410125732]
        """
        x = self._floating()
        return self._derived(x.ne(x).where(x, (x < 0).where(UOp.const(x.dtype, math.pi), UOp.const(x.dtype, 0))))

    def sgn(self) -> Self:
        """`sign` by its other name.

        >>> Tensor([-3.0, 2.0]).sgn().tolist()
        [-1.0, 1.0]
        """
        return self.sign()

    # --- special values -------------------------------------------------------------------------------

    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Self:
        """Numbers in the place of NaN and the infinities: 0 and the largest of the type, unless given.

        >>> Tensor([float("nan"), float("inf")]).nan_to_num(posinf=9.0).tolist()
        [0.0, 9.0]
        """
        x = self.uop
        if not x.dtype.is_float:
            return self._derived(x)
        high = x.dtype.largest if posinf is None else posinf
        low = -x.dtype.largest if neginf is None else neginf
        x = x.eq(math.inf).where(constant(x.dtype, high), x.eq(-math.inf).where(constant(x.dtype, low), x))
        return self._derived(x.ne(x).where(constant(x.dtype, nan), x))

    def isposinf(self) -> Self:
        """Where the value is infinite and positive.

        >>> Tensor([float("inf"), float("-inf")]).isposinf().tolist()
        [True, False]
        """
        return self.isinf(detect_negative=False)

    def isneginf(self) -> Self:
        """Where the value is infinite and negative.

        >>> Tensor([float("inf"), float("-inf")]).isneginf().tolist()
        [False, True]
        """
        return self.isinf(detect_positive=False)

    def isreal(self) -> Self:
        """True everywhere: all numbers are real.

        >>> Tensor([1.0, 2.0]).isreal().tolist()
        [True, True]
        """
        return self._derived(expanded(UOp.const(dtypes.bool, True), self.shape))

    # --- with two more operands -------------------------------------------------------------------------

    def addcmul(self, tensor1: Any, tensor2: Any, *, value: Scalar = 1) -> Self:
        """This plus value * tensor1 * tensor2.

        >>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()
        [4.0]
        """
        product: Any = self._tensor("addcmul", tensor1) * tensor2
        return self + (product if value == 1 else product * value)  # type: ignore[no-any-return]

    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: Scalar = 1) -> Self:
        """This plus value * tensor1 / tensor2.

        >>> Tensor([1.0]).addcdiv(Tensor([6.0]), Tensor([3.0]), value=0.5).tolist()
        [2.0]
        """
        quotient: Any = self._tensor("addcdiv", tensor1) / tensor2
        return self + (quotient if value == 1 else quotient * value)  # type: ignore[no-any-return]

    def isin(self, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Self:
        """Where the value is one of `test_elements` (or none of them, with `invert`); NaN is no element.

        Up to 16 are compared one by one, more are searched in order; `assume_unique` changes nothing.

        >>> Tensor([1, 2, 3]).isin(Tensor([3, 1])).tolist()
        [True, False, True]
        """
        left = self.uop
        elements: Any = self._tensor("isin", test_elements).flatten()  # type: ignore[attr-defined]
        if elements.shape[0] <= 16:
            found = UOp.const(dtypes.bool, False)
            for number in range(elements.shape[0]):
                found = found | self.eq(elements[number]).uop
            found = expanded(found, left.shape)
        else:
            ordered = elements.sort()[0]
            places = ordered.searchsorted(self)
            found = self.eq(ordered.take(places.minimum(elements.shape[0] - 1))).uop
        return self._derived(~found if invert else found)

    def dist(self, other: Any, p: float = 2.0) -> Self:
        """The `p`-norm of the difference, over all elements.

        >>> Tensor([1.0, 2.0]).dist(Tensor([4.0, 6.0])).item()
        5.0
        """
        gap: Any = (self - self._tensor("dist", other)).abs()
        if p == 0:
            return gap.ne(0).cast(float_dtype(self.dtype)).sum()  # type: ignore[no-any-return]
        if p in (math.inf, -math.inf):
            return gap.max() if p > 0 else gap.min()  # type: ignore[no-any-return]
        if p == 2:
            return gap.square().sum().sqrt()  # type: ignore[no-any-return]
        return gap.sum() if p == 1 else gap.pow(p).sum().pow(1 / p)  # type: ignore[no-any-return]
