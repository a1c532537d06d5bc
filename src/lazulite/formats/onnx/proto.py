"""The messages of an ONNX model, as far as they are read; numbers are those of `onnx.proto`.

https://github.com/onnx/onnx/blob/main/onnx/onnx.proto defines them.  Documentation, quantisation notes
and sharding are skipped.  Everything here is data: no name from a file ever becomes an attribute.
"""

from __future__ import annotations

from dataclasses import dataclass

from lazulite.formats.onnx.wire import BYTES, DOUBLE, FLOAT, INT, TEXT, Part, many, one, whole

NAMES = (
    "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64",
    "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "uint4", "int4", "float4_e2m1fn", "float8_e8m0fnu", "uint2", "int2",
)  # fmt: skip
"""Element types by their number in a file; those of less than a byte or no arithmetic as `ml_dtypes` names them."""
NUMBERS = {name: number for number, name in enumerate(NAMES)}


@dataclass(slots=True)
class Entry:
    key: str = one(1, TEXT)
    value: str = one(2, TEXT)


@dataclass(slots=True)
class TensorData:
    """The elements of a tensor: typed, as raw bytes, or where they lie in another file."""

    dims: list[int] = many(1, INT)
    data_type: int = one(2, INT)
    float_data: list[float] = many(4, FLOAT)
    int32_data: list[int] = many(5, INT)
    string_data: list[Part] = many(6, BYTES)
    int64_data: list[int] = many(7, INT)
    name: str = one(8, TEXT)
    raw_data: Part | None = one(9, BYTES)
    double_data: list[float] = many(10, DOUBLE)
    uint64_data: list[int] = many(11, INT)
    external_data: list[Entry] = many(13, lambda: Entry)
    data_location: int = one(14, INT)


@dataclass(slots=True)
class SparseData:
    values: TensorData | None = one(1, lambda: TensorData)
    indices: TensorData | None = one(2, lambda: TensorData)
    dims: list[int] = many(3, INT)


@dataclass(slots=True)
class Dimension:
    dim_value: int | None = one(1, INT, optional=True)
    dim_param: str = one(2, TEXT)


@dataclass(slots=True)
class ShapeData:
    dim: list[Dimension] = many(1, lambda: Dimension)


@dataclass(slots=True)
class TensorType:
    elem_type: int = one(1, INT)
    shape: ShapeData | None = one(2, lambda: ShapeData)


@dataclass(slots=True)
class ElementType:
    """The type of a sequence's or an optional's element."""

    elem_type: TypeData | None = one(1, lambda: TypeData)


@dataclass(slots=True)
class TypeData:
    tensor_type: TensorType | None = one(1, lambda: TensorType)
    sequence_type: ElementType | None = one(4, lambda: ElementType)
    optional_type: ElementType | None = one(9, lambda: ElementType)


@dataclass(slots=True)
class ValueInfo:
    name: str = one(1, TEXT)
    type: TypeData | None = one(2, lambda: TypeData)


@dataclass(slots=True)
class Attribute:
    part: Part | None = whole()
    name: str = one(1, TEXT)
    f: float = one(2, FLOAT)
    i: int = one(3, INT)
    s: Part | None = one(4, BYTES)
    t: TensorData | None = one(5, lambda: TensorData)
    g: Graph | None = one(6, lambda: Graph)
    floats: list[float] = many(7, FLOAT)
    ints: list[int] = many(8, INT)
    strings: list[Part] = many(9, BYTES)
    tensors: list[TensorData] = many(10, lambda: TensorData)
    graphs: list[Graph] = many(11, lambda: Graph)
    tp: TypeData | None = one(14, lambda: TypeData)
    type: int = one(20, INT)
    ref_attr_name: str = one(21, TEXT)
    sparse_tensor: SparseData | None = one(22, lambda: SparseData)


@dataclass(slots=True)
class Node:
    input: list[str] = many(1, TEXT)
    output: list[str] = many(2, TEXT)
    name: str = one(3, TEXT)
    op_type: str = one(4, TEXT)
    attribute: list[Attribute] = many(5, lambda: Attribute)
    domain: str = one(7, TEXT)
    overload: str = one(8, TEXT)


@dataclass(slots=True)
class Graph:
    node: list[Node] = many(1, lambda: Node)
    name: str = one(2, TEXT)
    initializer: list[TensorData] = many(5, lambda: TensorData)
    input: list[ValueInfo] = many(11, lambda: ValueInfo)
    output: list[ValueInfo] = many(12, lambda: ValueInfo)
    sparse_initializer: list[SparseData] = many(15, lambda: SparseData)


@dataclass(slots=True)
class OperatorSet:
    domain: str = one(1, TEXT)
    version: int = one(2, INT)


@dataclass(slots=True)
class Function:
    name: str = one(1, TEXT)
    input: list[str] = many(4, TEXT)
    output: list[str] = many(5, TEXT)
    attribute: list[str] = many(6, TEXT)
    node: list[Node] = many(7, lambda: Node)
    opset_import: list[OperatorSet] = many(9, lambda: OperatorSet)
    domain: str = one(10, TEXT)
    attribute_proto: list[Attribute] = many(11, lambda: Attribute)
    overload: str = one(13, TEXT)


@dataclass(slots=True)
class Model:
    ir_version: int = one(1, INT)
    producer_name: str = one(2, TEXT)
    graph: Graph | None = one(7, lambda: Graph)
    opset_import: list[OperatorSet] = many(8, lambda: OperatorSet)
    functions: list[Function] = many(25, lambda: Function)
