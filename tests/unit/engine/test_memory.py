"""The report of memory agrees with what the process takes, and training takes no more with time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from lazulite import Tensor, memory_report


def in_a_process(program: str) -> dict[str, int]:
    """What the last line of a program's output says."""
    common = """
        import json, os
        from lazulite import Tensor, memory_report, nn, GlobalCounters
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    """
    text = textwrap.dedent(common) + textwrap.dedent(program)
    env = {**os.environ, "LAZULITE_VERIFY": "0"}
    found = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, env=env)
    return dict(json.loads(found.stdout.splitlines()[-1]))


def test_weights_activations_and_cache_are_told_apart() -> None:
    before = memory_report()
    weight = Tensor.rand(500, 100).realize()
    weight.requires_grad = True
    data = Tensor([[1.0] * 100] * 100)
    result = (weight @ data).realize()
    with_all = memory_report()
    sizes = (500 * 100 + 100 * 100) * 4
    assert sizes == with_all.weights - before.weights
    assert 500 * 100 * 4 <= with_all.activations - before.activations

    del result
    assert memory_report().activations <= with_all.activations - 500 * 100 * 4
    assert weight.requires_grad and with_all.nodes > 0


def test_it_prints_a_table_whose_total_is_the_sum() -> None:
    report = memory_report()
    assert report.total == report.weights + report.activations + report.panels + report.cache + report.graph
    assert ["weights", "activations", "panels", "cache", "graph", "total"] == [
        line.split()[0] for line in str(report).splitlines()
    ]


def test_the_total_is_the_growth_of_resident_memory() -> None:
    """Within a tenth, on some 200 MB: what is loaded along with the first kernels is no memory of tensors."""
    found = in_a_process("""
        def run(size):
            weights = [Tensor.rand(size, 1024).realize() for _ in range(4)]
            x = Tensor.ones(64, size).contiguous() * 1.5
            results = [(x @ weight).realize() for weight in weights]
            dead = [(weight * 2).realize() for weight in weights]
            del dead
            return weights, results
        run(128)
        before, known = resident(), memory_report()
        kept = run(8192)
        after = memory_report()
        print(json.dumps({"grown": resident() - before, "told": after.total - known.total, "cache": after.cache}))
    """)
    assert found["told"] > 150 << 20
    assert abs(found["grown"] - found["told"]) <= found["told"] // 10


TRAINING = """
    Tensor.manual_seed(1)
    l1, bn, l2 = nn.Linear(8, 16), nn.BatchNorm(16), nn.Linear(16, 1)
    optimiser = nn.optim.Adam(nn.state.get_parameters([l1, bn, l2]), lr=0.001)
    seen = []
    with Tensor.train():
        for step in range({steps} + 1):
            x = Tensor.rand(32, 8)
            loss = (l2(bn(l1(x)).relu()) - x.sum(1, keepdim=True)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step in ({steps} // 3, {steps}):
                seen.append((resident(), GlobalCounters.live_nodes, memory_report().total))
    first, last = seen
    print(json.dumps(dict(resident=last[0] - first[0], nodes=last[1] - first[1], told=last[2] - first[2])))
"""


@pytest.mark.slow
def test_training_without_realize_keeps_memory_and_graph_flat() -> None:
    """B013: running statistics are written along with each step.  MEMORY_STEPS=n trains for n steps."""
    grown = in_a_process(TRAINING.replace("{steps}", os.environ.get("MEMORY_STEPS", "1200")))

    assert grown["nodes"] <= 0
    assert grown["told"] <= 1 << 16
    assert grown["resident"] <= 4 << 20


def test_replays_take_the_memory_of_the_call_that_was_captured() -> None:
    """No intermediates of calls that ran stay behind in the free lists."""
    found = in_a_process("""
        from lazulite import jit
        weights = [Tensor.rand(512, 512).realize() for _ in range(4)]
        def step(x):
            y = x
            for weight in weights:
                y = (y @ weight).relu()
            return [weight - slope for weight, slope in zip(weights, y.mean().gradient(*weights))]
        step, x = jit(step), Tensor.rand(2048, 512).realize()
        for _ in range(4):
            results = step(x)
        report = memory_report()
        print(json.dumps(dict(used=report.weights + report.activations, cache=report.cache)))
    """)
    assert found["used"] > 16 << 20
    assert found["cache"] <= found["used"] // 5


def test_the_parts_of_a_sharded_weight_count() -> None:
    before, weight = memory_report().weights, Tensor([1.0] * 1000).shard_(("CPU:0", "CPU:1"), 0)
    assert before + 4000 == memory_report().weights
    assert ("CPU", "CPU:1") == weight.device
