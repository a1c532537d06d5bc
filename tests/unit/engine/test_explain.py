"""An explanation tells what a realize would do, truly, and changes nothing."""

from __future__ import annotations

import pytest

from lazulite import ArgumentError, Context, GlobalCounters, Tensor
from lazulite.engine.explain import STAGES, Recorder
from lazulite.ir.parse import parse
from lazulite.kernel.steps import parse as parse_steps


def network() -> Tensor:
    x, w, b = Tensor.rand(32, 64).realize(), Tensor.rand(64, 16).realize(), Tensor.rand(16).realize()
    hidden = (x @ w + b).relu()
    return hidden.exp().sum(1)


def test_nothing_runs_and_the_value_is_what_it_was() -> None:
    value = network()
    GlobalCounters.reset()
    value.explain()
    assert 0 == GlobalCounters.kernel_count and 0 == GlobalCounters.programs_compiled
    with Context(FUSE=0):
        expected = value.clone().tolist()
    assert value.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("settings", [{}, {"FUSE": 0}, {"OPT": 0}, {"PLAN_MEMORY": 0}])
def test_the_kernels_are_those_that_then_run_with_their_work(settings: dict[str, int]) -> None:
    with Context(**settings):
        value = network()
        kernels = value.explain().kernels
        GlobalCounters.reset()
        value.realize()
    assert len(kernels) == GlobalCounters.kernel_count
    assert sum(kernel.ops for kernel in kernels) == GlobalCounters.global_ops
    assert sum(kernel.bytes for kernel in kernels) == GlobalCounters.global_mem


def test_each_kernel_names_the_line_that_wrote_it() -> None:
    here = __file__.rpartition("/")[2]
    for kernel in network().explain().kernels:
        assert kernel.origin is not None and kernel.line.rpartition(":")[0].endswith(here)
        assert kernel.origin.text.startswith(("hidden = ", "return hidden"))


def test_every_decision_has_its_reason() -> None:
    (kernel,) = (Tensor.rand(8, 8).realize() * 2 + 1).exp().explain().kernels
    found = {(reason.kind, reason.op) for reason in kernel.reasons}
    assert {("stored", "exp"), ("fused", "add"), ("fused", "mul")} == found
    assert all(reason.reason and reason.line for reason in kernel.reasons)


def test_the_steps_and_the_text_parse_back() -> None:
    kernel = network().explain().kernels[0]
    assert kernel.schedule == parse_steps("\n".join(kernel.steps)) and kernel.steps
    parse(kernel.text)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_a_text(stage: str) -> None:
    explanation = network().explain()
    text = explanation.stage(stage)
    assert all(f"kernel {n}: {k.name}, after {stage}" in text for n, k in enumerate(explanation.kernels))
    assert explanation.kernels[0].stage(stage) in text


def test_an_unknown_stage_is_refused_with_the_nearest_name() -> None:
    for explanation in (network().explain(), Tensor([1]).explain()):
        with pytest.raises(ArgumentError, match=r"no stage lower\.loop\b") as caught:
            explanation.stage("lower.loop")
        assert "Try: lower.loops" in str(caught.value)


def test_memory_is_told_apart() -> None:
    state = Tensor.rand(4, 4).realize()
    row = Tensor.rand(4).realize()
    state += row.exp().sum() * row
    text = str(state.explain())
    assert "writes      memory of a tensor, (4, 4) float32" in text
    assert "arena at byte 0" in text and "an intermediate of kernels 0, 1" in text
    assert "new memory for a result" in str((row * 2).explain())


def test_what_needs_no_kernel_is_said() -> None:
    assert "Nothing has to run" in str(Tensor([1.0]).explain())
    assert "is 6.0 everywhere" in str((Tensor.ones(3) * 6).explain())


def test_an_interpreted_kernel_has_no_steps_and_no_stages() -> None:
    explanation = (Tensor([1.0, 2.0], device="PYTHON") * 3).explain()
    (kernel,) = explanation.kernels
    assert () == kernel.steps and "PYTHON runs the kernel as it is written" in str(explanation)
    assert kernel.text == kernel.stage("schedule.kernel")
    with pytest.raises(ArgumentError, match="PYTHON interprets"):
        kernel.stage("lower.loops")


def test_a_copy_between_devices_is_a_launch_without_text() -> None:
    kernels = (Tensor([1.0, 2.0], device="PYTHON") * 3).to("CPU").explain().kernels
    assert "" == kernels[-1].text and "copy" == kernels[-1].name
    assert "copied from one device to the other" in str(kernels[-1])


def test_explaining_agrees_with_running_for_writes_into_constants() -> None:
    state = Tensor.zeros(8)
    state[2:4] = Tensor.rand(2).realize()
    kernels = state.explain().kernels
    GlobalCounters.reset()
    state.realize()
    assert len(kernels) == GlobalCounters.kernel_count
    assert sum(kernel.bytes for kernel in kernels) == GlobalCounters.global_mem


def test_a_recorder_counts_equal_realizes_together() -> None:
    x = Tensor.rand(16).realize()
    with Recorder() as recorder:
        for factor in (2.0, 3.0, 4.0):
            (x * factor).realize()
        x.sum().realize()
    (x * 5.0).realize()
    assert [3, 1] == recorder.counts
    assert ["mul_16", "sum_1_sum16"] == [e.kernels[0].name for e in recorder.explanations]


def test_the_rules_that_fired_while_scheduling_are_recorded() -> None:
    x = Tensor([1, 2, 3]).realize()
    rules = (x * 1 + 0).cast("float32").explain().rules
    assert rules.visits > 0 and rules.fire_counts.total() > 0
    assert rules.fired() and all(event.before is not event.after for event in rules.fired())
