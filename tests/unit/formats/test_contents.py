import struct

import pytest

from lazulite import Tensor, load
from lazulite.formats.contents import contents
from lazulite.formats.safetensors import write
from support.checkpoints import pickled
from support.model_files import checkpoint, listed
from support.model_files import gguf as made


def test_quantised_tensors_are_blocks_and_elements(tmp_path):
    data = struct.pack("<2e", 0.5, 1.0) + bytes(range(16))
    (tmp_path / "m").write_bytes(made((), (listed("w", (1, 32), 3, 0),), data))
    found = contents(tmp_path / "m", "inspect")
    each = found.tensors["w"]
    assert ("GGUF", "Q4_1", (1, 32), 20) == (found.format, each.kind, each.shape, each.nbytes)
    assert list(data) == each.packed().data.flatten().tolist()
    assert [n * 0.5 + 1 for n in range(16)] + [1.0] * 16 == each.tensor().flatten().tolist()


def test_a_folder_is_one_file(tmp_path):
    write({"a": Tensor([1])}, tmp_path / "model-1.safetensors")
    write({"b": Tensor([2])}, tmp_path / "model-2.safetensors")
    found = contents(tmp_path, "inspect")
    assert ("safetensors", ["a", "b"]) == (found.format, list(found.tensors))


def test_containers_that_hold_themselves_end(tmp_path):
    (tmp_path / "m").write_bytes(checkpoint(b"\x80\x02]q\0h\0aI5\na."))
    assert {"1": 5} == dict(contents(tmp_path / "m", "inspect").metadata)
    (tmp_path / "m").write_bytes(checkpoint(pickled({"a": {"b": (1, [2])}, 3: None})))
    assert {"a.b.0": 1, "a.b.1.0": 2, "3": None} == dict(contents(tmp_path / "m", "inspect").metadata)


def network():
    """A model of the onnx package: y = x @ w."""
    onnx = pytest.importorskip("onnx")
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 2])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 2])
    w = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0])
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], producer_name="by hand")


def test_a_network_is_its_weights_and_what_it_takes_and_gives(tmp_path):
    (tmp_path / "m").write_bytes(network().SerializeToString())
    found = contents(tmp_path / "m", "inspect")
    assert "ONNX" == found.format and {"by hand", 13, "float32[N, 2]", "1 MatMul"} <= set(found.metadata.values())
    each = found.tensors["w"]
    assert ("float32", (2, 2), 16, [[1, 2], [3, 4]]) == (each.kind, each.shape, each.nbytes, each.tensor().tolist())


def test_a_network_is_loaded_as_a_function(tmp_path):
    (tmp_path / "m").write_bytes(network().SerializeToString())
    assert [[4.0, 6.0]] == load(tmp_path / "m")({"x": Tensor([[1.0, 1.0]])})["y"].tolist()
