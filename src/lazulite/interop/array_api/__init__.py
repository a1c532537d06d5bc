"""The Python array API standard, version 2024.12, on Lazulite's tensors.

    >>> from lazulite.interop import array_api as xp
    >>> xp.sum(xp.asarray([1.0, 2.0])).item()
    3.0

Its arrays are `Array`, a Tensor that is strict where the standard is: kinds of types do not mix, and `size` is a
number.  Functions take any Tensor and give Arrays, lazily; where the standard leaves a choice, it is Tensor's (default
types are float32 and int32, indices are int32).  There are no complex types, and with them no extension `fft`:
`__array_namespace_info__` says so.  The extension `linalg` is whole.
"""

import math as _math

from lazulite.interop.array_api import linalg as linalg
from lazulite.interop.array_api.array import Array as Array
from lazulite.interop.array_api.creation import *
from lazulite.interop.array_api.functions import *
from lazulite.interop.array_api.info import __array_namespace_info__ as __array_namespace_info__
from lazulite.interop.array_api.kinds import *
from lazulite.interop.array_api.manipulation import *
from lazulite.interop.array_api.reductions import *
from lazulite.interop.array_api.searching import *
from lazulite.ir.dtype import dtypes as _dtypes

__array_api_version__ = "2024.12"

e, inf, nan, pi = _math.e, _math.inf, _math.nan, _math.pi
newaxis = None

bool = _dtypes.bool
int8, int16, int32, int64 = _dtypes.int8, _dtypes.int16, _dtypes.int32, _dtypes.int64
uint8, uint16, uint32, uint64 = _dtypes.uint8, _dtypes.uint16, _dtypes.uint32, _dtypes.uint64
float32, float64 = _dtypes.float32, _dtypes.float64
