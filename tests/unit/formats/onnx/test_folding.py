"""What is folded equals what is computed, and never grows beyond its budget."""

import numpy
import pytest

from lazulite import Tensor
from lazulite.formats.onnx import OnnxRunner
from lazulite.formats.onnx.folding import fold
from lazulite.formats.onnx.values import FOLDED
from support.onnx_models import one_node

INTS = numpy.array([[3, -4, 5], [6, 7, -8]])
CASES = [
    ("Add", [INTS, numpy.array([1, 2, 3])], {}), ("Sub", [INTS, INTS[:1]], {}), ("Mul", [INTS, INTS], {}),
    ("Div", [INTS, numpy.array([2, -3, 4])], {}), ("Mod", [INTS, numpy.array([2, -3, 4])], {}),
    ("Mod", [INTS, numpy.array([2, -3, 4])], {"fmod": 1}), ("Neg", [INTS], {}), ("Abs", [INTS], {}),
    ("Equal", [INTS, INTS[:1]], {}), ("Greater", [INTS, INTS[:1]], {}), ("LessOrEqual", [INTS, INTS[1:]], {}),
    ("Not", [INTS > 0], {}), ("And", [INTS > 0, INTS > 4], {}), ("Where", [INTS > 0, INTS, -INTS], {}),
    ("Cast", [INTS], {"to": 1}), ("Cast", [INTS.astype("float32")], {"to": 11}), ("Cast", [INTS], {"to": 9}),
    ("Concat", [INTS, INTS], {"axis": 1}), ("Gather", [INTS, numpy.array([2, -1])], {"axis": 1}),
    ("ReduceProd", [INTS, numpy.array([1])], {"keepdims": 0}), ("ReduceSum", [INTS, numpy.array([0])], {}),
    ("ReduceMax", [INTS, numpy.array([-1])], {}), ("ReduceMin", [INTS], {}),
    ("Reshape", [INTS, numpy.array([0, -1])], {}), ("Squeeze", [INTS[:1], numpy.array([0])], {}),
    ("Unsqueeze", [INTS, numpy.array([0, -1])], {}), ("Tile", [INTS, numpy.array([2, 1])], {}),
    ("Transpose", [INTS], {"perm": [1, 0]}), ("Expand", [INTS[:1], numpy.array([2, 1])], {}),
    ("Slice", [INTS, numpy.array([2]), numpy.array([-9]), numpy.array([1]), numpy.array([-2])], {}),
    ("Range", [numpy.array(2), numpy.array(11), numpy.array(3)], {}), ("ConstantOfShape", [numpy.array([2, 3])], {}),
    ("Floor", [INTS / numpy.float32(2)], {}), ("Sqrt", [numpy.abs(INTS).astype("float32")], {}),
]  # fmt: skip


@pytest.mark.parametrize("name, inputs, attributes", CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_a_folded_value_is_the_computed_one(name, inputs, attributes):
    folded = fold("", name, inputs, attributes)[0]
    names = [f"x{n}" for n in range(len(inputs))]
    runner = OnnxRunner(one_node(name, " ".join(names), **attributes))
    computed = runner({n: Tensor(x) if x.shape else x for n, x in zip(names, inputs, strict=True)})["y"].numpy()

    assert computed.dtype == folded.dtype and computed.shape == folded.shape
    numpy.testing.assert_array_equal(computed, folded)


LARGE = [
    ("Add", [numpy.zeros((FOLDED, 1)), numpy.zeros((1, FOLDED))], {}), ("Tile", [INTS, numpy.array([1 << 40, 1])], {}),
    ("Expand", [INTS[:1], numpy.array([1 << 40, 3])], {}), ("ConstantOfShape", [numpy.array([1 << 20, 1 << 20])], {}),
    ("Range", [numpy.array(0), numpy.array(1 << 40), numpy.array(1)], {}),
    ("Gather", [INTS, numpy.zeros(FOLDED, "int64")], {}),
    ("Concat", [numpy.zeros(FOLDED), numpy.zeros(1)], {"axis": 0}),
]  # fmt: skip


@pytest.mark.parametrize("name, inputs, attributes", LARGE, ids=[case[0] for case in LARGE])
def test_what_would_be_large_is_left_to_tensors(name, inputs, attributes):
    assert fold("", name, inputs, attributes) is None


def test_what_is_wrong_is_left_to_the_operator():
    assert fold("", "Gather", [INTS, numpy.array([9])], {}) is None
    assert fold("", "Reshape", [INTS, numpy.array([5, 5])], {}) is None
    assert fold("", "Range", [numpy.array(0), numpy.array(3), numpy.array(0)], {}) is None
    assert fold("my.own", "Add", [INTS, INTS], {}) is None
    assert fold("", "Add", [Tensor([1]), INTS], {}) is None
