"""Operators as the functions that the ONNX specification gives for them.

They come from the package `onnx` (an optional dependency): without it only operators with a function of
their own run.  Some functions depend on the types of the inputs, so a body is made when they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from lazulite.formats.onnx.proto import NUMBERS, Attribute, Function, Node
from lazulite.formats.onnx.values import Value, type_name
from lazulite.formats.onnx.wire import Part, decode
from lazulite.formats.source import Source

M = TypeVar("M")

REMEDY = "pip install onnx: with it, operators run that the specification spells as functions of others"


def available() -> bool:
    """Whether the package is there."""
    return find_spec("onnx") is not None


def exists(domain: str, name: str, opset: int) -> bool:
    """Whether the specification has a function for an operator."""
    schema = _schema(domain, name, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def depends_on_types(domain: str, name: str, opset: int) -> bool:
    """Whether this function differs with the types of the inputs."""
    return bool(_schema(domain, name, opset).has_context_dependent_function)


def defaults(domain: str, name: str, opset: int) -> dict[str, Attribute]:
    """The attributes that a node need not give."""
    schema = _schema(domain, name, opset)
    given = {key: each.default_value for key, each in schema.attributes.items() if each.default_value.type}
    return {key: _decoded(Attribute, value.SerializeToString(), key) for key, value in given.items()}


def body(domain: str, node: Node, opset: int, values: Sequence[Value]) -> Function:
    """The function of an operator for inputs of these types."""
    schema = _schema(domain, node.op_type, opset)
    if schema.has_context_dependent_function:
        types = [_type(value).SerializeToString() for value in values]
        data = schema.get_context_dependent_function_with_opset_version(opset, _serialized(node), types)
    else:
        data = schema.function_body.SerializeToString()
    return _decoded(Function, data, node.op_type)


def _decoded(message: type[M], data: bytes, field: str) -> M:
    source = Source.over(memoryview(data), f"the specification of {field}")
    return decode(message, Part(source, 0, source.size), field)


def _schema(domain: str, name: str, opset: int) -> Any:
    try:
        from onnx import defs
    except ModuleNotFoundError:
        return None
    try:
        return defs.get_schema(name, opset, domain)
    except defs.SchemaError:
        return None


def _serialized(node: Node) -> bytes:
    """The node as the file has it; its attributes are those of the call where a function's node refers to them."""
    from onnx import NodeProto

    made = NodeProto()
    made.op_type, made.domain, made.name = node.op_type, node.domain, node.name
    made.input.extend(node.input)
    made.output.extend(node.output)
    for attribute in node.attribute:
        if attribute.part is not None:
            made.attribute.add().ParseFromString(attribute.part.read(attribute.name))
            made.attribute[-1].name = attribute.name
    return bytes(made.SerializeToString())


def _type(value: Value) -> Any:
    from onnx import helper

    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type(value[0] if value else None))
    if value is None:
        return helper.make_tensor_type_proto(0, None)
    return helper.make_tensor_type_proto(NUMBERS.get(type_name(value), 0), value.shape)
