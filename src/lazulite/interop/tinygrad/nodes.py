"""tinygrad's names for ops and kinds of loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from lazulite.ir import ops
from lazulite.ir.ops import OPS, Op

_OTHER_NAMES = {
    "FDIV": "div", "CMPLT": "lt", "CMPNE": "ne", "CMPEQ": "eq", "SHL": "shl", "SHR": "shr", "MULACC": "fma",
    "IDIV": "floordiv", "RECIPROCAL": "div",
}  # fmt: skip


class _OpNames(type):
    """Each op by its name in capitals."""

    def __getattr__(cls, name: str) -> Op:
        record = OPS.get(_OTHER_NAMES.get(name, name.lower()))
        if record is None or name != name.upper():
            raise AttributeError(f"Lazulite has no op {name}")
        return record

    def __iter__(cls) -> Iterator[Op]:
        return iter(OPS.values())


class Ops(metaclass=_OpNames):
    """The ops of the intermediate representation.

    >>> from lazulite import Tensor
    >>> (Tensor([1]) + 1).uop.op is Ops.ADD
    True
    """


class GroupOp:
    """Ops that belong together."""

    Unary = frozenset({o for o in ops.ELEMENTWISE if o.operands == 1})
    Binary = frozenset({o for o in ops.ELEMENTWISE if o.operands == 2})
    Ternary = frozenset({o for o in ops.ELEMENTWISE if o.operands == 3})
    ALU, Elementwise = ops.ELEMENTWISE, ops.ELEMENTWISE
    Movement = ops.MOVEMENT
    Comparison = ops.COMPARISONS
    Commutative = frozenset({o for o in ops.ELEMENTWISE if o.commutes})
    Associative = frozenset({o for o in ops.ELEMENTWISE if o.associates})


class AxisType(Enum):
    """Kinds of loops."""

    GLOBAL, WARP, LOCAL, LOOP, GROUP_REDUCE, REDUCE, UPCAST, UNROLL, THREAD, PLACEHOLDER = range(10)


def resolve(x: Any, default: bool = True) -> bool:
    """Whether a comparison of sizes holds; the default where that depends on them."""
    if isinstance(x, bool):
        return x
    low, high = x.bounds
    return bool(low) if low == high else default


def sym_infer(uop: Any, var_vals: Mapping[str, int]) -> int:
    """The value of a size."""
    return int(uop)
