"""Plans that are ready to run: worked out once, bound anew for each run."""

from __future__ import annotations

from typing import Any

import pytest

from lazulite import Context, Device, OutOfMemoryError, Tensor
from lazulite.engine import compile as compiled
from lazulite.engine.loaded import Loaded, bind, issue
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.device import Program
from lazulite.schedule.plan import Fresh, Launch, Plan, Temporary


class Noting(Program):
    """Notes what it is called with."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[list[Any]] = []

    def __call__(self, arguments: Any) -> None:
        self.calls.append(list(arguments))


def plan() -> Plan:
    """A kernel from the only input to the arena, and one from there to the result; the second has a scalar."""
    first = Launch("first", (0, 2), (-1, -1), 0, "", (0,), (2,), 3, 40)
    second = Launch("second", (1, -1, 2), (-1, 0, -1), 1, "", (2,), (1,), 4, 50)
    fresh, temporaries = Fresh("float32", (2, 3), ""), Temporary(64, 24, "")
    return Plan(1, (1,), (fresh,), (temporaries,), ("float32",), (first, second))


def test_arguments_are_the_memory_and_the_bits_that_the_slots_name() -> None:
    programs: dict[str, Noting] = {}
    loaded = Loaded(plan(), "CPU", lambda kernel, device: programs.setdefault(kernel, Noting(kernel)))
    x = Buffer(Device["CPU"], 24).allocate()
    run = bind(loaded, [x], [], [1.0], [None])
    for command in loaded.commands:
        issue(run, command)

    given, result, between = run.words[:3]
    assert x.handle is given
    assert [given, between] == programs["first"].calls[0]
    assert [result, 0x3F800000, between] == programs["second"].calls[0]
    assert 24 == result.size == between.size  # type: ignore[union-attr]


def test_each_run_has_memory_of_its_own_for_results() -> None:
    loaded = Loaded(plan(), "CPU", lambda kernel, device: Noting(kernel))
    x = Buffer(Device["CPU"], 24).allocate()
    one, other = bind(loaded, [x], [], [1.0], [None]), bind(loaded, [x], [], [2.0], [None])

    assert one.words[1] is not other.words[1]
    assert one.words[2] is not other.words[2]


def test_a_program_is_asked_for_once_and_the_plan_stays_ready(monkeypatch: Any) -> None:
    x = Tensor([1.0, 2.0]).realize()
    (x * 3.5 - 2.5).realize()
    monkeypatch.setattr(compiled, "_programs_for", None)

    assert [2.0, 5.5] == (x * 3.5 - 1.5).tolist()


def test_a_result_without_room_is_an_error_before_anything_runs(monkeypatch: Any) -> None:
    x, counted = Tensor([1, 2, 3]).realize(), Tensor([5, 6, 7]).realize()
    counted.assign(counted + 1)
    cpu = Device["CPU"].allocator
    cpu.relieve()
    with monkeypatch.context() as patch:
        patch.setattr(cpu, "limit", cpu.in_use)
        with pytest.raises(OutOfMemoryError, match="test_loaded"):
            Tensor.realize(x + 4, counted)

    assert [6, 7, 8] == counted.tolist()


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_intermediates_share_an_arena_on_each_device(device: str) -> None:
    x = Tensor([1, 2, 3], device=device)
    with Context(FUSE=0):
        assert [4, 16, 36] == ((x + x) * (x + x)).tolist()
