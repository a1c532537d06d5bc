"""Every op of the `TENSOR` language can be exported, or is known to be one that ONNX cannot say."""

from __future__ import annotations

from lazulite.formats.onnx import export_elements, export_nodes
from lazulite.ir import ops


def test_no_elementwise_op_is_forgotten() -> None:
    written = {*export_elements.RULES, *export_elements.NUMBERS, *export_nodes.RULES, *export_nodes.INEXPRESSIBLE}

    assert set() == ops.ELEMENTWISE - ops.ONLY_LOWERED - written


def test_no_op_has_two_rules() -> None:
    assert set() == {*export_elements.RULES} & {*export_elements.NUMBERS}
    assert set() == {*export_nodes.RULES} & {*export_elements.RULES, *export_elements.NUMBERS}
