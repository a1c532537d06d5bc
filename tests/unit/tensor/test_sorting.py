"""Elements in order, against NumPy and torch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ArgumentError, Context, GlobalCounters, Tensor
from lazulite.tensor import radix

TYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool"]


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Few different values, so that many are equal; for floats with NaN, infinities and both zeros."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if not dtype.startswith("float"):
        ends = np.iinfo(dtype)
        return generator.choice(np.array([ends.min, ends.max, 0, 1, 2, 100], dtype), shape)
    return generator.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 1e-7, 3e4], dtype), shape)


def ordered(x: np.ndarray, descending: bool) -> np.ndarray:
    """The stable order of the last axis, NaN the largest."""
    keys = x.astype(object) if x.dtype.kind in "iub" else np.where(np.isnan(x), np.inf, x.astype(np.float64))
    if descending:
        keys = -(keys.astype(object) + 0) if keys.dtype == object else -keys
    last = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    return np.lexsort((keys, ~last if descending else last), axis=-1)


@given(
    st.sampled_from(TYPES), st.sampled_from([(1,), (7,), (3, 64), (2, 65), (2, 3, 70), (9000,)]), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_sorting_is_stable_and_puts_nan_above_all(
    dtype: str, shape: tuple[int, ...], descending: bool, seed: int
) -> None:
    x = drawn(shape, dtype, seed)
    expected = ordered(x, descending)
    values, order = Tensor(x).sort(descending=descending)

    assert expected.tolist() == order.tolist()
    assert np.array_equal(np.take_along_axis(x, expected, -1), values.numpy(), equal_nan=x.dtype.kind == "f")
    assert expected.tolist() == Tensor(x).argsort(descending=descending).tolist()


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_any_axis_is_sorted(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((70, 5, 3)).astype(np.float32)
    assert np.sort(x, axis).tolist() == Tensor(x).sort(axis)[0].tolist()


def test_the_interpreter_sorts_as_the_processor_does() -> None:
    x = drawn((2, 66), "float32", 1)
    orders = [Tensor(x, device=device).argsort().tolist() for device in ("CPU", "PYTHON")]
    assert orders[0] == orders[1]


def test_the_order_does_not_depend_on_the_number_of_threads() -> None:
    x = np.random.default_rng(0).integers(0, 1000, (4, 20_000)).astype(np.int32)
    found = []
    for threads in (1, 4):
        with Context(THREADS=threads):
            found.append(Tensor(x).argsort().numpy())
    assert (found[0] == np.argsort(x, kind="stable")).all()
    assert (found[0] == found[1]).all()


def test_nothing_is_sorted_into_nothing_and_a_number_into_itself() -> None:
    assert [[], []] == [part.tolist() for part in Tensor([]).sort()]
    assert [3.0, 0] == [part.item() for part in Tensor(3.0).sort()]


def test_topk_and_kthvalue_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).permutation(300).reshape(3, 100).astype(np.float32)
    for largest in (True, False):
        expected = torch.topk(torch.tensor(x), 7, largest=largest)
        assert [part.tolist() for part in expected] == [
            part.tolist() for part in Tensor(x).topk(7, largest=largest)
        ]  # fmt: skip
    expected = torch.kthvalue(torch.tensor(x), 2, dim=0, keepdim=True)
    assert [part.tolist() for part in expected] == [part.tolist() for part in Tensor(x).kthvalue(2, 0, keepdim=True)]
    with pytest.raises(ArgumentError, match="from 0 to the 3 elements"):
        Tensor([1, 2, 3]).topk(4)
    with pytest.raises(ArgumentError, match="from 1 to the 3 elements"):
        Tensor([1, 2, 3]).kthvalue(0)


def test_equal_elements_keep_their_order_in_descending_order_too() -> None:
    """B061"""
    levels = np.random.default_rng(0).integers(0, 5, 300).astype(np.float32)
    expected = np.argsort(-levels, kind="stable")

    assert expected.tolist() == Tensor(levels).sort(descending=True)[1].tolist()
    assert expected[:10].tolist() == Tensor(levels).topk(10)[1].tolist()


@given(st.sampled_from([1, 2, 7, 66]), st.booleans(), st.integers(0, 99))
def test_the_median_is_torchs(size: int, with_nan: bool, seed: int) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(seed).integers(-9, 9, (2, size)).astype(np.float32)
    if with_nan:
        x[0, seed % size] = np.nan
    expected = torch.median(torch.tensor(x), 1).values.numpy()
    assert np.array_equal(expected, Tensor(x).median(1)[0].numpy(), equal_nan=True)
    assert np.array_equal(torch.median(torch.tensor(x)).numpy(), Tensor(x).median().numpy(), equal_nan=True)


def test_distinct_elements_come_in_order_with_their_numbers() -> None:
    x = np.random.default_rng(0).integers(-5, 5, (20, 9)).astype(np.int32)
    expected = np.unique(x, return_counts=True)
    assert [part.tolist() for part in expected] == [part.tolist() for part in Tensor(x).unique(return_counts=True)]
    assert [] == Tensor([]).unique().tolist()


def test_the_gradient_goes_back_to_where_the_elements_came_from() -> None:
    torch = pytest.importorskip("torch")
    x, weight = np.random.default_rng(0).standard_normal((2, 3, 70)).astype(np.float32)
    theirs = torch.tensor(x, requires_grad=True)
    (torch.sort(theirs).values * torch.tensor(weight)).sum().backward()
    ours = Tensor(x, requires_grad=True)
    (ours.sort()[0] * Tensor(weight)).sum().backward()
    assert ours.grad is not None
    assert theirs.grad.tolist() == ours.grad.tolist()


def test_sorting_again_compiles_nothing() -> None:
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    Tensor(x).argsort().realize()
    before = GlobalCounters.programs_compiled
    Tensor(x[::-1].copy()).argsort().realize()
    assert before == GlobalCounters.programs_compiled


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
@pytest.mark.parametrize("shape", [(70,), (2, 97), (3, 160)])
def test_long_rows_are_sorted_in_blocks_side_by_side(
    shape: tuple[int, ...], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter takes the blocks in any order."""
    monkeypatch.setattr(radix, "_BLOCK", 8)
    values = np.random.default_rng(3).integers(0, 9, shape).astype(np.int16)

    order = Tensor(values, device=device).argsort(-1)

    np.testing.assert_array_equal(np.argsort(values, -1, kind="stable"), order.numpy())


def test_a_million_elements_are_sorted_stably() -> None:
    values = np.random.default_rng(4).normal(size=1_000_000).astype(np.float32)
    values[::1000] = np.nan

    ordered, places = Tensor(values).sort()

    np.testing.assert_array_equal(np.sort(values), ordered.numpy())
    np.testing.assert_array_equal(np.argsort(values, kind="stable"), places.numpy())


SPECIAL = {
    "float32": [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38, 1.0],
    "float64": [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.0],
    "float16": [np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, -6e-8, 65504.0, -65504.0],
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [129, 20_001])
def test_limits_of_each_type_are_sorted_alike_on_any_number_of_threads(dtype: str, size: int) -> None:
    """Sizes of the kernel for one row and of that for blocks; many equal elements."""
    if dtype in SPECIAL:
        few = np.array(SPECIAL[dtype], dtype)
    else:
        ends = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        few = np.array([ends[0], ends[1], 0, 1, ends[0] // 2, ends[1] // 2], dtype)
    x = np.random.default_rng(size).choice(few, size)
    expected = ordered(x, False)
    for threads in (1, 2, 3, 4):
        with Context(THREADS=threads):
            values, order = Tensor(x).sort()
            assert expected.tolist() == order.tolist()
        assert x[expected].tobytes() == values.numpy().tobytes()


def test_bfloat16_is_sorted_by_its_values() -> None:
    x = np.random.default_rng(0).normal(size=300).astype(np.float32).view(np.uint32) & 0xFFFF0000
    values = x.view(np.float32)
    assert np.argsort(values, kind="stable").tolist() == Tensor(values).cast("bfloat16").argsort().tolist()
