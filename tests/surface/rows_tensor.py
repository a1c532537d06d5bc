"""Tensor methods that torch's database does not know, or not well enough."""

from __future__ import annotations

import numpy as np
import torch

from lazulite import Tensor
from surface.rows import Sample, row

_random = np.random.default_rng(5)


def floats(*shape):
    return (_random.normal(size=shape) * 3).astype(np.float32)


def integers(*shape, low=-9, high=9, dtype=np.int32):
    return _random.integers(low, high, size=shape).astype(dtype)


ANY = [
    floats(3, 4),
    floats(2, 1, 5),
    integers(4),
    integers(2, 3, dtype=np.int64),
    integers(3, low=0, dtype=np.uint8),
    np.array(2.5, np.float32),
    floats(0, 3),
    floats(2, 0),
]
"""Of several ranks and types, without axes, and without elements."""
NAN = np.array([1.5, -2.5, np.nan, np.inf, -np.inf, -0.0, 3e9, -3e9], np.float32)


def casts(name, dtype):
    """A cast by name, in range for every type."""
    return row(
        name, *ANY[:5], ours=lambda x: getattr(x.abs(), name)(), reference=lambda x: x.abs().to(dtype), alone=True
    )


def same(name, *, reference=None, ours=None, samples=ANY, **options):
    return row(name, *samples, ours=ours, reference=reference, **options)


CASTS = [
    casts(name, getattr(torch, dtype))
    for name, dtype in {
        "bool": "bool",
        "byte": "uint8",
        "char": "int8",
        "short": "int16",
        "int": "int32",
        "long": "int64",
        "half": "float16",
        "bfloat16": "bfloat16",
        "float": "float32",
        "double": "float64",
    }.items()
]

VECTORS = [(floats(n), floats(n)) for n in (1, 2, 5, 7)] + [(integers(4), integers(4))]
PRODUCTS = [
    *[row(name, *VECTORS) for name in ("dot", "vdot", "outer", "ger", "inner")],
    row("mv", *[(floats(m, n), floats(n)) for m, n in ((1, 1), (2, 3), (4, 1), (3, 5))], (integers(2, 3), integers(3))),
    row(
        "kron",
        (floats(2), floats(3)),
        (floats(2, 2), floats(3)),
        (floats(2, 3), floats(1, 2)),
        (integers(2), integers(2)),
        (floats(1, 2, 3), floats(2, 1)),
    ),
    *[
        row(
            name,
            *[Sample((floats(*s), floats(*a), floats(*b)), {"beta": 0.5, "alpha": 2.0}) for s, a, b in shapes],
            Sample((floats(*shapes[0][0]) * np.nan, floats(*shapes[0][1]), floats(*shapes[0][2])), {"beta": 0.0}),
            gradient=False,
        )
        for name, shapes in {
            "addmv_": [((2,), (2, 3), (3,)), ((1,), (1, 3), (3,)), ((4,), (4, 1), (1,)), ((3,), (3, 2), (2,))],
            "addbmm_": [
                ((2, 2), (3, 2, 3), (3, 3, 2)),
                ((1, 2), (3, 1, 3), (3, 3, 2)),
                ((2, 1), (1, 2, 3), (1, 3, 1)),
                ((1, 1), (2, 1, 1), (2, 1, 1)),
            ],
            "baddbmm_": [
                ((3, 2, 2), (3, 2, 3), (3, 3, 2)),
                ((3, 1, 2), (3, 1, 3), (3, 3, 2)),
                ((1, 2, 1), (1, 2, 3), (1, 3, 1)),
                ((2, 1, 1), (2, 1, 1), (2, 1, 1)),
            ],
        }.items()
    ],
]

STRIDES = [
    ((6,), (2, 2), (1, 2), 0),
    ((6,), (2, 3), (0, 1), 1),
    ((2, 3), (3,), (2,), 1),
    ((8,), (2, 2, 2), (1, 2, 4), 0),
    ((4,), (), (), 3),
]
PARTS = [
    row(
        "as_strided_",
        *[(floats(*shape), size, stride, offset) for shape, size, stride, offset in STRIDES],
        ours=lambda x, *a: x.clone().as_strided_(*a),
        reference=lambda x, *a: x.as_strided(*a),
        alone=True,
        gradient=False,
    ),
    row("as_strided", *[(floats(*shape), size, stride, offset) for shape, size, stride, offset in STRIDES], alone=True),
    row(
        "as_strided_scatter",
        *[
            (floats(*shape), floats(*size), size, stride, offset)
            for shape, size, stride, offset in STRIDES
            if 0 not in stride
        ],
        (floats(5), floats(2), (2,), (2,), 0),
        (floats(9), floats(3), (3,), (4,), 0),
        gradient=False,
        alone=True,
    ),
    row(
        "T",
        *[x for x in ANY if x.ndim == 2],
        floats(1, 2),
        floats(4, 4),
        integers(2, 2),
        ours=lambda x: x.T,
        reference=lambda x: x.T,
    ),
    row(
        "tril_indices",
        *[(r, c, o) for r, c, o in ((2, 3, 0), (3, 2, 1), (3, 3, -1), (1, 1, 0), (0, 3, 0))],
        ours=Tensor.tril_indices,
        reference=torch.tril_indices,
    ),
    row("stride", *[x for x in ANY if x.size], (floats(2, 3), 1)),
    row(
        "fill_diagonal_",
        (floats(3, 3), 2.0),
        (floats(2, 4), 1),
        (floats(5, 2), 0.5),
        (floats(5, 2), 0.5, True),
        (integers(3, 3, 3), 7),
        gradient=False,
    ),
]

FACTS = [
    *[
        row(name, *ANY)
        for name in (
            "dim",
            "ndimension",
            "nelement",
            "numel",
            "element_size",
            "is_floating_point",
            "is_signed",
            "is_complex",
            "is_conj",
            "is_neg",
            "tolist",
            "resolve_neg",
            "resolve_conj",
            "conj",
            "conj_physical",
            "is_contiguous",
            "storage_offset",
            "clone",
            "contiguous",
            "detach",
            "cpu",
            "positive",
        )
    ],
    row(
        "size",
        *ANY[:3],
        (ANY[0], 0),
        (ANY[1], -1),
        ours=lambda x, *a: x.size(*a),
        reference=lambda x, *a: x.size(*a) if a else tuple(x.shape),
    ),
    row("ndim", *ANY, ours=lambda x: x.ndim, reference=lambda x: x.ndim),
    row("shape", *ANY, ours=lambda x: x.shape, reference=lambda x: tuple(x.shape)),
    row("nbytes", *ANY, reference=lambda x: x.nbytes),
    row("dtype", *ANY, ours=lambda x: x.dtype, reference=lambda x: x.dtype),
    row("max_shape", *ANY, ours=lambda x: x.max_shape, reference=lambda x: tuple(x.shape)),
    row("max_numel", *ANY, ours=lambda x: x.max_numel(), reference=lambda x: x.numel()),
    row("device", *ANY, ours=lambda x: x.device.lower(), reference=lambda x: x.device.type),
    row("data", *ANY, ours=lambda x: bytes(x.data()), reference=lambda x: x.tobytes(), oracle="numpy"),
    row("numpy", *ANY, ours=lambda x: x.numpy(), reference=lambda x: x, oracle="numpy"),
    row("item", *[floats(*s) for s in ((), (1,), (1, 1))], integers(1), np.array(True), np.float64([2.5])),
    row("is_nonzero", *[floats(*s) for s in ((), (1,), (1, 1))], integers(1), np.array(True), np.zeros(1, np.float32)),
    row("is_same_size", *[(x, y) for x in ANY[:3] for y in ANY[:3]]),
    row("equal", *[(x, y) for x in ANY[:3] for y in ANY[:3]], (NAN, NAN)),
    row("get_device", *ANY),
    row("type", *[(x, torch.int32) for x in ANY[2:5]], (ANY[2], torch.float32), (ANY[2], torch.bool), alone=True),
    row("type_as", *[(x, y) for x in ANY[2:5] for y in ANY[:3]]),
    row("to", *[(x, kind) for x in ANY[2:5] for kind in (torch.float32, torch.int64)], (ANY[0], "cpu"), alone=True),
    row(
        "to_",
        *[(x, kind) for x in ANY[2:5] for kind in (torch.float32, torch.int64)],
        ours=lambda x, kind: x.clone().to_(kind),
        reference=lambda x, kind: x.to(kind),
    ),
    row(
        "cast",
        *[(x, kind) for x in ANY[2:5] for kind in (torch.float32, torch.int64)],
        reference=lambda x, kind: x.to(kind),
    ),
    row(
        "bitcast",
        *[(x, torch.int32) for x in ANY[:3]],
        (ANY[6], torch.int32),
        (ANY[3], torch.float64),
        reference=lambda x, kind: x.view(kind),
        gradient=False,
    ),
    row("detach_", *ANY[:6], ours=lambda x: x.clone().detach_(), reference=lambda x: x.detach(), gradient=False),
    row(
        "requires_grad_",
        *ANY[:6],
        ours=lambda x: x.clone().requires_grad_(False),
        reference=lambda x: x,
        gradient=False,
    ),
]

NEW = [
    row("new_zeros", *[(x, (2, 3)) for x in ANY[:5]], gradient=False),
    row("new_ones", *[(x, (2, 3)) for x in ANY[:5]], gradient=False),
    row("new_full", *[(x, (2, 3), 7) for x in ANY[:5]], gradient=False),
    *[
        row(
            name,
            *[(x, (2, n)) for n, x in enumerate(ANY[:6])],
            ours=lambda x, s, n=name: getattr(x, n)(s).shape,
            reference=lambda x, s: tuple(s),
            alone=True,
        )
        for name in ("new_empty",)
    ],
    row("new_tensor", *[(x, [1, 2]) for x in ANY[:5]], gradient=False),
    row("empty_like", *ANY, ours=lambda x: x.empty_like().shape, reference=lambda x: tuple(x.shape), alone=True),
    row(
        "empty", *[((2, n),) for n in range(5)], ours=lambda s: Tensor.empty(s).shape, reference=lambda s: s, alone=True
    ),
    row("invalids", *[((2, n),) for n in range(5)], ours=lambda s: Tensor.invalids(s).shape, reference=lambda s: s),
    row("eye", *[(n, m) for n in (0, 1, 3) for m in (1, 4)], ours=Tensor.eye, reference=torch.eye, alone=True),
    row(
        "const",
        *[2.5, 3, True, -1.0, 0],
        ours=Tensor.const,
        reference=lambda v: torch.tensor(v, dtype=torch.int32 if type(v) is int else None),
    ),
    row("const_like", *[(x, 3) for x in ANY], reference=torch.full_like, gradient=False),
    row("full", *[((2, n), 1.5) for n in range(5)], ours=Tensor.full, reference=torch.full),
    row("zeros", *[((2, n),) for n in range(5)], ours=Tensor.zeros, reference=torch.zeros),
    row("ones", *[((2, n),) for n in range(5)], ours=Tensor.ones, reference=torch.ones),
    row(
        "linspace",
        (0.0, 1.0, 5),
        (-2.0, 3.0, 7),
        (1.0, 1.0, 3),
        (5.0, -5.0, 4),
        (0.0, 9.0, 1),
        (0.0, 9.0, 0),
        ours=Tensor.linspace,
        reference=torch.linspace,
        alone=True,
    ),
    row(
        "from_blob",
        *[x for x in ANY if x.size],
        ours=lambda x: Tensor.from_blob((held := x.numpy()).ctypes.data, held.shape, dtype=x.dtype).clone().realize(),
        reference=lambda x: x,
        gradient=False,
    ),
    row(
        "from_dlpack",
        *[x for x in ANY if x.size],
        ours=lambda x: Tensor.from_dlpack(x.numpy()),
        reference=lambda x: x,
        gradient=False,
    ),
]

SPECIAL = [
    row("float_power_", *[(floats(3).astype(np.float64) ** 2, p) for p in (2, 0.5, -1.0, 3, 0)], gradient=False),
    row(
        "logaddexp2",
        *[(floats(3), floats(3)) for _ in range(4)],
        (np.float32([-np.inf, 1e4, np.nan]), np.float32([-np.inf, 1e4, 1])),
    ),
    row("nan_to_num", NAN, (NAN, 1.0), (NAN, 0.0, 5.0), (NAN, 0.0, 5.0, -5.0), NAN.astype(np.float64)),
    row(
        "ldexp",
        (floats(4), integers(4)),
        (NAN, integers(8)),
        (np.float32([1e-40, 3e38, 1.0]), np.int32([100, -200, 127])),
        gradient=False,
    ),
    row("nextafter", (NAN, np.float32(0).reshape(())), (NAN, NAN[::-1].copy()), (floats(3), floats(3)), gradient=False),
    row("copysign", (NAN, NAN[::-1].copy()), (floats(3), -0.0), gradient=False),
    row("frexp", NAN, np.float32([1e-45, 1e-40, 3.4e38]), gradient=False),
    *[
        row(name, NAN, np.float32([5e-39, -5e-39, 1e-45, 1e38]), gradient=False)
        for name in (
            "signbit",
            "isposinf",
            "isneginf",
            "isreal",
            "log1p",
            "expm1",
            "sinh",
            "cosh",
            "erfc",
            "asinh",
            "floor",
            "ceil",
            "trunc",
            "round",
            "reciprocal",
            "rsqrt",
            "exp",
            "log",
        )
    ],
    row("sign", NAN, reference=np.sign, oracle="numpy"),
    row("heaviside", (NAN, NAN[::-1].copy()), (NAN, -NAN), reference=np.heaviside, oracle="numpy"),
    row("i0", np.float32([0.0, -0.0, 1e-30, 7.9, 8.1, -80.0])),
    *[
        row(name, (NAN, NAN[::-1].copy()), (NAN, np.zeros(8, np.float32)), (NAN, -NAN), gradient=False)
        for name in ("atan2", "hypot", "fmax", "fmin", "xlogy", "maximum", "minimum")
    ],
]

PLACES = [
    row(
        "bincount",
        integers(9, low=0),
        (integers(9, low=0), floats(9)),
        (integers(3, low=0), None, 20),
        np.int64([]),
        (integers(5, low=0, dtype=np.uint8),),
        gradient=False,
    ),
    row(
        "isin",
        (integers(20), integers(30)),
        (integers(3, 3), integers(2)),
        (floats(4), floats(20)),
        (NAN, NAN),
        Sample((integers(20), integers(30)), {"invert": True}),
    ),
    row(
        "searchsorted",
        *[(np.sort(floats(n)), floats(2, 3)) for n in (1, 2, 7, 64)],
        (np.sort(floats(3, 5)), floats(3, 2)),
        Sample((np.sort(integers(9)), integers(5)), {"right": True}),
    ),
    row("searchsorted", (np.float32([1, 2, np.nan]), NAN), reference=np.searchsorted, oracle="numpy"),
    row(
        "bucketize",
        *[(floats(2, 3), np.sort(floats(n))) for n in (1, 2, 7)],
        (integers(5), np.sort(integers(9))),
        Sample((integers(5), np.sort(integers(9))), {"right": True}),
    ),
    row(
        "sort",
        *[Sample((x,), {"dim": -1, "descending": True, "stable": True}) for x in ANY if x.ndim and x.size],
        Sample((NAN,), {"dim": -1, "stable": True}),
        alone=True,
    ),
    row(
        "argsort",
        *[Sample((x,), {"dim": -1, "descending": True, "stable": True}) for x in ANY if x.ndim and x.size],
        Sample((NAN,), {"dim": -1, "stable": True}),
        alone=True,
    ),
    row(
        "mode",
        (integers(20), 0),
        (integers(4, 9), 1),
        (integers(9, 4), 0),
        (integers(5, 5), -1, True),
        (floats(6), 0),
        ours=lambda *a: a[0].mode(*a[1:])[0],
        reference=lambda *a: a[0].mode(*a[1:])[0],
    ),
    row(
        "unique",
        integers(20),
        integers(3, 4),
        Sample((integers(20),), {"return_inverse": True, "return_counts": True}),
        Sample((integers(6, 2, low=0, high=2),), {"dim": 0, "return_inverse": True, "return_counts": True}),
        Sample((integers(2, 6, low=0, high=2),), {"dim": 1}),
        integers(0),
        floats(7),
        gradient=False,
    ),
    row(
        "unique_consecutive",
        integers(20, low=0, high=3),
        integers(3, 4, low=0, high=2),
        floats(5),
        Sample((integers(9, low=0, high=2),), {"return_inverse": True, "return_counts": True}),
        Sample((integers(6, 2, low=0, high=2),), {"dim": 0, "return_inverse": True, "return_counts": True}),
        gradient=False,
    ),
    row(
        "repeat_interleave",
        (integers(3), np.int64([0, 2, 1])),
        (floats(2, 3), 2, 1),
        (floats(2, 3), np.int64([3, 1]), 0),
    ),
    row("masked_select", *[(x, x > 0) for x in ANY[:5]], (floats(3, 2), np.array([True, False]))),
    row("assign", *[(x, x * 2) for x in ANY[:6]], ours=lambda x, y: x.clone().assign(y), reference=lambda x, y: y),
    row("replace", *[(x, x * 2) for x in ANY[:6]], ours=lambda x, y: x.clone().replace(y), reference=lambda x, y: y),
    row(
        "copy_",
        *[(x, x * 2) for x in ANY[:6]],
        ours=lambda x, y: x.clone().copy_(y),
        reference=lambda x, y: y,
        gradient=False,
    ),
    row(
        "fill_",
        *[(x, 3) for x in ANY[:6]],
        ours=lambda x, y: x.clone().fill_(y),
        reference=torch.full_like,
        gradient=False,
    ),
    row("zero_", *ANY[:6], ours=lambda x: x.clone().zero_(), reference=torch.zeros_like, gradient=False),
    row(
        "apply_", *ANY[:6], ours=lambda x: x.clone().apply_(lambda v: v + 1), reference=lambda x: x + 1, gradient=False
    ),
    row(
        "map_",
        *[(x, x) for x in ANY[:6]],
        ours=lambda x, y: x.clone().map_(y, lambda a, b: a + 2 * b),
        reference=lambda x, y: x + 2 * y,
        gradient=False,
    ),
    row(
        "map2_",
        *[(x, x, x) for x in ANY[:6]],
        ours=lambda x, y, z: x.clone().map2_(y, z, lambda a, b, c: a + b + c),
        reference=lambda x, y, z: x + y + z,
        gradient=False,
    ),
]

ROWS = [*CASTS, *PRODUCTS, *PARTS, *FACTS, *NEW, *SPECIAL, *PLACES]
