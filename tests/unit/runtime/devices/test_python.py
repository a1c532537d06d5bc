import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.base.errors import DeviceError
from lazulite.emit.base import Binary
from lazulite.ir import ops
from lazulite.ir.dtype import STORED, dtypes
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, index
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.devices.python import PythonDevice, elements


@given(st.data())
@pytest.mark.parametrize("dtype", STORED, ids=lambda d: d.name)
def test_elements_are_stored_as_their_bits(dtype, data):
    bits = data.draw(st.integers(0, (1 << max(dtype.bits, 1)) - 1))
    value = dtype.from_bits(bits)
    memory = bytearray(3 * dtype.itemsize)
    cells = elements(memoryview(memory), dtype)
    cells[1] = value
    assert len(cells) == 3
    assert cells[1] == value or value != value
    if value == value:
        assert memory == bytes(dtype.itemsize) + dtype.to_bits(value).to_bytes(dtype.itemsize, "little") + bytes(
            dtype.itemsize
        )
        assert list(cells)[1] == value


def scaled(dtype, size=4):
    """out[i] = in[i] * factor, with the scalar between the two memories."""
    out = UOp(ops.PARAM, dtype, (), (0, (size,), "PYTHON"))
    factor = UOp(ops.SCALAR, dtype, (), (1, None, None))
    source = UOp(ops.PARAM, dtype, (), (2, (size,), "PYTHON"))
    i = UOp(ops.RANGE, dtypes.index, (index(size),), ((0,), "loop"))
    value = UOp(ops.MUL, dtype, (factor, UOp(ops.LOAD, dtype, (source, i))))
    sink = UOp(ops.SINK, dtypes.void, (UOp(ops.STORE, dtypes.void, (out, i, value)),))
    return Binary("scaled", to_text(sink).encode(), "text")


def run(dtype, values, factor, pack):
    device = PythonDevice("PYTHON")
    out, source = (Buffer(device, dtype.itemsize * 4).allocate() for _ in range(2))
    source.copy_in(memoryview(struct.pack(pack, *values)))
    device.queue.exec(device.load(scaled(dtype)), [out.handle, dtype.to_bits(factor), source.handle])
    return struct.unpack(pack, out.tobytes())


def test_a_kernel_computes_with_memory_and_scalars():
    """A42"""
    assert run(dtypes.float32, [1, 2.5, -3, 0], 0.5, "4f") == (0.5, 1.25, -1.5, 0)
    assert run(dtypes.float16, [1, 2.5, -3, 0], 0.5, "4e") == (0.5, 1.25, -1.5, 0)
    assert run(dtypes.int8, [1, 100, -3, 0], -2, "4b") == (-2, 56, 6, 0)


def test_wrong_arguments_and_memory_that_is_too_small_are_errors_with_the_slot():
    device = PythonDevice("PYTHON")
    program, memory = device.load(scaled(dtypes.int32)), Buffer(device, 16).allocate().handle
    with pytest.raises(DeviceError, match="argument 2 has to be memory"):
        device.queue.exec(program, [memory, 3])
    with pytest.raises(DeviceError, match="argument 1 has to be the bits of a int32"):
        device.queue.exec(program, [memory, memory, memory])
    with pytest.raises(DeviceError, match="slot 0 needs 4 elements, got 2"):
        device.queue.exec(program, [Buffer(device, 8).allocate().handle, 1, memory])


def test_memory_keeps_its_length():
    cells = elements(memoryview(bytearray(4)), dtypes.bfloat16)
    with pytest.raises(TypeError, match="grow"):
        cells.append(1.0)
    with pytest.raises(TypeError, match="shrink"):
        cells.pop()


@pytest.mark.parametrize("position", [0, 3, -1])
def test_an_index_may_be_a_scalar_of_the_call(position):
    """Symbolic sizes and offsets come as INDEX scalars; what is out of range is an error, not a stray write."""
    out = UOp(ops.PARAM, dtypes.int32, (), (0, (4,), "PYTHON"))
    place = UOp(ops.SCALAR, dtypes.index, (), (1, -1, 3))
    sink = UOp(ops.SINK, dtypes.void, (UOp(ops.STORE, dtypes.void, (out, place, UOp.const(dtypes.int32, 9))),))
    device = PythonDevice("PYTHON")
    program = device.load(Binary("place", to_text(sink, "KERNEL").encode(), "text"))
    memory = Buffer(device, 16).allocate()
    memory.copy_in(memoryview(bytes(16)))
    if position < 0:
        with pytest.raises(DeviceError, match="place: "):
            device.queue.exec(program, [memory.handle, position])
    else:
        device.queue.exec(program, [memory.handle, position])
        assert struct.unpack("4i", memory.tobytes())[position] == 9


def test_only_text_is_loaded():
    with pytest.raises(DeviceError, match="k is elf, not text"):
        PythonDevice("PYTHON").load(Binary("k", b"", "elf"))
