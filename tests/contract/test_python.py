from contract.device import DeviceContract
from lazulite.emit.base import Binary
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, index


class TestPython(DeviceContract):
    device = "PYTHON"

    def double_ints(self):
        memory = UOp(ops.PARAM, dtypes.int32, (), (0, (4,), "PYTHON"))
        i = UOp(ops.RANGE, dtypes.index, (index(4),), ((0,), "loop"))
        old = UOp(ops.LOAD, dtypes.int32, (memory, i))
        sink = UOp(ops.SINK, dtypes.void, (UOp(ops.STORE, dtypes.void, (memory, i, old + old)),))
        return Binary("kernel", to_text(sink).encode(), "text")
