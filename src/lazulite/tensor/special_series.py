"""What special functions of one value are made of, as nodes of float64.

Error functions and Bessel functions are sums of Chebyshev polynomials fitted to 16 digits; the logarithm of the
gamma function and its derivatives are their asymptotic series (DLMF 5.11), entered by the recurrence and, below
zero, by the reflection formula.  `tensor.special` rounds the results to the type of the operand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.tensor.base import detached

_ERFC = (
    -1.302653719780551, 0.6419697923559736, 0.019476473204099523, -0.00956151478679012, -0.0009465953444754506,
    0.0003668394978515809, 4.252332480671255e-05, -2.0278578112903897e-05, -1.6242900040358098e-06,
    1.3036558349496823e-06, 1.5626442312493065e-08, -8.523809640817545e-08, 6.529054777624723e-09,
    5.059343351498089e-09, -9.913642225350434e-10, -2.2736485561794147e-10, 9.646747677491581e-11,
    2.3945872784345608e-12, -6.886625862265729e-12, 8.95064322355862e-13, 3.1260554296590585e-13,
    -1.1236800970420154e-13, 2.2592961515037876e-16, 7.059901641057085e-15, -1.283279062144162e-15,
)  # fmt: skip
"""log(erfc(x) / t) + x^2 in 2 t - 1, where t = 2 / (2 + x)."""
_ERFINV_CENTRE = (
    3.2064375687228552, 0.7065114598352629, -0.018563518253529174, -0.006322936481916675, 0.0017152748065213783,
    -0.00010090171263236434, -4.472783685679211e-05, 1.1536323222418791e-05, -2.1707108033382995e-07,
    -4.1754298203284093e-07, 7.78699623588968e-08, 3.872092257424227e-09, -3.777038640094083e-09,
    4.6386529158896234e-10, 7.770143484817043e-11, -3.174763383548652e-11, 2.0231645192233355e-12,
    9.765600091051987e-13, -2.4425065566813935e-13, -3.3311728365333843e-16, 1.0213858321281266e-14,
)  # fmt: skip
"""erfinv(x) / x in w = -log(1 - x^2) from 0 to 6."""
_ERFINV_TAIL = (
    8.340371361118713, 1.88984325555099, 0.003084555772652666, -0.001814878310298918, 0.0007176853778052466,
    -0.0002838705681736927, 0.00011586683652202387, -4.5434747120792505e-05, 1.5578465858562852e-05,
    -4.090357370905647e-06, 5.041983417192019e-07, 2.153856748888976e-07, -1.790513287121508e-07,
    6.901800246679056e-08, -1.4546264747221926e-08, -5.28515249759048e-10, 1.812645803837124e-09,
    -7.79782238579443e-10, 1.6812757589548086e-10, 1.4540827199934794e-12, -1.606352651803474e-11,
    6.558762270562857e-12, -1.3327580220064072e-12,
)  # fmt: skip
"""erfinv(x) / x in sqrt(w) from sqrt(6) to 6.2."""
_BESSEL_SMALL = (
    0.6767952744094761, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357,
    -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05,
    -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08,
    -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11,
    -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14,
    -1.1685332877993451e-14, 1.715391285555133e-15,
)  # fmt: skip
"""exp(-x) I0(x) in x from 0 to 8."""
_BESSEL_LARGE = (
    0.8044904110141088, 0.0033691164782556943, 6.889758346916823e-05, 2.891370520834771e-06, 2.0489185894689204e-07,
    2.266668990499598e-08, 3.3962320256943468e-09, 4.940602388363448e-10, 1.1889147094218655e-11,
    -3.1499165266252686e-11, -1.3215811853551923e-11, -1.7941785187050104e-12, 7.180124326652598e-13,
    3.852778503930318e-13, 1.540085043555914e-14, -4.1505682136474734e-14, -9.554857608701209e-15,
    3.811691130309364e-15,
)  # fmt: skip
"""exp(-x) sqrt(x) I0(x) in 1/x from 0 to 1/8."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""B2, B4, .."""
_SHIFT = 8
"""From here on the asymptotic series have 16 digits."""


def _chebyshev(coefficients: Sequence[float], t: UOp) -> UOp:
    """The sum of c[k] T_k(t), with half of c[0]; Clenshaw's recurrence."""
    later = UOp.const(t.dtype, 0)
    current = UOp.const(t.dtype, coefficients[-1])
    twice = t * 2
    for coefficient in coefficients[-2:0:-1]:
        current, later = twice * current - later + coefficient, current
    return t * current - later + coefficients[0] / 2


def _mapped(x: UOp, low: float, high: float) -> UOp:
    """An interval as -1 to 1."""
    return (x - (low + high) / 2) * (2 / (high - low))


def _chosen(gate: UOp, x: UOp, other: float) -> UOp:
    """The value where a branch is taken, a harmless one elsewhere."""
    return gate.where(x, UOp.const(x.dtype, other))


# --- error functions -----------------------------------------------------------------------------


def erfc(x: UOp) -> UOp:
    """1 - erf(x), exact where erf is almost 1."""
    size = (x < 0).where(-x, x)
    bounded = _chosen(size < 28, size, 28)  # beyond, it is zero
    t = 2 / (bounded + 2)
    tail = t * UOp.apply(ops.EXP, _chebyshev(_ERFC, t * 2 - 1) - bounded * bounded)
    tail = x.ne(x).where(x, tail)
    return (x < 0).where(2 - tail, tail)


def erfinv(x: UOp) -> UOp:
    """The number whose error function is x; infinite at -1 and 1, NaN beyond."""
    inside = (x < 1) & (x > -1)
    y = _chosen(inside, x, 0)
    width = -UOp.apply(ops.LOG, (1 - y) * (y + 1))
    centre = width < 6
    near = _chebyshev(_ERFINV_CENTRE, _mapped(_chosen(centre, width, 0), 0, 6))
    root = UOp.apply(ops.SQRT, centre.where(UOp.const(x.dtype, 6), width))
    far = _chebyshev(_ERFINV_TAIL, _mapped(root, math.sqrt(6), 6.2))
    ends = [UOp.const(x.dtype, end) for end in (math.inf, -math.inf, math.nan)]
    edge = x.eq(1).where(ends[0], x.eq(-1).where(ends[1], ends[2]))
    return inside.where(y * centre.where(near, far), edge)


# --- the gamma function --------------------------------------------------------------------------


def log_gamma(x: UOp) -> UOp:
    """log|gamma(x)|; infinite at 0, -1, -2, .. and at both ends."""
    reflected = x < 0.5
    y = reflected.where(1 - x, x)
    infinite = y.eq(math.inf)
    value = _log_gamma_above(infinite.where(UOp.const(x.dtype, 1), y))
    sine = UOp.apply(ops.SIN, _from_integer(_chosen(reflected, x, 0.25)) * math.pi)
    sine = (sine < 0).where(-sine, sine)
    mirrored = math.log(math.pi) - UOp.apply(ops.LOG, sine) - value
    result = reflected.where(mirrored, value)
    return x.ne(x).where(x, infinite.where(UOp.const(x.dtype, math.inf), result))


def _log_gamma_above(x: UOp) -> UOp:
    """log(gamma(x)) for x >= 1/2."""
    small = x < _SHIFT
    product = UOp.const(x.dtype, 1)
    y = _chosen(small, x, 1)
    for step in range(_SHIFT):
        product = product * (y + step)
    z = small.where(x + _SHIFT, x)
    inverse = 1 / z
    square = inverse * inverse
    series = UOp.const(x.dtype, 0)
    for k, bernoulli in reversed(list(enumerate(_BERNOULLI, 1))):
        series = series * square + bernoulli / (2 * k * (2 * k - 1))
    log = UOp.apply(ops.LOG, z)
    value = (z - 0.5) * log - z + 0.5 * math.log(2 * math.pi) + series * inverse
    return value - small.where(UOp.apply(ops.LOG, product), UOp.const(x.dtype, 0))


def digamma(x: UOp) -> UOp:
    """The derivative of log(gamma); NaN at -1, -2, .., infinite at zero with the sign opposite to its own."""
    reflected = x < 0
    y = reflected.where(1 - x, x)
    zero = x.eq(0)
    y = zero.where(UOp.const(x.dtype, 1), y)
    small = y < _SHIFT
    z = small.where(y + _SHIFT, y)
    inverse = 1 / z
    square = inverse * inverse
    series = UOp.const(x.dtype, 0)
    for k, bernoulli in reversed(list(enumerate(_BERNOULLI, 1))):
        series = (series + bernoulli / (2 * k)) * square
    value = UOp.apply(ops.LOG, z) - inverse * 0.5 - series
    below = UOp.const(x.dtype, 0)
    bounded = _chosen(small, y, 1)
    for step in range(_SHIFT):
        below = below + 1 / (bounded + step)
    value = value - small.where(below, UOp.const(x.dtype, 0))
    angle = _from_integer(_chosen(reflected, x, 0.25)) * math.pi
    cotangent = UOp.apply(ops.COS, angle) / UOp.apply(ops.SIN, angle)
    result = reflected.where(value - cotangent * math.pi, value)
    pole = reflected & UOp.apply(ops.FLOOR, x).eq(x)
    return zero.where(-1 / x, pole.where(UOp.const(x.dtype, math.nan), result))


def hurwitz_zeta(s: int, x: UOp) -> UOp:
    """The sum of 1 / (x + k)^s over k = 0, 1, .. for s >= 2 (Euler and Maclaurin, DLMF 25.11.28)."""
    total = UOp.const(x.dtype, 0)
    for step in range(2 * _SHIFT):
        total = total + _power(1 / (x + step), s)
    z = x + 2 * _SHIFT
    inverse = 1 / z
    total = total + _power(inverse, s - 1) / (s - 1) + _power(inverse, s) * 0.5
    factor, term = 1.0, _power(inverse, s - 1)
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        factor *= s if k == 1 else (s + 2 * k - 3) * (s + 2 * k - 2)
        term = term * inverse * inverse
        total = total + term * (bernoulli * factor / math.factorial(2 * k))
    return total


def trigamma(x: UOp) -> UOp:
    """The derivative of digamma."""
    reflected = x < 0.5
    above = hurwitz_zeta(2, reflected.where(1 - x, x))
    sine = UOp.apply(ops.SIN, _from_integer(_chosen(reflected, x, 0.25)) * math.pi)
    return reflected.where(math.pi**2 / (sine * sine) - above, above)


def _power(x: UOp, n: int) -> UOp:
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


def _from_integer(x: UOp) -> UOp:
    """The distance from the nearest integer, with the sign that sin(pi x) has up to that of the integer's parity."""
    return x - detached(UOp.apply(ops.ROUND, x))


# --- the Bessel function -------------------------------------------------------------------------


def bessel_i0(x: UOp) -> UOp:
    """The modified Bessel function of the first kind, of order 0."""
    size = (x < 0).where(-x, x)
    small = size < 8
    near = _chebyshev(_BESSEL_SMALL, _mapped(_chosen(small, size, 0), 0, 8))
    inverse = 1 / small.where(UOp.const(x.dtype, 8), size)
    far = _chebyshev(_BESSEL_LARGE, _mapped(inverse, 0, 1 / 8)) * UOp.apply(ops.SQRT, inverse)
    grown = UOp.apply(ops.EXP, size * 0.5)
    return size.eq(math.inf).where(size, small.where(near, far) * grown * grown)
