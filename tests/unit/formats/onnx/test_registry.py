"""Operators by version: signatures say what is converted and what is an attribute."""

import numpy
import pytest

from lazulite import FormatError, Tensor
from lazulite.formats.onnx import families
from lazulite.formats.onnx.registry import OPERATORS, Call, find, onnx_op


@pytest.fixture
def own():
    """Operators of a domain that is gone afterwards."""
    yield "test.own"
    for key in [key for key in OPERATORS if key[0] == "test.own"]:
        del OPERATORS[key]


def call():
    return Call(1, 21, "CPU", Tensor, lambda program, given: [], {})


def test_the_latest_version_that_a_model_may_use_counts(own):
    for since in (13, 1, 7):
        onnx_op("Op", since, own)(lambda *, since=since: since)

    assert [None, 1, 1, 7, 13, 13] == [
        found and found.since for found in (find(own, "Op", opset) for opset in (0, 1, 6, 12, 13, 99))
    ]
    assert find(own, "Other", 13) is None


def test_inputs_are_converted_as_their_annotations_say(own):
    @onnx_op("Op", 1, own)
    def op(a: "Tensor", b: "Host", c: "Ints | None" = None, *rest: "Value", scale: float = 1.0):  # noqa: F821
        return a, b, c, rest, scale

    array = numpy.array([1, 2])
    a, b, c, rest, scale = find(own, "Op", 1)([array, Tensor(array), Tensor(array), array], {"scale": 2.0}, call())

    assert isinstance(a, Tensor) and isinstance(b, numpy.ndarray)
    assert ((1, 2), 2.0) == (c, scale) and rest[0] is array
    assert ["beta"] == find(own, "Op", 1).unknown_attributes(["scale", "c", "beta"])


def test_an_attribute_that_became_an_input_is_one_parameter(own):
    @onnx_op("Op", 1, own)
    def op(a: "Value", axes: "Ints | None" = None):  # noqa: F821
        return axes

    assert (2, 3) == find(own, "Op", 1)([Tensor([1])], {"axes": [2, 3]}, call())


def test_missing_and_further_inputs_are_refused(own):
    @onnx_op("Op", 1, own)
    def op(a: "Tensor", b: "Tensor | None" = None):
        return a

    for values in ([], [None, Tensor([1])]):
        with pytest.raises(FormatError, match="needs an input a"):
            find(own, "Op", 1)(values, {}, call())
    with pytest.raises(FormatError, match="takes 2 inputs, got 3"):
        find(own, "Op", 1)([Tensor([1])] * 3, {}, call())


def test_every_operator_says_what_its_inputs_are():
    families.load()
    kinds = {kind for versions in OPERATORS.values() for each in versions for _, kind, _ in each.inputs}
    kinds |= {each.further for versions in OPERATORS.values() for each in versions} - {None}

    assert {"Tensor", "Host", "Ints", "Value"} == kinds


def test_every_attribute_of_every_version_of_the_specification_is_known():
    defs = pytest.importorskip("onnx").defs
    families.load()
    unknown = []
    for schema in defs.get_all_schemas_with_history():
        operator = find(schema.domain, schema.name, schema.since_version)
        if operator is not None:
            names = operator.unknown_attributes(list(schema.attributes))
            unknown += [(schema.name, schema.since_version, name) for name in names]
    assert [] == unknown
