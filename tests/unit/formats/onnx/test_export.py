"""`to_onnx`: an exported function computes the same wherever it runs; what cannot be exported names its line."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lazulite
from lazulite import ArgumentError, CaptureError, DTypeError, FormatError, Tensor, Variable, dtypes, nn, to_onnx
from lazulite.formats.onnx import OnnxRunner, export
from lazulite.nn.state import get_state_dict
from support.models import fault
from support.onnx_export import agrees, loaded, operators
from support.tensor_programs import FLOATS, INTEGERS, Program, follow, program_of, tensor_of

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference implementation


@pytest.fixture(autouse=True)
def seed() -> None:
    Tensor.manual_seed(3)


def random(*shape: int) -> Tensor:
    return Tensor.randn(*shape).realize()


# --- models ----------------------------------------------------------------------------------------


class Perceptron:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu()).log_softmax(-1)


class Pictures:
    def __init__(self) -> None:
        self.wide, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.grouped, self.deep = nn.Conv2d(8, 6, 3, stride=2, groups=2), nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.mixed, self.last = nn.Conv2d(6, 4, 1), nn.Linear(4 * 3 * 3, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.wide(x)).relu().max_pool2d(2)
        return self.last(self.mixed(self.deep(self.grouped(x))).flatten(1))


class Block:
    """A block of a transformer."""

    def __init__(self, size: int = 16, heads: int = 4) -> None:
        self.before, self.between, self.heads = nn.LayerNorm(size), nn.LayerNorm(size), heads
        self.query, self.key, self.value, self.out = [nn.Linear(size, size) for _ in range(4)]
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, size = x.shape
        parts = [part(self.before(x)) for part in (self.query, self.key, self.value)]
        q, k, v = [part.reshape(batch, length, self.heads, size // self.heads).transpose(1, 2) for part in parts]
        row, column = Tensor.arange(length).reshape(length, 1), Tensor.arange(length)
        scores = (row >= column).where(q @ k.transpose(-1, -2) * 0.5, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, size))
        return x + self.down(self.up(self.between(x)).gelu())


def test_a_perceptron_is_two_matrix_products_without_a_reduction_over_products() -> None:
    found = operators(agrees(Perceptron(), random(5, 4), within=1e-5))

    assert (2, 1) == (found["MatMul"], found["ReduceSum"])


def test_a_network_of_pictures_is_convolutions_and_a_pool() -> None:
    found = operators(agrees(Pictures(), random(2, 3, 16, 16), within=1e-4))

    assert (4, 1, 1, 0) == (found["Conv"], found["MaxPool"], found["MatMul"], found["ReduceSum"])


def test_a_block_with_attention_multiplies_matrices_only() -> None:
    found = operators(agrees(Block(), random(2, 5, 16), within=1e-4))

    assert 8 == found["MatMul"]


def test_the_named_attention_and_an_embedding_agree() -> None:
    table = nn.Embedding(7, 4)
    agrees(lambda q, k: q.scaled_dot_product_attention(k, k, is_causal=True), random(2, 3, 5, 4), random(2, 3, 5, 4),
           within=1e-5)  # fmt: skip
    agrees(table, Tensor([[1, 2, -1], [3, 9, 0]]), within=1e-6)


# --- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model, shape", [(Perceptron, (8, 4)), (Pictures, (8, 3, 16, 16)), (Block, (8, 5, 16))])
def test_an_axis_of_a_variable_takes_any_size(model: Any, shape: tuple[int, ...]) -> None:
    batch, whole = Variable("batch", 1, 8), random(*shape)
    exported = agrees(model(), whole[: batch.bind(3)], others=(whole[:5].contiguous(),), within=1e-4)

    assert "batch" == loaded(exported).graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert OnnxRunner(exported).outputs["output"].startswith("float32[batch")


def test_sizes_that_are_computed_follow_the_shape_of_the_input() -> None:
    half, whole = Variable("n", 2, 8, multiple_of=2), random(8, 3)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        n = x.shape[0]
        positions = Tensor.arange(n).reshape(n, 1) * 2
        return (
            x.sum() / n + positions,
            x.reshape(n // 2, 6),
            x.pad(((1, n), (0, 0))),
            x[: n - 1].repeat(2, 1),
            x.flip(0),
        )

    exported = agrees(function, whole[: half.bind(4)], others=(whole[:6].contiguous(),), within=1e-6)
    declared = {each.name: each.type.tensor_type.shape.dim[0] for each in loaded(exported).graph.output}

    assert "n" == loaded(exported).graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert declared["output_0"].dim_param == "n"


def test_a_size_that_is_no_input_s_is_told() -> None:
    n = Variable("n", 1, 8).bind(3)
    with pytest.raises(ArgumentError, match="the variable n is the size of no axis"):
        to_onnx(lambda x: x + Tensor.arange(n), Tensor([1.0]))


# --- names and files -------------------------------------------------------------------------------


def test_inputs_outputs_and_weights_have_the_names_they_are_given() -> None:
    model = Perceptron()
    exported = loaded(to_onnx(model, Tensor.ones(1, 4), names=get_state_dict(model)))

    assert (["x"], ["output"]) == ([i.name for i in exported.graph.input], [o.name for o in exported.graph.output])
    assert set(get_state_dict(model)) <= {each.name for each in exported.graph.initializer}


def test_arguments_by_name_and_results_in_a_dictionary_keep_their_names() -> None:
    example = {"b": Tensor([1.0]), "a": Tensor([2.0])}
    exported = to_onnx(lambda a, b: {"difference": a - b, "both": [a, b], "third": {"a": a}}, example)
    runner = OnnxRunner(exported)

    assert ["b", "a"] == [*runner.inputs]
    assert ["difference", "both_0", "both_1", "third_a"] == [*runner.outputs]
    assert [1.0] == runner(example)["difference"].tolist()


def test_what_has_no_parameter_names_has_numbers() -> None:
    assert ["input_0", "input_1"] == [*OnnxRunner(to_onnx(lambda *xs: xs[0] + xs[1], (Tensor([1.0]),) * 2)).inputs]
    assert ["input_0"] == [*OnnxRunner(to_onnx(_Unsigned(), Tensor([1.0]))).inputs]


class _Unsigned:
    """Its parameters cannot be told."""

    __signature__ = 3

    def __call__(self, x: Tensor) -> Tensor:
        return x * 2


def test_a_file_is_what_is_returned(tmp_path: Any) -> None:
    model = to_onnx(lambda x: x * 2, Tensor([1.0]), tmp_path / "double.onnx")

    assert model == (tmp_path / "double.onnx").read_bytes()
    assert ["double.onnx"] == [each.name for each in tmp_path.iterdir()]
    assert [6.0] == lazulite.load(tmp_path / "double.onnx")({"x": Tensor([3.0])})["output"].tolist()


def test_inputs_and_constants_that_are_results_are_results() -> None:
    agrees(lambda x: (x, Tensor([[1.0, 2.0]]), x, Tensor.ones(2, 3), x + 0, x + 0), random(2))


@pytest.mark.parametrize("opset", range(18, 27))
def test_every_version_is_one_that_the_checker_knows(opset: int) -> None:
    exported = loaded(to_onnx(lambda x: (x.softmax(-1), x.max(0), x.pad((1, 1))), random(2, 3), opset=opset))

    assert opset == exported.opset_import[0].version
    assert exported.ir_version == onnx.helper.find_min_ir_version_for(exported.opset_import)


# --- what it does to the function ------------------------------------------------------------------


def test_what_is_realized_inside_still_depends_on_the_arguments() -> None:
    agrees(lambda x: x.exp().realize().sum(0).contiguous() * 2, random(3, 2), within=1e-6)


def test_weights_that_are_lazy_are_computed_once() -> None:
    weight = Tensor.rand(4, 4) * 2 + 1
    exported = loaded(agrees(lambda x: x @ weight, random(2, 4), within=1e-5))

    assert ["MatMul"] == [node.op_type for node in exported.graph.node]


def test_a_mask_of_positions_is_not_written_out() -> None:
    exported = to_onnx(lambda x: x.tril(), Tensor.ones(300, 300))

    assert 2000 > len(exported)


def test_quantised_weights_stay_narrow() -> None:
    weight = (Tensor.rand(64, 64) * 20).cast(dtypes.int8).realize()

    assert 64 * 64 + 1000 > len(to_onnx(lambda x: x @ (weight.float() * 0.1), Tensor.ones(1, 64)))


# --- what is refused -------------------------------------------------------------------------------

REFUSED = {
    "a hand-written kernel": lambda x: x.int().repeat(1, 2000).sort()[0],
    "random draws": lambda x: x + Tensor.rand(2),
    "random draws ": lambda x: x + Tensor.rand(2).realize(),
    "a bit cast from float32 to int32": lambda x: x.bitcast(dtypes.int32) + 1,
    "a bit cast from float32 to int16": lambda x: x.bitcast(dtypes.int16),
    "dot2": lambda x: x.int().dot2(x.int()),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_onnx_cannot_say_names_the_line(what: str) -> None:
    with pytest.raises(FormatError, match=f"ONNX has no operators for {what.strip()}") as told:
        to_onnx(REFUSED[what], Tensor([[1.0, 2.0]]))

    assert "test_export.py" in str(told.value)


def test_casts_of_bits_exist_from_version_26_on() -> None:
    exported = to_onnx(lambda x: x.bitcast(dtypes.int32) + 1, Tensor([1.0]), opset=26)

    assert 1 == operators(exported)["BitCast"]


def test_a_function_must_not_look_at_values() -> None:
    with pytest.raises(CaptureError, match="is exported by to_onnx, and must not look at values"):
        to_onnx(lambda x: x if x.sum().item() > 0 else -x, Tensor([1.0]))


def test_a_failure_leaves_the_function_usable() -> None:
    table = Tensor([1.0, 2.0])
    with pytest.raises(FormatError):
        to_onnx(lambda x: x + Tensor.rand(2) + table, Tensor([1.0, 2.0]))

    assert [2.0, 4.0] == (table + table).tolist()
    assert 0 <= Tensor.rand(1).item() < 1


@pytest.mark.parametrize("function, example, options, error", [
    (lambda x: x, 3, {}, DTypeError),
    (lambda x: 3, Tensor([1.0]), {}, DTypeError),
    (lambda x: object(), Tensor([1.0]), {}, DTypeError),
    (lambda x: x, Tensor([1.0]), {"opset": 11}, ArgumentError),
])  # fmt: skip
def test_arguments_that_make_no_sense_are_told(function: Any, example: Any, options: Any, error: Any) -> None:
    with pytest.raises(error, match="to_onnx"):
        to_onnx(function, example, **options)


def test_a_model_too_large_for_the_format_is_told(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setattr(export, "_LARGEST", 100)
    weight = random(100)
    with pytest.raises(ArgumentError, match="2 GiB"):
        to_onnx(lambda x: x + weight, Tensor([1.0]), tmp_path / "large.onnx")

    assert [] == [*tmp_path.iterdir()]


# --- any program -----------------------------------------------------------------------------------

ARITHMETIC = ["neg", "abs", "relu", "add", "sub", "mul", "max", "min", "scalar", "lt", "ge", "eq", "where"]
MOVEMENT = ["reshape", "permute", "flip", "slice", "pad", "expand", "cat"]
KINDS: dict[str, tuple[list[str], tuple[Any, ...]]] = {
    "integers": ([*ARITHMETIC, *MOVEMENT, "xor", "and", "floordiv", "mod", "sum", "amax", "amin"], INTEGERS),
    "floats": ([*ARITHMETIC, *MOVEMENT, "sqrt", "floor", "round", "div", "exp", "log", "sin", "tanh", "sum"], FLOATS),
    "rows": (["add", "scalar", "permute", "reshape", "mean", "softmax", "layernorm", "matmul", "matmul"], FLOATS[:2]),
    "casts": (["cast", "cast", "cast", "add", "scalar", "lt", "where", "pad"], (*FLOATS, *INTEGERS, dtypes.bool)),
    "writes": ([*ARITHMETIC, *MOVEMENT, "write", "write", "clone"], (dtypes.int32, dtypes.float32, dtypes.uint8)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_program_means_what_the_program_means(kind: str) -> None:
    @settings(max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 32), st.integers(1, 8))
    def check(number: int, steps: int) -> None:
        program = program_of(number, steps, *KINDS[kind], (1, 2, 3, 4, 5))
        leaves = [tensor_of(leaf, "CPU").realize() for leaf in program.leaves]
        found = OnnxRunner(_checked(program, leaves))({f"input_{n}": leaf for n, leaf in enumerate(leaves)})
        for output, value in zip(program.outputs, found.values(), strict=True):
            assert None is fault(program.values[output], value.numpy())

    check()


def _checked(program: Program, leaves: list[Tensor]) -> bytes:
    exported = to_onnx(lambda *xs: tuple(follow(program, xs)), tuple(leaves))
    loaded(exported)
    return exported
