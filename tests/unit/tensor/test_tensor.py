"""The tensor itself: what it is made of, writing, replacing, copying."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lazulite import Context, DTypeError, ShapeError, Tensor, UOp, dtypes


def test_a_tensor_of_a_tensor_stands_for_the_same_value() -> None:
    first = Tensor([1, 2])
    second = Tensor(first, dtype="float32")

    assert ([1.0, 2.0], dtypes.float32, dtypes.int32) == (second.tolist(), second.dtype, first.dtype)


def test_a_tensor_of_a_node_is_on_the_device_of_its_memory() -> None:
    value = Tensor([1, 2], device="PYTHON").uop + 1

    assert ("PYTHON", [2, 3]) == (Tensor(value).device, Tensor(value).tolist())


def test_a_tensor_stands_for_a_value_not_for_an_effect() -> None:
    with pytest.raises(DTypeError, match="sink of void"):
        Tensor(UOp.sink())


def test_assign_keeps_the_type_and_the_shape() -> None:
    tensor = Tensor([1, 2])
    with pytest.raises(DTypeError, match="the dtype stays int32, got float32"):
        tensor.assign(Tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="does not broadcast"):
        tensor.assign(Tensor([1, 2, 3]))
    assert [7, 7] == tensor.assign(7).tolist()


def test_an_expanded_tensor_is_not_written() -> None:
    with pytest.raises(ShapeError, match="several elements in one place"):
        Tensor([1]).expand(3).assign(2)


def test_replace_takes_over_value_and_memory() -> None:
    tensor, other = Tensor([1, 2]), Tensor([3])
    tensor.replace(other)
    other += 1

    assert [4] == tensor.tolist()
    with pytest.raises(DTypeError, match="a tensor is replaced by a tensor, got list"):
        tensor.replace([1])  # type: ignore[arg-type]


def test_a_clone_is_a_copy_and_to_is_one_only_elsewhere() -> None:
    """A4"""
    tensor = Tensor([1, 2])
    copied, moved = tensor.clone(), tensor.to("PYTHON")
    tensor += 1

    assert ([1, 2], [1, 2], [2, 3]) == (copied.tolist(), moved.tolist(), tensor.tolist())
    assert tensor is tensor.to("CPU")


def test_training_is_a_setting_of_a_block() -> None:
    with Tensor.train():
        assert Tensor.training()
        with Context(TRAINING=0):
            assert not Tensor.training()
    assert not Tensor.training()


def test_a_thread_without_a_line_of_the_user_builds_graphs_that_share_values() -> None:
    """Where no line is to be noted, nothing is searched for places to note it."""
    source = "def doubled(x):\n    for _ in range(64):\n        x = x + x\n    found.append(x)\n"
    inside: dict[str, Any] = {"__name__": "lazulite.made.up", "found": []}
    exec(compile(source, "<made>", "exec"), inside)
    thread = threading.Thread(target=inside["doubled"], args=(Tensor([1.0]),))
    thread.start()
    thread.join()
    assert [2.0**64] == inside["found"][0].tolist()
