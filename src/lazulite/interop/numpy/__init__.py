"""NumPy's functions by name, on Lazulite's tensors.

    >>> from lazulite.interop import numpy as lnp
    >>> lnp.percentile(lnp.arange(5), 50).item()
    2.0

They take tensors, numbers, nested sequences and arrays of others, and give tensors, lazily; axes, defaults and
names of parameters are NumPy's.  Types are Lazulite's: floats are float32 unless they come as another type,
positions are int32.  Options that write into memory (`out`) or leave elements out (`where`) are not here.
"""

import math as _math

from lazulite.interop.numpy import fft as fft
from lazulite.interop.numpy import linalg as linalg
from lazulite.interop.numpy.creation import *
from lazulite.interop.numpy.ordering import *
from lazulite.interop.numpy.picking import *
from lazulite.interop.numpy.polynomials import *
from lazulite.interop.numpy.products import *
from lazulite.interop.numpy.series import *
from lazulite.interop.numpy.shapes import *
from lazulite.interop.numpy.statistics import *
from lazulite.interop.numpy.types import *
from lazulite.interop.numpy.ufuncs import *
from lazulite.ir.dtype import dtypes as _dtypes

e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None
euler_gamma = 0.5772156649015329

bool_, int8, int16, int32, int64 = _dtypes.bool, _dtypes.int8, _dtypes.int16, _dtypes.int32, _dtypes.int64
uint8, uint16, uint32, uint64 = _dtypes.uint8, _dtypes.uint16, _dtypes.uint32, _dtypes.uint64
float16, float32, float64 = _dtypes.float16, _dtypes.float32, _dtypes.float64
