"""ONNX files written field by field, right ones and wrong ones, without the `onnx` package."""

import struct

import numpy

NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "int4": 22,
}  # fmt: skip


def varint(number):
    number %= 1 << 64
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def field(number, value):
    """One field of a message: an integer, a float (of 32 bits), bytes or a text."""
    if isinstance(value, list):
        return b"".join(field(number, each) for each in value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(**fields):
    """The fields of a message, `f7` for the seventh, in the order given."""
    return b"".join(field(int(name[1:]), value) for name, value in fields.items() if value is not None)


def tensor(array, name="", **more):
    """A tensor by its raw bytes; `more` are further fields."""
    array = numpy.asarray(array)
    raw = message(f1=list(array.shape), f2=NUMBERS[str(array.dtype)], f8=name, f9=array.tobytes())
    return raw + message(**more)


def external(shape, name, dtype="float32", **facts):
    """A tensor whose elements lie in another file."""
    entries = [message(f1=key, f2=str(value)) for key, value in facts.items()]
    return message(f1=list(shape), f2=NUMBERS[dtype], f8=name, f13=entries, f14=1)


def attribute(name, value):
    if isinstance(value, float):
        return message(f1=name, f2=value, f20=1)
    if isinstance(value, int):
        return message(f1=name, f3=value, f20=2)
    if isinstance(value, str):
        return message(f1=name, f4=value, f20=3)
    if isinstance(value, bytes):  # a graph
        return message(f1=name, f6=value, f20=5)
    if isinstance(value, numpy.ndarray):
        return message(f1=name, f5=tensor(value), f20=4)
    if value and isinstance(value[0], float):
        return message(f1=name, f7=value, f20=6)
    return message(f1=name, f8=value, f20=7)


def node(op, inputs, outputs, domain=None, name=None, **attributes):
    made = [attribute(key, value) for key, value in attributes.items()]
    return message(f1=inputs.split(), f2=outputs.split(), f3=name, f4=op, f5=made, f7=domain)


def value(name, dtype="float32", shape=None):
    """A declared input or output; sizes are numbers or names."""
    if shape is None:
        return message(f1=name)
    sizes = [message(f1=size) if isinstance(size, int) else message(f2=size) for size in shape]
    return message(f1=name, f2=message(f1=message(f1=NUMBERS[dtype], f2=message(f1=sizes))))


def graph(nodes, inputs="", outputs="", initializers=()):
    """A graph; inputs and outputs are names, or declared values."""
    declared = [[value(n) for n in names.split()] if isinstance(names, str) else names for names in (inputs, outputs)]
    return message(f1=list(nodes), f2="g", f5=list(initializers), f11=declared[0], f12=declared[1])


def model(graph, opset=21, functions=(), **domains):
    sets = [message(f1="", f2=opset), *[message(f1=name, f2=version) for name, version in domains.items()]]
    return message(f1=10, f7=graph, f8=sets, f25=list(functions))


def one_node(op, inputs="x", outputs="y", opset=21, initializers=(), **attributes):
    """A model of one node; what is no initializer is an input."""
    known = {i[0] for i in initializers}
    free = [name for name in dict.fromkeys(inputs.split()) if name not in known]
    tensors = [tensor(array, name) for name, array in initializers]
    return model(graph([node(op, inputs, outputs, **attributes)], " ".join(free), outputs, tensors), opset)
