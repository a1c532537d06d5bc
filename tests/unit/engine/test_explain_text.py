"""How explanations read."""

from __future__ import annotations

import pytest

from lazulite import Tensor
from lazulite.engine.explain_text import count_text, expression, meaning
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel import steps


@pytest.mark.parametrize("kind", steps.Step.__args__, ids=lambda kind: kind.__name__)
def test_every_kind_of_step_has_a_meaning(kind: type) -> None:
    made = {
        "Split": steps.Split((0,), 4), "Partition": steps.Partition((0,), 4), "Reorder": steps.Reorder(((0,), (1,))),
        "Stage": steps.Stage(1, ((0,), (1,))), "Keep": steps.Keep((0,), (1,)),
        "MatrixUnit": steps.MatrixUnit(((0,),), ((1,),), ((2,),)), "Block": steps.Block((0,), 4),
        "Strip": steps.Strip((0,), 4),
        "Within": steps.Within(0, steps.Parallel((0,))),
        "Prefetch": steps.Prefetch(1, (1,), (0,)), "Stream": steps.Stream(0),
    }  # fmt: skip
    assert meaning(made.get(kind.__name__) or kind((0,)))


def test_a_newcomer_finds_work_memory_reasons_and_steps() -> None:
    x = Tensor.rand(64, 64).realize()
    text = str((x @ x).explain())
    assert text.startswith("1 kernel runs: 524 thousand operations, ")
    for label in ("work", "reads", "writes", "stored", "fused", "steps"):
        assert f"\n  {label} " in text
    assert "Stages of each kernel: schedule.kernel -> " in text and "x @ x" in text


def test_long_parts_of_an_expression_are_left_out() -> None:
    node = UOp(ops.PARAM, dtypes.float32, (), (0, (4,), ""))
    for _ in range(1000):
        node = node + node
    assert len(expression(node)) < 200


def test_counts_are_in_words() -> None:
    assert ["999", "1 thousand", "1.5 billion"] == [count_text(n) for n in (999, 1000, 1_500_000_000)]
