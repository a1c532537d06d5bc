"""Programs over sizes that vary: NumPy's values for every binding, compiled once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import Context, GlobalCounters, IndexRangeError, ShapeError, Tensor, Variable, jit
from lazulite.ir.size import least

N, S = Variable("n", 1, 6), Variable("s", 0, 2)
Pair = tuple[Tensor, np.ndarray]


def compiled() -> tuple[int, int]:
    return GlobalCounters.programs_compiled + GlobalCounters.programs_from_disk, GlobalCounters.schedules_built


@contextmanager
def nothing_compiled() -> Iterator[None]:
    before = compiled()
    yield
    assert before == compiled()


def both(pair: Pair, function: Callable[[Any], Any]) -> Pair:
    return function(pair[0]), function(pair[1])


def last(x: Any) -> int:
    return x.ndim - 1


STEPS: dict[str, Callable[[Pair, Any, int, Any, int], Pair]] = {
    "affine": lambda p, n, k, s, i: both(p, lambda x: x * 2 + 1),
    "first": lambda p, n, k, s, i: (p[0][:n], p[1][:k]),
    "first columns": lambda p, n, k, s, i: (p[0][..., :n], p[1][..., :k]),
    "window": lambda p, n, k, s, i: (p[0][s : s + 2], p[1][i : i + 2]),
    "from": lambda p, n, k, s, i: p if least(p[0].shape[0]) <= 2 else (p[0][s:], p[1][i:]),
    "row": lambda p, n, k, s, i: (p[0][s], p[1][i]),
    "sum": lambda p, n, k, s, i: (p[0].sum(0, keepdim=True), p[1].sum(0, keepdims=True)),
    "sum of columns": lambda p, n, k, s, i: both(p, lambda x: x.sum(-1)),
    "max": lambda p, n, k, s, i: (p[0].max(-1, keepdim=True), p[1].max(-1, keepdims=True)),
    "mean": lambda p, n, k, s, i: both(p, lambda x: x.mean(0)),
    "centered": lambda p, n, k, s, i: (p[0] - p[0].mean(0, keepdim=True), p[1] - p[1].mean(0, keepdims=True)),
    "flip": lambda p, n, k, s, i: (p[0].flip(0), np.flip(p[1], 0)),
    "turned": lambda p, n, k, s, i: (p[0].permute(*range(last(p[0]), -1, -1)), p[1].T),
    "padded": lambda p, n, k, s, i: (
        p[0].pad([(1, s)] + [(0, 0)] * last(p[0]), value=3),
        np.pad(p[1], [(1, i)] + [(0, 0)] * last(p[1]), constant_values=3),
    ),
    "twice": lambda p, n, k, s, i: (p[0].cat(p[0] * 2), np.concatenate([p[1], p[1] * 2])),
    "product": lambda p, n, k, s, i: p if p[1].ndim < 2 else (
        p[0] @ p[0].transpose(-1, -2), p[1] @ p[1].swapaxes(-1, -2)
    ),
    "flat": lambda p, n, k, s, i: (p[0].flatten(), p[1].reshape(-1)),
    "picked": lambda p, n, k, s, i: (p[0][Tensor([0, 0])], p[1][[0, 0]]),
    "sums so far": lambda p, n, k, s, i: (p[0].cumsum(0), p[1].cumsum(0)),
    "times n": lambda p, n, k, s, i: (p[0] * n, p[1] * k),
    "counted": lambda p, n, k, s, i: (
        p[0] + Tensor.arange(p[0].shape[-1]), p[1] + np.arange(p[1].shape[-1], dtype=np.float32)
    ),
    "realized": lambda p, n, k, s, i: (p[0].realize(), p[1]),
    "written": lambda p, n, k, s, i: written(p, s, i),
}  # fmt: skip


def written(pair: Pair, s: Any, i: int) -> Pair:
    x, array = pair[0].clone(), pair[1].copy()
    x[s : s + 1] = 7
    array[i : i + 1] = 7
    return x, array


def run(names: list[str], start: Pair, n: Any, k: int, s: Any, i: int) -> tuple[Pair, list[str]]:
    """The program for one binding, and the steps that were refused."""
    pair, refused = start, []
    for name in names:
        if not pair[1].ndim:
            break
        try:
            following = STEPS[name](pair, n, k, s, i)
        except (ShapeError, IndexRangeError) as error:
            refused.append(f"{name}: {type(error).__name__}")
            continue
        pair = following
    return pair, refused


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=2, max_size=3),
    st.sampled_from([(7, 9), (6, 40), (8, 3, 6)]),
)
def test_random_programs_are_numpys_and_compiled_once(
    names: list[str], bindings: list[tuple[int, int]], shape: tuple[int, ...]
) -> None:
    """A7"""
    array = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    x, before, refusals = Tensor(array).realize(), None, None
    for k, i in bindings:
        (found, wanted), refused = run(names, (x, array), N.bind(k), k, S.bind(i), i)

        assert wanted.shape == tuple(map(int, found.shape))
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)
        assert before in (None, compiled())
        assert refusals in (None, refused)
        before, refusals = compiled(), refused


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=4, max_size=5),
)
def test_random_programs_are_numpys_when_they_are_captured(names: list[str], bindings: list[tuple[int, int]]) -> None:
    """A7, A24"""
    array = np.random.default_rng(0).integers(-4, 5, (7, 9)).astype(np.float32)
    x = Tensor(array).realize()
    captured = jit(lambda x, n, s: run(names, (x, np.zeros((7, 9))), n, 1, s, 0)[0][0] + 1)
    for k, i in bindings:
        (_, wanted), _ = run(names, (x, array), N.bind(k), k, S.bind(i), i)

        np.testing.assert_allclose(captured(x, N.bind(k), S.bind(i)).numpy(), wanted + 1, rtol=1e-4, atol=1e-4)
    assert captured.reason == ""


@pytest.mark.parametrize("context", [{}, {"OPT": 0}, {"FUSE": 0}, {"THREADS": 1}])
@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_every_way_to_run_stops_at_the_current_size(context: dict[str, int], device: str) -> None:
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    with Context(**context):
        x = Tensor(array, device=device)
        for k in (2, 6, 1):
            found = (x[: N.bind(k)].softmax(0) * x[: N.bind(k)].exp().sum(0)).sum(1)
            np.testing.assert_allclose(
                found.numpy(), np.exp(array[:k] - array[:k].max(0) + array[:k].max(0)).sum(1), rtol=1e-5
            )


def test_what_lies_behind_the_current_size_is_never_read() -> None:
    x = Tensor([1.0, 2.0, float("nan"), float("inf"), 5.0, 6.0])

    assert [3.0, 2.0, 1.0] == [f(x[: N.bind(2)]).item() for f in (Tensor.sum, Tensor.max, Tensor.min)]
    assert [2.0, 4.0] == (x[: N.bind(2)] * 2).realize().tolist()


def test_a_long_row_is_cut_into_vectors_and_threads_with_a_rest() -> None:
    length = Variable("length", 1, 5000)
    array = np.random.default_rng(0).standard_normal((3, 5000)).astype(np.float32)
    x = Tensor(array).realize()
    for k in (5000, 1, 17, 4096, 1023):
        np.testing.assert_allclose((x[:, : length.bind(k)] * 2).numpy(), array[:, :k] * 2)
        np.testing.assert_allclose(x[:, : length.bind(k)].sum(1).numpy(), array[:, :k].sum(1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_products_with_sizes_that_vary_on_every_side(dtype: str) -> None:
    size = Variable("size", 1, 70)
    a, b = (np.random.default_rng(k).integers(-3, 4, (70, 70)).astype(np.float32) for k in (0, 1))
    x, y = (Tensor(each).cast(dtype).realize() for each in (a, b))
    for k in (70, 1, 33):
        n = size.bind(k)
        for found, wanted in (
            (x[:n] @ y, a[:k] @ b), (x[:, :n] @ y[:n], a[:, :k] @ b[:k]), (x @ y[:, :n], a @ b[:, :k]),
        ):  # fmt: skip
            assert wanted.astype(found.cast("float32").numpy().dtype).tolist() == found.cast(
                "float32"
            ).numpy().tolist() or (dtype != "float32")


@pytest.mark.parametrize("check", ["", "bounds,reference"])
def test_a_step_of_a_decoder_is_compiled_once(check: str) -> None:
    """A5, A7"""
    heads, room, width = 2, 9, 8
    position = Variable("position", 0, room - 1)
    keys, values = (Tensor.zeros(heads, room, width).clone().realize() for _ in range(2))
    known, counts = np.zeros((2, heads, room, width), np.float32), []
    random = np.random.default_rng(0)
    for k in (0, 1, 2, 8, 4):
        s = position.bind(k)
        q, key, value = random.standard_normal((3, heads, 1, width)).astype(np.float32)
        known[:, :, k] = key[:, 0], value[:, 0]
        scores = np.exp(q @ known[0, :, : k + 1].swapaxes(1, 2))
        wanted = scores / scores.sum(-1, keepdims=True) @ known[1, :, : k + 1]
        with Context(CHECK=check):
            keys[:, s : s + 1] = Tensor(key)
            values[:, s : s + 1] = Tensor(value)
            found = (Tensor(q) @ keys[:, : s + 1].transpose(1, 2)).softmax(-1) @ values[:, : s + 1]

            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)
            np.testing.assert_array_equal(known[0], keys.numpy())
        counts.append(compiled())
    assert 1 == len(set(counts[1:]))


def test_a_shape_reports_the_current_value() -> None:
    """A7"""
    x = Tensor.ones(4, 8)[:, : N.bind(3)].realize()

    assert (4, 3) == tuple(map(int, x.shape)) == x.numpy().shape
    assert ((4, 6), 24) == (x.max_shape, x.max_numel())
    assert "(4, n = 3)" in repr(x)


def test_a_variable_larger_than_the_axis_is_refused() -> None:
    """B116"""
    with pytest.raises(IndexRangeError, match=r"the slice from 0 to n = 8 may leave axis 0 of size 3"):
        Tensor([1, 2, 3])[: Variable("n", 1, 10).bind(8)]


@pytest.mark.parametrize(
    "use",
    [
        lambda x, n: x[:, ::n],
        lambda x, n: x[: n * 2 : 2],
        lambda x, n: x[:n].reshape(3, -1),
        lambda x, n: x.reshape(n, -1),
        lambda x, n: x.pad(((n - 3, 0), (0, 0))),
        lambda x, n: Tensor.arange(5, n),
        lambda x, n: x[:n] + x[: n + 1],
        lambda x, n: x[:n] + x[:3],
    ],
)
def test_what_does_not_hold_for_every_value_is_refused_for_each(use: Callable[[Tensor, Any], Tensor]) -> None:
    """A7"""
    for k in (3, 4):
        with pytest.raises((ShapeError, IndexRangeError)):
            use(Tensor.ones(16, 4), N.bind(k))


def test_an_unbound_variable_in_a_slice_names_its_range() -> None:
    """A7"""
    with pytest.raises(ShapeError, match=r"n in \[1, 6\] is not bound"):
        Tensor.ones(8)[:N]  # type: ignore[misc]


@pytest.mark.parametrize(
    "function",
    [
        lambda y, lib: (y * y).sum(),
        lambda y, lib: y.softmax(-1)[:, 0].sum(),
        lambda y, lib: (y @ y.T).sum() + (y.T @ y).max(),
        lambda y, lib: (y.flip(0) * y.cumsum(0)).sum(),
        lambda y, lib: y.prod(0).sum() + y.std(0).sum(),
        lambda y, lib: (y.flatten() ** 2).sum() + y.T.flatten()[0],
        lambda y, lib: (y.pad(((1, 2), (0, 0))) ** 2).sum() if lib is Tensor else (y**2).sum(),
    ],
)
def test_gradients_are_those_of_the_current_size_and_zero_behind_it(function: Callable[..., Any]) -> None:
    """A7"""
    array = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    before = None
    for k in (6, 2, 3):
        x, same = Tensor(array, requires_grad=True), Tensor(array[:k], requires_grad=True)
        function(x[: N.bind(k)], Tensor).backward()
        found, counts = x.grad.numpy(), compiled()
        function(same, Tensor).backward()

        np.testing.assert_allclose(found[:k], same.grad.numpy(), rtol=1e-3, atol=1e-4)
        assert not found[k:].any()
        assert before is None or counts == before
        before = compiled()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x.conv2d(Tensor.ones(2, 3, 3, 3), stride=2, padding=1),
        lambda x, n: x.max_pool2d((3, 3), stride=2, padding=1),
        lambda x, n: x.avg_pool2d((2, 2)),
        lambda x, n: x.roll(1, 2),
        lambda x, n: x.repeat(1, 1, 2, 1),
        lambda x, n: x.flatten(1),
        lambda x, n: x.argmax(),
        lambda x, n: x[0, 0].diagonal(),
        lambda x, n: x.scaled_dot_product_attention(x, x, is_causal=True),
        lambda x, n: x[0, 0].cross_entropy(Tensor.arange(n)),
        lambda x, n: x[:, :, Tensor([0, -1])],
        lambda x, n: x.bitcast("int16"),
        lambda x, n: x.to("PYTHON").to("CPU"),
        lambda x, n: Tensor(n) + Tensor.eye(n).sum() + Tensor.linspace(0, 1, n).sum(),
    ],
)
def test_methods_give_what_they_give_for_plain_sizes(function: Callable[..., Any]) -> None:
    """A7"""
    array = np.random.default_rng(0).standard_normal((2, 3, 9, 9)).astype(np.float32)
    length, whole = Variable("length", 5, 9), Tensor(array).realize()
    before = None
    for k in (9, 5, 8):
        found = function(whole[:, :, : length.bind(k)], length.bind(k)).numpy()
        counts = compiled()
        wanted = function(Tensor(array[:, :, :k]), k).numpy()

        assert wanted.shape == found.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        assert before is None or counts == before
        before = compiled()


def test_other_libraries_get_the_current_elements() -> None:
    x = (Tensor([[1, 2, 3], [4, 5, 6]]) + 0)[:, : S.bind(2)].realize()

    assert [[1, 2], [4, 5]] == np.from_dlpack(x).tolist() == pickle.loads(pickle.dumps(x)).tolist()
    assert [1, 2, 4, 5] == memoryview(x.data()).cast("i").tolist()


def test_kernels_written_by_hand_take_no_sizes_that_vary() -> None:
    with pytest.raises(ShapeError, match="custom_kernel: a kernel takes memory of sizes that do not vary"):
        Tensor.ones(6)[: N.bind(2)].custom_kernel(fxn=lambda out: out[0].store(1.0))


def test_threads_share_the_current_turns_and_write_nothing_behind_them() -> None:
    rows = Variable("rows", 0, 1024)
    array = np.random.default_rng(0).standard_normal((1024, 256)).astype(np.float32)
    y, total = Tensor(array).realize(), Tensor(array).sum(1).realize()
    for k in (1024, 5, 0, 700, 31):
        n, x = rows.bind(k), Tensor.zeros(1024, 256).clone().realize()
        x[:n] = y[:n] * 2
        wanted = np.zeros_like(array)
        wanted[:k] = array[:k] * 2
        np.testing.assert_array_equal(wanted, x.numpy())
        (y[:n] + 1).realize(), total[:n].sum().realize()


@pytest.mark.parametrize("drop", [False, True])
def test_results_of_a_replay_keep_how_they_were_made(drop: bool) -> None:
    """A24: gradients are those of the call itself, for every size and with the draws of that call."""
    rows, weight = Variable("rows", 1, 6), Tensor(np.arange(1.0, 7.0, dtype=np.float32), requires_grad=True)

    def scores(n: Any) -> Tensor:
        part = weight[:n]
        return ((part.dropout(0.5) if drop else part).exp2() * n + Tensor.arange(n)).sum().log()

    captured = jit(scores)
    with Context(TRAINING=1):
        for n in (3, 3, 3, 4, 2, 6, 1):
            Tensor.manual_seed(n)
            replayed = captured(rows.bind(n))
            Tensor.manual_seed(n)
            wanted = scores(n)

            np.testing.assert_allclose(replayed.numpy(), wanted.numpy(), rtol=1e-6)
            gradients = [value.gradient(weight)[0].numpy() for value in (replayed, wanted)]
            np.testing.assert_allclose(*gradients, rtol=1e-6)
    assert not captured.reason
