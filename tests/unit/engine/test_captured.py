"""Replays: where their memory comes from, and what is left when one fails."""

import gc

import pytest

from lazulite import DeviceError, GlobalCounters, Tensor, jit
from lazulite.engine import captured as module
from lazulite.runtime.registry import Device


def address(tensor):
    tensor.realize()
    return tensor._handle.storage.buffer.handle.address


def ready(function, *arguments):
    """The function, captured."""
    for _ in range(2):
        function(*arguments)
    return function


def test_memory_of_a_result_is_given_again_exactly_when_nobody_holds_it():
    """A24"""
    x = Tensor([1.0, 2.0]).realize()
    more = ready(jit(lambda x: x + 1), x)
    first = address(more(x))
    assert first == address(more(x))
    held = more(x)
    assert address(held) not in (address(more(x)), address(more(x)))
    lazy = more(x) * 2
    more(x)
    more(x + 1)
    assert [4.0, 6.0] == lazy.tolist()


@pytest.mark.parametrize("size", [10, module._LARGEST_KEPT])
def test_replays_use_no_more_memory_however_many_there_are(size):
    x = Tensor.zeros(size).realize() + 0
    more = ready(jit(lambda x: x + 1), x.realize())
    more(x)
    gc.collect()
    before = GlobalCounters.mem_used
    for _ in range(50):
        more(x)
    assert before == GlobalCounters.mem_used


def test_intermediate_memory_stays_with_the_function_and_goes_with_it():
    x = Tensor([1.0, 2.0] * 500).realize()
    gc.collect()
    before = GlobalCounters.mem_used
    root = ready(jit(lambda x: (x * 3 + (x * 2).sum()).exp().sum() + 1), x)
    assert GlobalCounters.mem_used >= before
    del root
    gc.collect()
    assert before == GlobalCounters.mem_used


def test_a_fault_during_a_replay_loses_what_it_wrote_and_nothing_else(monkeypatch):
    state, x = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()

    @jit
    def step(x):
        state.assign(state + x)

    ready(step, x)

    def fail(*arguments):
        raise OSError("no power")

    (captured,) = [known.captured for known in step._captured.values()]
    monkeypatch.setattr(captured, "_submit", fail)
    with pytest.raises(OSError, match="no power"):
        step(x)
    with pytest.raises(DeviceError, match="lost: OSError while a captured function wrote it"):
        state.tolist()
    assert [3, 4] == x.tolist()
    with pytest.raises(DeviceError, match="contents of a tensor are lost"):
        step(x)


def test_counters_count_replayed_work():
    """A43"""
    x = Tensor([1.0] * 8).realize()
    double = ready(jit(lambda x: x * 2.5), x)
    GlobalCounters.reset()
    (x * 2.5).realize()
    eager = GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem
    GlobalCounters.reset()
    double(x)
    assert eager == (GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem)


def test_the_line_of_a_result_is_known():
    x = Tensor([1.0]).realize()
    more = ready(jit(lambda x: x + 1), x)
    assert "test_captured.py" in more(x).origin.place


def test_copies_between_devices_are_replayed():
    """A24"""
    here = Tensor([1.0, 2.0])
    there = ready(jit(lambda x: (x.to("CPU:1") + 1).to("CPU") * 2), here)
    assert [4.0, 6.0] == there(here).tolist()
    assert Device["CPU:1"].name == "CPU:1"
