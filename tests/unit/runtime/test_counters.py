from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.counters import Counters
from lazulite.runtime.devices.cpu import CpuDevice

SUMS = ("kernel_count", "global_ops", "global_mem", "programs_compiled", "programs_from_disk", "schedules_built")


def test_reset_begins_every_sum_at_zero():
    counters = Counters()
    for name in SUMS:
        setattr(counters, name, 5)
    assert "global_ops=5" in repr(counters)
    counters.reset()
    assert [0] * len(SUMS) == [getattr(counters, name) for name in SUMS]


def test_memory_and_nodes_are_measured_and_return_to_where_they_were():
    """A54"""
    counters, device = Counters(), CpuDevice("CPU")
    memory, nodes = counters.mem_used, counters.live_nodes
    buffer, node = Buffer(device, 1000).allocate(), UOp.const(dtypes.int32, 987654321)
    assert (counters.mem_used - memory, counters.live_nodes - nodes) == (1000, 1)
    del buffer, node
    assert (counters.mem_used, counters.live_nodes) == (memory, nodes)
