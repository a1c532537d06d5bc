"""Random tensors: what their distributions are, in large draws."""

from __future__ import annotations

import math

from lazulite import Tensor, dtypes
from surface.rows import claim


def mean_of(x):
    return x.cast(dtypes.float64).mean().item()


def near(value, wanted, by=0.1):
    return abs(value - wanted) <= by


N = 20_000


def drawn(name, *args, like=0.0):
    return getattr(Tensor.full((N,), like).contiguous(), name)(*args)


def dropped(p):
    with Tensor.train():
        return Tensor.ones(N).dropout(p)


ROWS = [
    claim(
        "dropout",
        *[lambda p=p: near(mean_of(dropped(p)), 1.0) for p in (0.0, 0.2, 0.5)],
        lambda: set(dropped(0.5).tolist()) == {0.0, 2.0},
        lambda: dropped(1.0).sum().item() == 0,
        lambda: Tensor.ones(3).dropout(0.5).tolist() == [1.0] * 3,
    ),
    claim(
        "bernoulli",
        *[lambda p=p: near(mean_of(Tensor.full((N,), p).bernoulli()), p, 0.02) for p in (0.0, 0.2, 0.5, 0.9, 1.0)],
    ),
    claim(
        "bernoulli_", *[lambda p=p: near(mean_of(drawn("bernoulli_", p)), p, 0.02) for p in (0.0, 0.2, 0.5, 0.9, 1.0)]
    ),
    claim("uniform_", *[lambda a=a: near(mean_of(drawn("uniform_", a, a + 2)), a + 1) for a in (-3, 0, 1, 5, 10)]),
    claim(
        "normal_",
        *[lambda m=m: near(mean_of(drawn("normal_", m, 2)), m) for m in (-3, 0, 1, 5)],
        lambda: near(drawn("normal_", 1, 3).std().item(), 3),
    ),
    claim(
        "log_normal_",
        *[lambda m=m: near(drawn("log_normal_", m, 0.5).log().mean().item(), m) for m in (-1, 0, 1, 2)],
        lambda: near(drawn("log_normal_", 0, 0.5).log().std().item(), 0.5),
    ),
    claim(
        "exponential_",
        *[lambda r=r: near(mean_of(drawn("exponential_", r)) * r, 1) for r in (0.5, 1, 2, 10)],
        lambda: bool((drawn("exponential_") > 0).all().item()),
    ),
    claim(
        "cauchy_",
        *[lambda m=m: near(drawn("cauchy_", m, 0.5).median().item(), m) for m in (-2, 0, 1, 3)],
        lambda: near((drawn("cauchy_").abs() < 1).cast(dtypes.float32).mean().item(), 0.5),
    ),
    claim(
        "geometric_",
        *[lambda p=p: near(mean_of(drawn("geometric_", p)) * p, 1) for p in (0.1, 0.3, 0.5, 0.9)],
        lambda: drawn("geometric_", 0.5).min().item() == 1,
    ),
    claim(
        "random_",
        *[lambda n=n: drawn("random_", n, like=0).max().item() == n - 1 for n in (2, 5, 100)],
        lambda: drawn("random_", 3, 5, like=0).min().item() == 3,
        lambda: drawn("random_", like=0).max().item() > 2**30,
    ),
    claim(
        "multinomial",
        *[lambda n=n: sorted(Tensor.ones(n).multinomial(n).tolist()) == list(range(n)) for n in (1, 2, 9)],
        lambda: Tensor([0.0, 1.0, 0.0]).multinomial(4, True).tolist() == [1] * 4,
        lambda: near(mean_of(Tensor([1.0, 3.0]).multinomial(N, True)), 0.75, 0.02),
    ),
    claim(
        "rand", *[lambda s=s: near(mean_of(Tensor.rand(*s)), 0.5, 0.02) for s in ((N,), (2, N), (N, 2), (N, 1), (3, N))]
    ),
    claim(
        "rand_like",
        *[
            lambda s=s: near(mean_of(Tensor.ones(*s).rand_like()), 0.5, 0.02)
            for s in ((N,), (2, N), (N, 2), (N, 1), (3, N))
        ],
    ),
    claim("randn", *[lambda s=s: near(mean_of(Tensor.randn(*s)), 0) for s in ((N,), (2, N), (N, 2), (N, 1), (3, N))]),
    claim(
        "randn_like",
        *[lambda s=s: near(mean_of(Tensor.ones(*s).randn_like()), 0) for s in ((N,), (2, N), (N, 2), (N, 1), (3, N))],
    ),
    claim(
        "normal",
        *[lambda m=m: near(mean_of(Tensor.normal(N, mean=m, std=2)), m) for m in (-3, 0, 1, 5)],
        lambda: near(Tensor.normal(N, std=3).std().item(), 3),
    ),
    claim(
        "uniform", *[lambda a=a: near(mean_of(Tensor.uniform(N, low=a, high=a + 2)), a + 1) for a in (-3, 0, 1, 5, 10)]
    ),
    claim(
        "randint",
        *[lambda n=n: set(Tensor.randint(N, low=-n, high=n).tolist()) == set(range(-n, n)) for n in (1, 2, 5, 9, 20)],
    ),
    claim(
        "randperm", *[lambda n=n: sorted(Tensor.randperm(n).tolist()) == list(range(n)) for n in (0, 1, 2, 100, 1000)]
    ),
    claim(
        "scaled_uniform",
        *[lambda n=n: Tensor.scaled_uniform(n, n).abs().max().item() <= 1 / n for n in (1, 2, 5, 9, 20)],
    ),
    claim(
        "glorot_uniform",
        *[lambda n=n: Tensor.glorot_uniform(n, n).abs().max().item() <= math.sqrt(3 / n) for n in (1, 2, 5, 9, 20)],
    ),
    claim(
        "kaiming_uniform",
        *[
            lambda n=n: Tensor.kaiming_uniform(n, n, a=0).abs().max().item() <= math.sqrt(6 / n)
            for n in (1, 2, 5, 9, 20)
        ],
    ),
    claim(
        "kaiming_normal",
        *[lambda n=n: near(Tensor.kaiming_normal(N, n, a=0).std().item(), math.sqrt(2 / n)) for n in (1, 2, 5, 9, 20)],
    ),
    claim(
        "manual_seed",
        *[
            lambda s=s: (
                [Tensor.manual_seed(s), Tensor.rand(3).tolist()][1]
                == [Tensor.manual_seed(s), Tensor.rand(3).tolist()][1]
            )
            for s in (0, 1, 7, -1, 2**40)
        ],
    ),
]
