"""CHECK stops at the first fault, names it, and lets everything right pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lazulite import CheckError, Context, IndexRangeError, Tensor, Variable, jit, nn, profile
from lazulite.engine import checks, inspection
from lazulite.engine.loaded import issue


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    with Context(CACHE=0):
        yield


# --- nan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_the_first_operation_that_makes_a_nan_is_named_with_its_line(device: str) -> None:
    x = Tensor([4.0, 1.0, 0.25], device=device)
    with (
        Context(CHECK="nan"),
        pytest.raises(CheckError, match="sqrt made nan of finite values, at element 2") as caught,
    ):
        y = x - 1
        z = y.sqrt()  # here
        (z * 2).sum().realize()

    assert "z = y.sqrt()  # here" in str(caught.value)


def test_an_overflow_in_a_narrow_type_is_one_too() -> None:
    with Context(CHECK="nan"), pytest.raises(CheckError, match="mul made inf"):
        (Tensor([300.0], dtype="float16") * 300).realize()


def test_what_was_not_finite_before_is_nobodys_fault() -> None:
    inf = float("inf")
    with Context(CHECK="nan"):
        x = Tensor([1.0, inf])
        assert [2.0, inf] == (x * 2).tolist()
        assert [1.0, -inf] == Tensor([1.0, 2.0]).masked_fill(Tensor([False, True]), -inf).tolist()


def test_a_value_that_a_check_stopped_is_lost_and_the_rest_is_not() -> None:
    x, y = Tensor([0.0]).realize(), Tensor([1.0]).realize()
    with Context(CHECK="nan"), pytest.raises(CheckError):
        x.assign(y / x).realize()

    assert [1.0] == y.tolist()


# --- reference -----------------------------------------------------------------------------------


def test_right_programs_pass_every_check() -> None:
    with Context(CHECK="nan,reference,bounds"):
        x = Tensor.rand(5, 7)
        x.requires_grad = True
        layer = nn.Linear(7, 3)
        loss = layer(x).relu().softmax().log().mean() + x[:, ::2].flip(0).sum() + x[Tensor([0, 4])].sum()
        loss.backward()
        Tensor.realize(loss, x.grad)
        half = (Tensor.rand(4, 4).cast("bfloat16") @ Tensor.rand(4, 4).cast("bfloat16")).realize()
        (half.cast("int32") // 3).realize()


def test_a_kernel_that_differs_is_named(monkeypatch: Any) -> None:
    def wrong(run: Any, command: Any) -> None:
        issue(run, command)
        memory = run.buffers[command.launch.writes[0]]
        memory.copy_in(memoryview(bytes(memory.nbytes)))

    monkeypatch.setattr(inspection, "issue", wrong)
    with (
        Context(CHECK="reference"),
        pytest.raises(CheckError, match=r"mul_2 stores 0.0 at element 0, the interpreter 3.0"),
    ):
        (Tensor([1.0, 2.0]) * 3).realize()


def test_a_kernel_that_is_too_large_is_left_out_with_a_message(capfd: Any) -> None:
    with Context(CHECK="reference"):
        (Tensor.rand(600, 600) * 3).realize()

    assert "too large to be interpreted" in capfd.readouterr().err


# --- bounds --------------------------------------------------------------------------------------


def test_positions_outside_raise_with_the_check_and_read_zero_without() -> None:
    """A19"""
    x, far = Tensor([1.0, 2.0]), Tensor([0, 7])
    assert [1.0, 0.0] == x[far].tolist()
    for use in (lambda: x[far], lambda: x.gather(0, far), lambda: x.take(Tensor([-3])), lambda: x.index_select(0, far)):
        with Context(CHECK="bounds"), pytest.raises(IndexRangeError, match="is outside an axis of size 2"):
            use()
    with Context(CHECK="bounds"):
        assert [2.0, 1.0] == x[Tensor([-1, 0])].tolist()


def test_a_class_that_does_not_exist_raises_with_the_check() -> None:
    """B085"""
    scores = Tensor([[1.0, 2.0]])
    with Context(CHECK="bounds"):
        for loss in (scores.cross_entropy, scores.sparse_categorical_crossentropy, scores.nll_loss):
            with pytest.raises(IndexRangeError, match="position 5 is outside an axis of size 2"):
                loss(Tensor([5]))
        Tensor([[1.0, 2.0], [3.0, 4.0]]).cross_entropy(Tensor([-100, 1])).realize()


def test_a_kernel_that_leaves_its_memory_is_refused() -> None:
    """A19"""

    def beyond(out: Any, x: Any) -> Any:
        from lazulite import UOp

        i = UOp.range(2, 0)
        return out[i].store(x[i + 1])

    x = Tensor([1, 2])
    out = Tensor([0, 0]).custom_kernel(x, fxn=beyond)[0]
    with Context(CHECK="bounds"), pytest.raises(IndexRangeError, match="runs from 1 to 2, and there are 2 elements"):
        out.realize()


def test_nothing_is_kept_while_no_check_is_on() -> None:
    known = dict(checks.CHECKED)
    (Tensor([1.0, 2.0]) * 17 + 4).realize()

    assert known == checks.CHECKED


def test_a_captured_function_is_checked_and_profiled_kernel_by_kernel(tmp_path: Any) -> None:
    @jit
    def root(x: Tensor) -> Tensor:
        return (x - 1).sqrt()

    x = Tensor([4.0, 9.0])
    for _ in range(4):
        root(x).realize()
    with profile(tmp_path / "t.json") as seen:
        for _ in range(4):
            root(x).realize()
    assert 4 <= len(seen.events)
    with Context(CHECK="nan"), pytest.raises(CheckError, match="sqrt made nan"):
        for _ in range(4):
            root(Tensor([0.0, 1.0])).realize()


def test_what_lies_behind_a_size_that_varies_is_not_held_against_the_launch() -> None:
    n = Variable("n", 1, 300)
    ones, zeros = (Tensor([value] * 300).realize() for value in (1.0, 0.0))
    with Context(CHECK="nan"):
        for _ in range(2):
            Tensor([float("nan")] * 300).realize()  # its memory is given to the next result
            assert [2.0] * 5 == (ones[: n.bind(5)] * 2).realize().tolist()
        with pytest.raises(CheckError, match="at element 0"):
            (ones[: n.bind(4)] / zeros[: n.bind(4)]).realize()
