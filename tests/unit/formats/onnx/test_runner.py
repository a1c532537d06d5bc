"""Models as functions: what a call takes and gives, what is told at load, and cases that went wrong elsewhere."""

from contextlib import suppress

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite import (
    ArgumentError,
    DTypeError,
    FormatError,
    GlobalCounters,
    LazuliteError,
    OutOfMemoryError,
    ShapeError,
    Tensor,
    Variable,
    jit,
    load,
)
from lazulite.formats.onnx import OnnxRunner, program
from support.onnx_models import attribute, graph, message, model, node, one_node, tensor, value


def run(op, *inputs, outputs="y", opset=21, **attributes):
    """The results of one operator."""
    names = [f"x{n}" for n, each in enumerate(inputs)]
    written = one_node(op, " ".join(names), outputs, opset, **attributes)
    results = OnnxRunner(written)(dict(zip(names, inputs, strict=True)))
    return [results[name].numpy() for name in outputs.split()]


def f32(*values):
    return numpy.array(values, "float32")


# --- calls -----------------------------------------------------------------------------------------


def declared():
    body = graph(
        [node("Add", "a b", "sum"), node("MatMul", "sum w", "y")],
        [value("a", "float32", ["n", 2]), value("b", "float32", ["n", 2])], [value("y", "float32", ["n", 1])],
        [tensor(f32([1], [10]), "w")],
    )  # fmt: skip
    return model(body)


def test_inputs_and_outputs_have_names_and_types():
    runner = OnnxRunner(declared())

    assert {"a": "float32[n, 2]", "b": "float32[n, 2]"} == runner.inputs
    assert {"y": "float32[n, 1]"} == runner.outputs and {"": 21} == runner.opsets


def test_tensors_arrays_and_numbers_go_in_and_lazy_tensors_come_out():
    runner = OnnxRunner(declared())
    kernels = GlobalCounters.kernel_count
    result = runner({"a": Tensor([[1.0, 2.0]]), "b": f32([3, 4])})

    assert kernels == GlobalCounters.kernel_count
    assert ["y"] == list(result) and [[64.0]] == result["y"].tolist()


def test_a_model_is_a_path_bytes_a_tensor_of_bytes_or_what_can_serialise_itself(tmp_path):
    data = one_node("Neg")
    (tmp_path / "m.onnx").write_bytes(data)

    class Proto:
        def SerializeToString(self):
            return data

    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), data, Tensor(data), Proto()):
        assert [-1.0] == OnnxRunner(source)({"x": f32(1)})["y"].tolist()
    assert [-1.0] == load(tmp_path / "m.onnx")({"x": f32(1)})["y"].tolist()
    with pytest.raises(DTypeError, match="a path or the bytes"):
        OnnxRunner(3)


@pytest.mark.parametrize(
    "inputs, error, text",
    [
        ({"a": f32([1, 2])}, ArgumentError, "give b, too"),
        ({"a": f32([1, 2]), "b": f32([1, 2]), "c": f32(1)}, ArgumentError, "the inputs are a, b"),
        ({"a": f32([1, 2]), "b": numpy.array([[1, 2]])}, DTypeError, r"b is float32\[n, 2\], got int64"),
        ({"a": f32([1, 2]), "b": f32([1, 2], [3, 4])}, ShapeError, r"got the shape \(2, 2\)"),
        ({"a": f32([1, 2, 3]), "b": f32([1, 2, 3])}, ShapeError, r"a is float32\[n, 2\]"),
        ({"a": f32(1, 2), "b": f32(1, 2)}, ShapeError, r"got the shape \(2,\)"),
    ],
)
def test_inputs_have_to_fit_what_is_declared(inputs, error, text):
    with pytest.raises(error, match=text):
        OnnxRunner(declared())(inputs)


def test_sizes_that_exporters_leave_open_fit_everything():
    runner = OnnxRunner(model(graph([node("Neg", "x", "y")], [value("x", "float32", [-1, "?", "?", ""])], "y")))

    assert {"x": "float32[?, ?, ?, ?]"} == runner.inputs
    assert (2, 3, 4, 5) == runner({"x": Tensor.zeros(2, 3, 4, 5)})["y"].shape


def test_an_input_with_an_initializer_may_be_left_out():
    body = graph([node("Add", "x w", "y")], "x w", "y", [tensor(f32(5), "w")])
    runner = OnnxRunner(model(body))

    assert ["x"] == list(runner.inputs)
    assert [6.0] == runner({"x": f32(1)})["y"].tolist()
    assert [3.0] == runner({"x": f32(1), "w": f32(2)})["y"].tolist()


def test_sizes_may_vary_where_the_model_does_not_compute_with_them():
    size = Variable("batch", 1, 8)
    x = Tensor.ones(8, 2)[: size.bind(3)]
    assert [[22.0]] * 3 == OnnxRunner(declared())({"a": x, "b": x})["y"].tolist()

    with pytest.raises(ShapeError, match="computes with its shapes"):
        OnnxRunner(one_node("Shape"))({"x": x})


def test_a_call_can_be_captured():
    runner = OnnxRunner(declared())
    captured = jit(lambda a, b: runner({"a": a, "b": b})["y"].realize())
    for turn in range(4):
        assert [[2.0 * turn + 40]] == captured(Tensor([[float(turn), 2.0]]), Tensor([[float(turn), 2.0]])).tolist()


def test_debug_prints_each_node(capsys):
    OnnxRunner(one_node("Neg"))({"x": f32(1)}, debug=1)
    assert "Neg -> y float32(1,)\n" == capsys.readouterr().out


def test_an_error_names_the_node():
    written = model(graph([node("Add", "a b", "y", name="the sum")], "a b", "y"))
    with pytest.raises(ShapeError) as caught:
        OnnxRunner(written)({"a": f32(1, 2), "b": f32(1, 2, 3)})
    assert ["in the node Add 'the sum' -> y"] == caught.value.__notes__


def test_what_numpy_complains_of_is_told_as_the_nodes_fault():
    with pytest.raises(FormatError, match=r"the node Range -> y does not fit its inputs: ZeroDivisionError"):
        run("Range", numpy.array(0), numpy.array(1), numpy.array(0))


# --- at load ---------------------------------------------------------------------------------------


def test_everything_unsupported_is_told_at_once():
    branch = graph([node("Twirl", "x", "z")], "", "z")
    body = graph(
        [
            node("Spin", "x", "a", domain="my.own"), node("Softmax", "a", "b", beta=2.0),
            node("If", "c", "y", then_branch=branch, else_branch=branch),
        ],
        "x c", "y",
    )  # fmt: skip
    with pytest.raises(FormatError) as caught:
        OnnxRunner(model(body, 21, **{"my.own": 3}))
    for text in ("my.own Spin, version 3", "ai.onnx Softmax, version 21: attribute beta", "ai.onnx Twirl, version 21"):
        assert text in caught.value.message


@pytest.mark.parametrize(
    "written, text",
    [
        (b"", "a model has a graph"),
        (b"no model at all", "is this an ONNX file|does not fit|not known"),
        (model(graph([node("Add", "x y", "y")], "x", "y")), "one another"),
        (model(graph([node("Neg", "q", "y")], "x", "y")), "that nothing makes"),
        (model(graph([], "x", "y")), "nothing makes the output 'y'"),
        (one_node("Neg", "w", initializers=[]).replace(b"Neg", b"Nix"), "Nix"),
    ],
)
def test_what_is_no_model_is_refused(written, text):
    with pytest.raises(FormatError, match=text):
        OnnxRunner(written)


@pytest.mark.parametrize(
    "data, text",
    [
        (message(f1=[3], f2=1, f8="w", f9=bytes(8)), "8 bytes cannot hold"),
        (message(f1=[1 << 62, 1 << 62], f2=1, f8="w", f9=bytes(8)), "cannot hold"),
        (message(f1=[-1], f2=1, f8="w", f9=b""), "negative"),
        (message(f1=[1], f2=99, f8="w", f9=bytes(4)), "type 99"),
        (message(f1=[1], f2=14, f8="w", f9=bytes(8)), "complex64"),
        (message(f1=[2], f2=6, f8="w", f5=[1]), "1 elements"),
        (message(f1=[2], f2=8, f8="w", f6=[b"a"]), "1 texts"),
    ],
)
def test_initializers_have_to_be_as_large_as_their_shapes(data, text):
    with pytest.raises(FormatError, match=text) as caught:
        OnnxRunner(model(graph([node("Neg", "w", "y")], "", "y", [data])))
    assert "w" in caught.value.field


def test_a_sparse_tensor_may_not_grow_without_bound():
    def sparse(sizes, places):
        parts = message(f1=tensor(f32(*[7] * len(places)), "w"), f2=tensor(numpy.array(places, "int64")), f3=sizes)
        return model(graph([node("Neg", "w", "y")], "", "y") + message(f15=parts))

    assert [[0, -7], [-7, 0]] == OnnxRunner(sparse([2, 2], [1, 2]))({})["y"].tolist()
    for sizes, places in (([1 << 20, 1 << 20], [1]), ([2, 2], [4]), ([2, 2], [-1])):
        with pytest.raises(FormatError, match="sparse"):
            OnnxRunner(sparse(sizes, places))


def test_nodes_in_any_order_run_in_one_that_works():
    body = graph([node("Neg", "b", "y"), node("Abs", "a", "b"), node("Neg", "x", "a")], "x", "y")
    assert [-3.0] == OnnxRunner(model(body))({"x": f32(3)})["y"].tolist()


# --- functions and subgraphs -----------------------------------------------------------------------


def function(name, inputs, outputs, nodes, attributes=()):
    return message(
        f1=name,
        f4=inputs.split(),
        f5=outputs.split(),
        f6=list(attributes),
        f7=nodes,
        f9=message(f1="", f2=21),
        f10="own",
    )


def test_functions_of_the_model_are_expanded_with_the_attributes_of_the_call():
    alpha = message(f1="alpha", f20=1, f21="slope")
    leaky = message(f1="x", f2="y", f4="LeakyRelu", f5=alpha)
    body = graph([node("Mine", "x", "y", domain="own", slope=0.5)], "x", "y")
    written = model(body, functions=[function("Mine", "x", "y", [leaky], ["slope"])], own=1)

    assert [-1.0, 3.0] == OnnxRunner(written)({"x": f32(-2, 3)})["y"].tolist()


def test_a_function_that_calls_itself_is_refused():
    again = node("Mine", "x", "y", domain="own")
    written = model(graph([again], "x", "y"), functions=[function("Mine", "x", "y", [again])], own=1)
    with pytest.raises(FormatError, match="deep"):
        OnnxRunner(written)


def test_functions_that_double_one_another_do_not_grow_without_bound(monkeypatch):
    monkeypatch.setattr(program, "MOST_STEPS", 1000)
    pairs = [[node(f"f{n}", one, two, domain="own") for one, two in ("xa", "ay")] for n in range(1, 41)]
    twice = [function(f"f{n}", "x", "y", pair) for n, pair in enumerate(pairs)]
    last = function("f40", "x", "y", [node("Neg", "x", "y")])
    with pytest.raises(FormatError, match="expand to more than 1000"):
        OnnxRunner(model(graph([node("f0", "x", "y", domain="own")], "x", "y"), functions=[*twice, last], own=1))


def test_a_loop_over_a_known_count_builds_one_graph():
    body = graph([node("Add", "s x", "t"), node("Identity", "c", "again")], "n c s", "again t")
    nodes = [node("Constant", "", "count", value=numpy.array(3)), node("Loop", "count  x", "y", body=body)]
    nodes[1] = message(f1=["count", "", "x"], f2=["y"], f4="Loop", f5=attribute("body", body))
    runner = OnnxRunner(model(graph(nodes, "x", "y")))
    launches = GlobalCounters.kernel_count
    result = runner({"x": f32(1, 2)})["y"]

    assert launches == GlobalCounters.kernel_count
    assert [4.0, 8.0] == result.tolist()


def test_a_branch_sees_the_values_around_it():
    branches = [graph([node(op, "x", "z")], "", "z") for op in ("Neg", "Exp")]
    body = graph([node("If", "c", "y", then_branch=branches[0], else_branch=branches[1])], "x c", "y")
    runner = OnnxRunner(model(body))

    assert [-2.0] == runner({"x": f32(2), "c": numpy.array(True)})["y"].tolist()
    assert [1.0] == runner({"x": f32(0), "c": numpy.array(False)})["y"].tolist()


# --- memory ----------------------------------------------------------------------------------------


def test_a_bomb_of_expansions_takes_memory_only_when_its_values_are_asked_for():
    """Ten nodes that each make the one before a thousand times as large."""
    nodes, name = [], "one"
    for step in range(10):
        shape = numpy.array([1000] * (step + 1))
        nodes.append(node("Constant", "", f"s{step}", value=shape))
        nodes.append(node("Expand", f"{name} s{step}", f"e{step}"))
        name = f"e{step}"
    nodes.append(node("Shape", name, "shape"))
    written = model(graph(nodes, "", f"shape {name}", [tensor(f32(1), "one")]))
    result = OnnxRunner(written)({})

    assert [1000] * 10 == result["shape"].tolist()
    with pytest.raises((OutOfMemoryError, MemoryError)):
        (result[name] + Tensor.rand(1)).realize()


def test_computing_with_shapes_launches_nothing():
    nodes = [
        node("Shape", "x", "s"), node("Constant", "", "two", value=numpy.array([2])),
        node("Constant", "", "i", value=numpy.array([0])), node("Gather", "s i", "n"), node("Div", "n two", "h"),
        node("Concat", "two h", "t", axis=0), node("Reshape", "x t", "y"),
    ]  # fmt: skip
    runner = OnnxRunner(model(graph(nodes, "x", "y")))
    launches = GlobalCounters.kernel_count

    assert (2, 3) == runner({"x": Tensor.arange(6)})["y"].shape
    assert launches == GlobalCounters.kernel_count


# --- cases -----------------------------------------------------------------------------------------


def test_quantize_rounds_ties_to_even_and_saturates():
    """B127."""
    found = run("QuantizeLinear", f32(2.5, 3.5, -2.5, 1000), numpy.float32(1), numpy.uint8(0))[0]
    assert [2, 4, 0, 255] == found.tolist() and "uint8" == found.dtype


def test_resizing_bytes_keeps_them_bytes():
    """B128."""
    x = numpy.array([[0, 255], [255, 0]], "uint8")
    nodes = message(f1=["x", "", "", "s"], f2=["y"], f4="Resize", f5=attribute("mode", "cubic"))
    written = model(graph([nodes], "x", "y", [tensor(numpy.array([4, 4]), "s")]))
    found = OnnxRunner(written)({"x": x})["y"].numpy()

    assert "uint8" == found.dtype and (4, 4) == found.shape
    assert 0 == found.min() == found[0, 0] and 255 == found.max() == found[0, 3]


def test_negative_pads_cut():
    """B130."""
    found = run("Pad", f32([1, 2, 3]), numpy.array([0, -1, 0, 1]), numpy.float32(7))[0]
    assert [[2.0, 3.0, 7.0]] == found.tolist()


def test_average_pool_with_counted_padding_divides_by_the_whole_window():
    """B131."""
    x = numpy.arange(12, dtype="float32").reshape(1, 1, 6, 2)
    found = run("AveragePool", x, opset=19, auto_pad="SAME_LOWER", count_include_pad=1, kernel_shape=[5, 1])[0]

    numpy.testing.assert_allclose([1.2, 1.8], found[0, 0, 0], rtol=1e-6)
    numpy.testing.assert_allclose([4.8, 5.4], found[0, 0, -1], rtol=1e-6)


def test_flatten_at_axis_zero_then_reduce():
    """B133."""
    nodes = [
        node("Flatten", "x", "f", axis=0), node("Abs", "f", "a"), node("ReduceSum", "a i", "y", keepdims=1),
    ]  # fmt: skip
    written = model(graph(nodes, "x", "y", [tensor(numpy.array([0]), "i")]))
    assert (1, 540) == OnnxRunner(written)({"x": Tensor.rand(3, 3, 2, 3, 2, 5)})["y"].shape


@pytest.mark.parametrize("opset, axes", [(11, (1, 2)), (13, (1,))])
def test_softmax_before_version_13_runs_over_all_later_axes(opset, axes):
    """O13."""
    x = numpy.arange(8, dtype="float32").reshape(2, 2, 2)
    grown = numpy.exp(x - x.max(axes, keepdims=True))
    numpy.testing.assert_allclose(
        grown / grown.sum(axes, keepdims=True), run("Softmax", x, opset=opset, axis=1)[0], rtol=1e-6
    )


def test_integer_division_cuts_towards_zero_on_tensors_and_on_the_host():
    a, b = numpy.array([7, -7, 7, -7]), numpy.array([2, 2, -2, -2])
    assert [3, -3, -3, 3] == run("Div", a, b)[0].tolist()
    folded = model(graph([node("Div", "a b", "y")], "", "y", [tensor(a, "a"), tensor(b, "b")]))
    assert [3, -3, -3, 3] == OnnxRunner(folded)({})["y"].tolist()


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_damaged_model_runs_or_raises_a_typed_error(data):
    good = declared()
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with suppress(LazuliteError, OverflowError):
        OnnxRunner(bytes(damaged))({"a": f32([1, 2]), "b": f32([3, 4])})


@pytest.mark.parametrize("length", [6, 7])
def test_half_a_spectrum_comes_back_as_its_signal(length):
    signal = numpy.random.default_rng(0).standard_normal((2, length)).astype("float32")
    half = numpy.fft.rfft(signal)
    pairs = numpy.stack([half.real, half.imag], -1).astype("float32")
    found = run("DFT", pairs, numpy.array(length), numpy.array(1), inverse=1, onesided=1)[0]

    numpy.testing.assert_allclose(signal, found[..., 0], atol=1e-6)
