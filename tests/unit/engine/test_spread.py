"""Outputs on several devices become one output a device, and one storage with parts of the same version."""

from __future__ import annotations

from lazulite import Tensor
from lazulite.engine import execute
from lazulite.engine.spread import in_parts, layout_of
from lazulite.ir.placement import Placement, split

TWO = ("CPU:0", "CPU:1")


def gathered(*tensors: Tensor) -> execute.Work:
    return execute.gathered([t._handle for t in tensors], state=False)


def test_work_on_one_device_is_left_alone():
    work = gathered(Tensor([1.0]) + 1)
    outputs = work.outputs
    assert in_parts(work).outputs is outputs


def test_an_output_has_a_part_for_each_device():
    x = Tensor([1.0, 2.0, 3.0])
    work = in_parts(gathered(x.shard(TWO, 0) + 1, x + 1))
    assert [(2,), (1,), (3,)] == [output.value.shape for output in work.outputs]
    assert [split(("CPU", "CPU:1"), 0, 3)] == [spread.where for spread in work.spread]


def test_the_parts_of_a_storage_keep_its_version():
    x = Tensor([1.0, 2.0, 3.0]).shard(TWO, 0).realize()
    for _ in range(3):
        x[0] = x[0] + 1  # of the first part only
        x.realize()
    storage = x._handle.storage
    assert [storage.version] * 2 == [part.version for part in storage.parts]
    assert [4.0, 2.0, 3.0] == x.tolist()


def test_a_value_lies_as_its_operands_do():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert layout_of(x.uop) is None
    assert 1 == layout_of(x.shard(TWO, 0).T.relu().uop).axis
    assert Placement(("CPU", "CPU:1")) == layout_of(x.shard(TWO, 0).sum(0).uop)


def test_equal_layouts_are_equal_to_a_capture():
    x = Tensor([1.0, 2.0, 3.0])
    first, second, other = x.shard(TWO, 0), (x + 1).shard(TWO, 0), x.shard(TWO)
    layouts = [t.realize()._handle.storage.layout for t in (first, second, other)]
    assert layouts[0] == layouts[1] != layouts[2]
