"""Realizing: who runs together, what a failure leaves behind, and what is kept of how values were made."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest

from lazulite import Context, DeviceError, GlobalCounters, GradientError, ShapeError, Tensor
from lazulite.engine import compile as compiled
from lazulite.engine import execute
from lazulite.ir import ops
from lazulite.ir.uop import live_nodes, toposort


@pytest.fixture(autouse=True)
def no_cache() -> Any:
    with Context(CACHE=0):
        yield


def test_program_order_of_the_examples() -> None:
    """A1."""
    x = Tensor([2])
    x.assign(x + 1)
    x.assign(x * 2)
    assert [6] == x.tolist()

    x, y = Tensor([1]), Tensor([2])
    e = x * 3 + 10
    x.assign(x * 2)
    y.assign(y + x)
    assert ([2], [4], [17]) == (x.tolist(), y.tolist(), (y + e).tolist())

    a, b = Tensor([0]), Tensor([10])
    a.assign(b + 1)
    v1 = a * 3
    a.assign(b + 100)
    assert [143] == (a + v1).tolist()


def test_swapping_halves_needs_no_realize() -> None:
    """B005."""
    x = Tensor([1, 2, 3, 4]).realize()
    left, right = x[0:2].clone(), x[2:4].clone()
    x[0:2].assign(right)
    x[2:4].assign(left)

    assert [3, 4, 1, 2] == x.tolist()


@pytest.mark.parametrize("shift", [slice(1, None), slice(None, -1)], ids=["left", "right"])
def test_overlapping_source_and_destination_behave_as_if_copied_first(shift: slice) -> None:
    other = slice(None, -1) if shift.start else slice(1, None)
    values = np.arange(1000, dtype=np.int32)
    x = Tensor(values)
    x[other] = x[shift]
    expected = values.copy()
    expected[other] = values[shift].copy()

    np.testing.assert_array_equal(expected, x.numpy())


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
def test_a_write_through_a_view_of_another_width_reaches_the_bytes(device: str) -> None:
    """B007."""
    x = Tensor([0] * 8, dtype="uint8", device=device)
    x.bitcast("int64").assign(12345)
    assert [57, 48, 0, 0, 0, 0, 0, 0] == x.tolist()

    x[4:].bitcast("int32")[0] = -1
    assert [57, 48, 0, 0, 255, 255, 255, 255] == x.tolist()


@pytest.mark.parametrize("producer", ["add", "cast", "sum", "copy", "constant", "transpose"])
def test_a_write_to_a_part_of_what_is_not_realized_takes_effect(producer: str) -> None:
    """B004, O01."""
    a = Tensor([1, 2, 3])
    c = {
        "add": lambda: a + a, "cast": lambda: a.cast("float32"), "sum": lambda: Tensor([[1, 2, 3]] * 2).sum(0),
        "copy": a.clone, "constant": lambda: Tensor.zeros(3), "transpose": lambda: Tensor([[1, 2, 3]]).T.reshape(3),
    }[producer]()  # fmt: skip
    last = c[2].item()
    c[0:2].assign(Tensor([99, 99]).cast(c.dtype))

    assert [99, 99, last] == c.tolist()
    one = Tensor([0])
    one[0] = 5
    assert [5] == one.tolist()


def test_a_view_of_a_view_writes_all_that_it_was_taken_from() -> None:
    t = Tensor([[1, 2, 3], [4, 5, 6]])
    turned = t.T
    turned[0:2][1].assign(Tensor([7, 8]))

    assert [[1, 7, 3], [4, 8, 6]] == t.tolist()
    assert [[1, 4], [7, 8], [3, 6]] == turned.tolist()


def test_views_of_views_keep_nothing_alive() -> None:
    t = Tensor([0] * 100)
    for _ in range(50):
        t = t[1:].realize()

    assert 1 >= len(t._handle.ancestors)
    assert [0] * 50 == t.tolist()


def test_a_write_to_an_expanded_tensor_is_refused() -> None:
    for view in (Tensor([1, 2]).expand(3, 2), Tensor([1, 2]).expand(3, 2)[0]):
        with pytest.raises(ShapeError, match="several elements in one place"):
            view.assign(5)


def test_gradients_of_programs_in_place() -> None:
    """A3."""
    x = Tensor([2.0, 3.0])
    y = x.clone()
    y.assign(y.square())
    assert [4.0, 6.0] == y.sum().gradient(x)[0].tolist()

    y.assign(y.square())
    first = y.sum().gradient(x)[0]
    second = first.sum().gradient(x)[0]
    assert ([32.0, 108.0], [48.0, 108.0]) == (first.tolist(), second.tolist())

    y.assign(Tensor([5.0, 5.0]))
    assert [0.0, 0.0] == y.sum().gradient(x)[0].tolist()

    z = x.clone()
    z[:1].assign(0)
    assert [0.0, 1.0] == z.sum().gradient(x)[0].tolist()


def test_a_clone_owns_its_memory() -> None:
    """A4: also of a value that is not realized yet."""
    for a in (Tensor([2]).realize(), Tensor([1]) + 1):
        b = a.clone()
        b.assign(7)
        assert ([7], [2]) == (b.tolist(), a.tolist())


def test_a_constant_that_was_computed_stays_on_its_device() -> None:
    x = (Tensor.ones(3, device="PYTHON") + 1).realize()
    x[0] = 5.0

    assert [5.0, 2.0, 2.0] == x.tolist()
    assert "PYTHON" == x._handle.storage.device


def test_a_thousand_steps_leave_as_many_nodes_as_ten() -> None:
    x = Tensor([1.0, -2.0], requires_grad=True)

    counts = []
    for _ in range(1000):
        x.grad = None
        (x * x).sum().backward()
        x.assign(x - x.grad * 0.001).realize()
        counts.append(live_nodes())

    assert counts[-1] <= counts[10]
    np.testing.assert_allclose(x.numpy(), [0.998**1000, -2 * 0.998**1000], rtol=1e-4)


def test_state_that_nobody_reads_is_written_with_whatever_runs() -> None:
    """B013: running statistics never pile up as an expression."""
    count = Tensor([0]).realize()
    for _ in range(3):
        count.assign(count + 1)
        (Tensor([1.0]) + 1).realize()
        assert not count._handle.pending
    assert [3] == count.tolist()


def test_a_reader_of_replaced_contents_is_realized_before_the_write() -> None:
    """B001, B002."""
    x = Tensor([1, 2]).realize()
    reader = x + 10
    x[0:1].assign(Tensor([9]))
    x.realize()

    assert ([11, 12], [9, 2]) == (reader.tolist(), x.tolist())


def test_a_failure_before_the_launches_changes_nothing_and_a_retry_fails_again(monkeypatch: Any) -> None:
    x, y = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()
    x.assign(x * 7 + y)
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "_compile", _fail)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no compiler today"):
                x.realize()
            assert [3, 4] == y.tolist()

    assert [10, 18] == x.tolist()


def test_pending_state_that_cannot_be_computed_does_not_stand_in_the_way_of_others(monkeypatch: Any) -> None:
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    x.assign(x.exp() * y)
    compile_kernel = compiled._compile

    def compile_no_exp(kernel: Any, *rest: Any) -> Any:
        return _fail() if any(node.op is ops.EXP for node in toposort(kernel)) else compile_kernel(kernel, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(compiled, "_compile", compile_no_exp)
        assert [4.5, 5.5] == (y + 1.5).tolist()
    np.testing.assert_allclose(x.numpy(), np.exp([1.0, 2.0]) * [3.0, 4.0], rtol=1e-6)


def _fail(*_: object) -> None:
    raise RuntimeError("no compiler today")


def test_a_fault_during_a_launch_loses_what_it_wrote_and_nothing_else(monkeypatch: Any) -> None:
    x, y = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()
    x.assign(x * 5 + y)
    with monkeypatch.context() as patch:
        patch.setattr(execute, "issue", _fail)
        with pytest.raises(RuntimeError):
            x.realize()

    with pytest.raises(DeviceError, match="lost"):
        x.tolist()
    assert [3, 4] == y.tolist()
    assert [9] == x.assign(9)[:1].tolist()


def test_equal_values_share_a_kernel_but_not_their_fate() -> None:
    x = Tensor([1, 2]).realize()
    one, two = x * 3, x * 3
    Tensor.realize(one, two)
    one.assign(0)

    assert ([0, 0], [3, 6]) == (one.tolist(), two.tolist())


def test_history_is_kept_for_what_descends_from_a_tensor_with_requires_grad() -> None:
    x = Tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    y.realize()
    y.sum().backward()

    assert [4.0, 6.0] == x.grad.tolist()


def test_a_gradient_that_needs_replaced_contents_says_so() -> None:
    x, w = Tensor([2.0, 3.0]).realize(), Tensor([4.0, 5.0], requires_grad=True)
    y = (x * w).realize()
    x.assign(Tensor([5.0, 6.0])).realize()
    with pytest.raises(GradientError, match="later write"):
        y.sum().gradient(w)[0].tolist()


def test_a_new_number_compiles_and_schedules_nothing() -> None:
    x = Tensor([1.0, 2.0]).realize()
    (x * 0.3).realize()
    GlobalCounters.reset()
    (x * 0.7).realize()

    assert (0, 0, 1) == (
        GlobalCounters.programs_compiled, GlobalCounters.schedules_built, GlobalCounters.kernel_count
    )  # fmt: skip


def test_a_deep_chain_computes_and_differentiates() -> None:
    x = Tensor([1.0])
    y = x
    for _ in range(10_000):
        y = y + x
    (slope,) = y.sum().gradient(x)

    assert ([10_001.0], [10_001.0]) == (y.tolist(), slope.tolist())


@pytest.mark.slow
def test_a_hundred_thousand_operations_compute_and_differentiate_in_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Context(VERIFY=0):
        x = Tensor([1.0])
        y = x
        for _ in range(100_000):
            y = y + x
        (slope,) = y.sum().gradient(x)
        assert ([100_001.0], [100_001.0]) == (y.tolist(), slope.tolist())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3_000_000  # kilobytes
