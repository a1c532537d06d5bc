"""What a run tells: the line of each kernel, and the counters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lazulite import Context, GlobalCounters, Tensor

LINE = re.compile(
    r"CPU +\d+ (?P<kernel>\w+) +[\d.]+us +(?P<rate>[\d.]+) GFLOP/s +[\d.]+ GB/s (?P<file>\S+):(?P<line>\d+)"
)


def test_each_kernel_prints_a_line_with_its_rates_and_the_line_of_the_program(capsys: Any) -> None:
    """A43."""
    x = Tensor([[1.0, 2.0]] * 64).realize()
    y = (x @ x.T).relu()
    with Context(DEBUG=2, CACHE=0):
        y.realize()
    (text,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("CPU")]
    found = LINE.fullmatch(text)

    assert found is not None, text
    assert Path(__file__).name == Path(found["file"]).name
    assert "y = (x @ x.T).relu()" == Path(__file__).read_text().splitlines()[int(found["line"]) - 1].strip()
    assert "64x64" in found["kernel"]


def test_counters_count_kernels_and_their_work() -> None:
    """A43: one product of n x n is 2 n^3 operations."""
    x = Tensor([[1.0] * 16] * 16).realize()
    GlobalCounters.reset()
    (x @ x).realize()

    assert (1, 2 * 16**3) == (GlobalCounters.kernel_count, GlobalCounters.global_ops)


def test_a_first_call_is_a_handful_of_kernels() -> None:
    """O19: what a call compiles decides how long the first one takes."""
    images, filters = Tensor.rand(4, 3, 32, 32).realize(), Tensor.rand(16, 3, 3, 3).realize()
    a, b = Tensor.rand(512, 512).realize(), Tensor.rand(512, 512).realize()
    for expected, value in ((2, images.conv2d(filters).relu().max_pool2d()), (1, a @ b)):
        GlobalCounters.reset()
        value.realize()
        assert expected == GlobalCounters.kernel_count


def test_one_half_is_read_as_a_number() -> None:
    """O10."""
    assert 0.5 == Tensor([0.5], dtype="float16").item()
    assert [0.5, -2.0] == Tensor([0.5, -2.0], dtype="float16").tolist()
