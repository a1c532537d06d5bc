"""Names of tinygrad's Tensor that no other library has."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from lazulite import Tensor, UOp, Variable, dtypes
from surface.rows import Sample, claim, row
from surface.rows_tensor import ANY, floats, integers

PAIRS = [
    (floats(3), floats(3)),
    (floats(2, 3), floats(3)),
    (integers(4), integers(4)),
    (floats(2), 2.0),
    (integers(3), 3),
]
ONES = [floats(n, 3) for n in range(1, 6)]


def file_url(data, packed=False):
    path = Path(tempfile.mkdtemp()) / "bytes"
    path.write_bytes(gzip.compress(data) if packed else data)
    return path.as_uri()


def doubled(out, x):
    i = UOp.range(x.shape[0], 0)
    return UOp.sink(out[i].store(x[i] * 2))


def hashed(name, size=None):
    maker = getattr(hashlib, name)
    return lambda data: list(maker(data).digest() if size is None else maker(data).digest(size))


OPERATIONS = [
    row(
        "linear",
        *[(floats(2, n), floats(n, 3), floats(3)) for n in (1, 2, 3, 4)],
        (floats(2, 3), floats(3)),
        reference=lambda x, w, b=0.0: x @ w + b if w.ndim > 1 else x * w + b,
        alone=True,
    ),
    row(
        "alu",
        *[(x, "add", y) for x, y in PAIRS[:3]],
        (ONES[0], "MUL", ONES[0]),
        (ONES[1], "max", ONES[1]),
        reference=lambda x, op, y: {"add": torch.add, "MUL": torch.mul, "max": torch.maximum}[op](x, y),
    ),
    row("usum", *PAIRS, (ONES[0], 1, ONES[0]), reference=lambda x, *ys: x + sum(ys)),
    row("uprod", *PAIRS, reference=lambda x, y: x * y),
    row("ufix", *[(x, 3) for x in ANY[:5]], reference=lambda x, v: torch.tensor(v, dtype=x.dtype), gradient=False),
    row("mod", *[(integers(5), n) for n in (2, -3, 5)], (floats(5), 2.0), (floats(5), -1.5), reference=torch.remainder),
    row(
        "lshift",
        *[(integers(5, low=0), n) for n in (0, 1, 3, 7)],
        (integers(3, low=0), integers(3, low=0)),
        reference=torch.bitwise_left_shift,
    ),
    row(
        "rshift",
        *[(integers(5), n) for n in (0, 1, 3, 7)],
        (integers(3), integers(3, low=0)),
        reference=torch.bitwise_right_shift,
    ),
    row("swish", *ONES, reference=F.silu),
    row("quick_gelu", *ONES, reference=lambda x: x * torch.sigmoid(1.702 * x)),
    row("sequential", *ONES, ours=lambda x: x.sequential([Tensor.abs, Tensor.neg]), reference=lambda x: -x.abs()),
    row(
        "layernorm",
        *[floats(2, 3, n) for n in (3, 4, 6, 8)],
        (floats(2, 3), (0, 1)),
        reference=lambda x, axis=(-1,): F.layer_norm(x, [x.shape[a] for a in axis]),
    ),
    row(
        "batchnorm",
        *[(floats(2, n), floats(n), floats(n), floats(n), np.abs(floats(n)) + 1) for n in (1, 2, 3, 4, 5)],
        reference=lambda x, w, b, mean, inv: (x - mean) * inv * w + b,
    ),
    row("image_dot", *[(floats(2, n), floats(n, 3)) for n in (1, 2, 3, 4, 5)], reference=torch.matmul),
    row("image_conv2d", *[(floats(1, 2, 6, 6), floats(3, 2, n, n)) for n in (1, 2, 3, 4, 5)], reference=F.conv2d),
    row("contiguous_backward", *ANY, reference=lambda x: x.clone()),
]

MOVEMENTS = [
    row(
        "shrink",
        (floats(4), ((1, 3),)),
        (floats(3, 4), ((0, 2), (1, 4))),
        (floats(3, 4), (None, (2, 3))),
        (integers(3), ((1, 1),)),
        (floats(2, 2, 2), (None, None, (0, 1))),
        reference=lambda x, box: x[tuple(slice(None) if part is None else slice(*part) for part in box)],
    ),
    row(
        "shrink_to",
        (floats(4), (2,)),
        (floats(3, 4), (2, 3)),
        (floats(3, 4), (None, 2)),
        (integers(3), (0,)),
        (floats(2, 2, 2), (1, 2, 1)),
        reference=lambda x, size: x[tuple(slice(None) if part is None else slice(part) for part in size)],
    ),
    row(
        "stack",
        *[(floats(2, 3), floats(2, 3)) for _ in range(4)],
        Sample((integers(2), integers(2)), {"dim": 1}),
        reference=lambda *xs, dim=0: torch.stack(xs, dim),
        alone=True,
    ),
    row(
        "pad_to",
        (floats(2), (4,)),
        (floats(2, 3), (3, 3)),
        (floats(2, 3), (None, 5)),
        (integers(3), (3,)),
        Sample((floats(2), (4,)), {"value": 2.5}),
        reference=lambda x, size, value=0: F.pad(
            x,
            [p for w, n in zip(size[::-1], x.shape[::-1], strict=True) for p in (0, 0 if w is None else w - n)],
            value=value,
        ),
    ),
    row(
        "rearrange",
        *[floats(2, 3, 4) for _ in range(4)],
        integers(2, 3, 4),
        ours=lambda x: x.rearrange("a b (c d) -> (b a) d c", d=2),
        reference=lambda x: x.reshape(2, 3, 2, 2).permute(1, 0, 3, 2).reshape(6, 2, 2),
    ),
]


def slope(x):
    y = x.clone()
    y.requires_grad = True
    (y * y).sum().backward()
    return y.grad


ENGINE = [
    row("realize", *ANY, reference=lambda x: x.clone()),
    row("uop", *ANY, ours=lambda x: Tensor(x.uop), reference=lambda x: x.clone(), gradient=False),
    row("backward", *ONES, ours=slope, reference=lambda x: 2 * x, gradient=False, alone=True),
    row("grad", *ONES, ours=slope, reference=lambda x: 2 * x, gradient=False, alone=True),
    row(
        "gradient",
        *ONES,
        ours=lambda x: (x * x).sum().gradient(x)[0],
        reference=lambda x: 2 * x,
        gradient=False,
        alone=True,
    ),
    row(
        "custom_kernel",
        *[floats(n) for n in range(2, 7)],
        ours=lambda x: Tensor.empty(*x.shape).custom_kernel(x, fxn=doubled)[0],
        reference=lambda x: x * 2,
        gradient=False,
    ),
    row("as_param", *ONES, ours=lambda x: x.call(fxn=x.as_param(0) * 3), reference=lambda x: x * 3),
    row(
        "call",
        *[(x, x[::-1].copy()) for x in ONES],
        ours=lambda x, y: x.call(y, fxn=x.as_param(0) - y.as_param(1)),
        reference=lambda x, y: x - y,
    ),
    row("callify", *ONES, ours=lambda x: (x + 1).callify(), reference=lambda x: x + 1),
    row(
        "is_param",
        *ONES,
        ours=lambda x: (x.is_param, x.clone().is_param_().is_param),
        reference=lambda x: (False, True),
    ),
    row("is_param_", *ONES, ours=lambda x: x.clone().is_param_(False).is_param, reference=lambda x: False),
    claim(
        "schedule_linear",
        *[lambda n=n: len(Tensor([1.5] * n).add(1).schedule_linear().src) == 1 for n in range(2, 6)],
        lambda: Tensor([1]).realize().schedule_linear().src == (),
    ),
    claim(
        "linear_with_vars",
        *[
            lambda n=n: Tensor([1.5] * 9)[: Variable("n", 1, 8).bind(n)].add(1).linear_with_vars()[1] == {"n": n}
            for n in range(2, 7)
        ],
    ),
]

BITS = [
    claim(
        "threefry",
        *[
            lambda n=n: (
                Tensor([5, 6][:n], dtype="uint64").threefry(Tensor([7, 8][:n], dtype="uint64")).tolist()
                == [10526847629815056275, 13919496807411270186][:n]
            )
            for n in (1, 2)
        ],
        lambda: Tensor([5], dtype="uint64").threefry(7).dtype is dtypes.uint64,
        lambda: len(set(Tensor.arange(100).cast("uint64").threefry(1).tolist())) == 100,
        lambda: Tensor([5], dtype="uint64").threefry(7).item() != Tensor([5], dtype="uint64").threefry(8).item(),
    ),
    claim(
        "random_bits",
        *[
            lambda n=n: (
                Tensor.random_bits(Tensor([1, 2], dtype="uint32"), Tensor([3, 4], dtype="uint32"), n).shape == (n,)
            )
            for n in (0, 1, 2, 5, 9)
        ],
        lambda: (
            Tensor.random_bits(Tensor([1, 2], dtype="uint32"), Tensor([3, 4], dtype="uint32"), 5).tolist()
            == [1778726050, 3792530969, 484810714, 3427664344, 3744864161]
        ),
    ),
    row(
        "keccak",
        *[bytes(range(n)) for n in (0, 1, 135, 136, 137)],
        ours=lambda data: Tensor(data, dtype="uint8").keccak(),
        reference=lambda data: np.array(hashed("sha3_256")(data), np.uint8),
    ),
    row(
        "keccak",
        *[bytes(range(n)) for n in (3, 168)],
        ours=lambda data: Tensor(data).keccak("shake_128"),
        reference=lambda data: np.array(hashed("shake_128", 16)(data), np.uint8),
    ),
    claim(
        "hash",
        *[lambda n=n: Tensor(bytes(n)).hash().tolist() == tree_hash(bytes(n)) for n in (1, 2, 4096, 5000)],
        lambda: Tensor([1.0, 2.0]).hash().tolist() == tree_hash(np.float32([1, 2]).tobytes()),
    ),
    row(
        "from_url",
        *[(bytes([n, 7]),) for n in range(3)],
        (b"12", True),
        (b"abc", True),
        ours=lambda data, packed=False: Tensor.from_url(file_url(data, packed), gunzip=packed).tolist(),
        reference=lambda data, packed=False: list(data),
    ),
]


def tree_hash(data):
    """What `hash` is, for up to a mebibyte."""
    data = data.ljust(1 << 20, bytes(1))
    pieces = b"".join(hashlib.shake_128(data[i : i + 4096]).digest(16) for i in range(0, 1 << 20, 4096))
    return list(hashlib.shake_128(pieces).digest(16))


TWO = ("CPU:0", "CPU:1")
LAYOUTS = [(floats(3), 0), (floats(2, 5), 1), (floats(2, 5), None), (integers(4, 3), 0), (floats(1, 3), -1)]


def sharded(name):
    """What comes back from two devices, in place and out of place."""
    return row(
        name,
        *LAYOUTS,
        ours=lambda x, axis: getattr(x, name)(TWO, axis) * 2,
        reference=lambda x, axis: x * 2,
        gradient=False,
    )


DEVICES = [
    sharded("shard"),
    sharded("shard_"),
    row(
        "shard_like",
        *LAYOUTS,
        ours=lambda x, axis: x.shard_like(x.shard(TWO, axis)) + x.shard(TWO),
        reference=lambda x, axis: x + x,
        gradient=False,
    ),
]
OTHERS = [
    row("unsafe_split_with_sizes", *[(floats(6), [n, 6 - n]) for n in range(1, 6)]),
    row("conj_physical_", *ANY[:6], ours=lambda x: x.clone().conj_physical_(), reference=lambda x: x.clone()),
    row(
        "histogram",
        *[Sample((floats(9), n), {"range": (-3.0, 3.0)}) for n in (1, 2, 5)],
        (floats(9), np.sort(floats(5))),
        Sample((floats(9), 4), {"range": (-3.0, 3.0), "density": True}),
        Sample((floats(9), 4), {"range": (-3.0, 3.0), "weight": floats(9)}),
        gradient=False,
    ),
]
ROWS = [*OPERATIONS, *MOVEMENTS, *ENGINE, *BITS, *DEVICES, *OTHERS]
