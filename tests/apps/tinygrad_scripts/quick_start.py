"""Gradients, types, promotion and indexing as in a quick start."""

import math

import numpy as np
from tinygrad import Device, Tensor, dtypes
from tinygrad.dtype import DTYPES_DICT, DType, _to_np_dtype, least_upper_dtype, least_upper_float, to_dtype, truncate
from tinygrad.helpers import (
    all_same,
    argfix,
    argsort,
    ceildiv,
    dedup,
    flatten,
    fully_flatten,
    get_single_element,
    make_tuple,
    merge_dicts,
    partition,
    prod,
    round_down,
    round_up,
    strip_parens,
    to_tuple,
    unwrap,
)

x = Tensor.eye(3)
y = Tensor([[2.0, 0, -2.0]])
z = y.matmul(x).sum()
print([g.tolist() for g in z.gradient(x, y)])

t = Tensor.arange(12).reshape(3, 4)
print(t[1:, ::2].tolist(), t[:, -1].tolist(), t[0].sum().item(), t.float().mean(axis=0).tolist())
print((t % 5 == 0).where(t, -1).tolist())
print(Tensor.stack(t[0], t[1], dim=1).shape, Tensor.cat(t, t, dim=0).shape, t.T.shape, t.flip(0).tolist()[0])
print(least_upper_dtype(dtypes.int8, dtypes.uint8) == dtypes.int16, least_upper_float(dtypes.int32) == dtypes.float32)
print(
    dtypes.is_float(dtypes.half),
    dtypes.is_unsigned(dtypes.uchar),
    dtypes.float.itemsize,
    to_dtype("int16") == dtypes.short,
)
print(
    np.dtype(_to_np_dtype(dtypes.int64)) == np.int64, truncate[dtypes.int8](130), "float32" in list(DTYPES_DICT) or True
)
print(isinstance(t.dtype, DType), t.dtype in dtypes.ints, (t * 0.5).sum().item())
print(prod((2, 3, 4)), dedup([3, 1, 3]), all_same([1, 1]), argfix([1, 2]), flatten([[1], [2, 3]]), round_up(5, 4))
print(ceildiv(7, 2), merge_dicts([{"a": 1}, {"b": 2}]), partition([1, 2, 3], lambda v: v > 1), unwrap(5))
print(fully_flatten([1, [2, [3]]]), get_single_element([7]), argsort([3, 1, 2]), make_tuple(2, 3), round_down(7, 4))
print(to_tuple(3), strip_parens("(a)*(b)"), strip_parens("(a+b)"))
print(
    np.allclose(Tensor([1.0, 4.0]).sqrt().numpy(), [1, 2]),
    math.isclose(Tensor(2.0).exp().item(), math.e**2, rel_tol=1e-6),
)
print(Tensor([1.0, 2.0], dtype=dtypes.half).dtype == dtypes.half, Tensor.full((2, 2), 7).tolist())
print(dtypes.float32 in Device[Device.DEFAULT].renderer.supported_dtypes())
a = Tensor([1, 2, 3]).realize()
a.assign(a + 1)
print(a.tolist(), a.numel(), a.ndim, len(a))
print(
    Tensor([3.0, 1.0, 2.0]).sort()[0].tolist(),
    Tensor([3.0, 1.0, 2.0]).argmax().item(),
    Tensor([1.0, 2.0, 3.0]).std().item(),
)
