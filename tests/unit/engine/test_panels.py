"""Panels of a tensor stay from run to run, are never those of older contents, and go with it."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from lazulite import Context, GlobalCounters, Tensor, jit, load_captured, memory_report
from lazulite.engine.panels import kept_bytes

pytestmark = pytest.mark.skipif(Tensor([0]).device != "CPU", reason="never: only the processor has panels")


@pytest.fixture(autouse=True)
def alone() -> None:
    gc.collect()


def image(seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).random((1, 96, 7, 7), np.float32)).realize()


def weights() -> Tensor:
    return Tensor(np.random.default_rng(1).random((192, 96, 3, 3), np.float32)).realize()


def expected(x: Tensor, w: Tensor) -> np.ndarray:
    """The convolution without panels."""
    with Context(PANELS=0):
        return x.conv2d(w, padding=1).numpy()


def test_they_are_filled_once_and_go_with_the_tensor() -> None:
    before, x, w = kept_bytes(), image(), weights()
    first = x.conv2d(w, padding=1).numpy()
    kept = kept_bytes() - before
    GlobalCounters.reset()
    again = x.conv2d(w, padding=1).numpy()

    assert kept == memory_report().panels - before >= w.nbytes()
    assert GlobalCounters.kernel_count == 1
    assert first.tobytes() == again.tobytes() == expected(x, w).tobytes()

    del w
    assert kept_bytes() == before


def test_a_write_drops_them_and_the_next_run_sees_the_new_contents() -> None:
    before, x, w = kept_bytes(), image(), weights()
    x.conv2d(w, padding=1).realize()
    w.assign(w * 2).realize()

    assert kept_bytes() == before
    assert x.conv2d(w, padding=1).numpy().tobytes() == expected(x, w).tobytes()


def test_a_captured_call_follows_writes_and_other_tensors() -> None:
    call = jit(lambda x, w: x.conv2d(w, padding=1))
    x, w, other = image(), weights(), (weights() + 1).realize()
    for turn in range(6):
        if turn == 4:
            w.assign(w - 0.5).realize()
        for each in (w, other):
            assert call(x, each).numpy().tobytes() == expected(x, each).tobytes()


def test_a_captured_call_that_writes_the_operand_in_another_step_fills_them_in_each_replay() -> None:
    @jit
    def call(x: Tensor, w: Tensor) -> Tensor:
        result = x.conv2d(w, padding=1).realize()
        w.assign(w + 0.25).realize()
        return result

    x, w = image(), weights()
    for _ in range(5):
        wanted = expected(x, w)
        assert call(x, w).numpy().tobytes() == wanted.tobytes()


def test_a_captured_call_that_makes_the_operand_fills_them_in_each_replay() -> None:
    @jit
    def call(x: Tensor, w: Tensor) -> Tensor:
        doubled = (w * 2).realize()
        return x.conv2d(doubled, padding=1).realize()

    x = image()
    for turn in range(4):
        w = (weights() + turn).realize()
        assert call(x, w).numpy().tobytes() == expected(x, (w * 2).realize()).tobytes()


def test_training_keeps_none() -> None:
    before, x, w = kept_bytes(), image(), weights()
    w.requires_grad = True
    x.conv2d(w, padding=1).sum().backward()
    assert w.grad is not None
    w.grad.realize()

    assert kept_bytes() == before


def test_memory_that_somebody_else_may_write_is_read_anew() -> None:
    before, x, w = kept_bytes(), image(), weights()
    call = jit(lambda x, w: x.conv2d(w, padding=1))
    for _ in range(3):
        call(x, w)
    assert kept_bytes() > before
    shared = np.from_dlpack(w)
    for _ in range(2):
        shared *= 2
        assert call(x, w).numpy().tobytes() == expected(x, w).tobytes()
        assert x.conv2d(w, padding=1).numpy().tobytes() == expected(x, w).tobytes()


def test_there_are_never_more_than_the_setting_allows() -> None:
    before, x = kept_bytes(), image()
    many = [weights() for _ in range(8)]
    with Context(PANELS=1):
        for w in many:
            assert x.conv2d(w, padding=1).numpy().tobytes() == expected(x, w).tobytes()
            assert kept_bytes() <= max(before, 1 << 20)


def test_a_saved_call_fills_and_keeps_them_as_well(tmp_path: Path) -> None:
    call = jit(lambda x, w: x.conv2d(w, padding=1))
    x, w = image(), weights()
    for _ in range(3):
        call(x, w)
    call.save(tmp_path / "call.bin")
    opened = load_captured(tmp_path / "call.bin")
    del w
    gc.collect()
    before, w = kept_bytes(), (weights() + 1).realize()
    results = [opened(x, w).numpy().tobytes() for _ in range(2)]

    assert results == [expected(x, w).tobytes()] * 2
    assert kept_bytes() > before
