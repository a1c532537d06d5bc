"""Values of sizes that vary in their largest shapes, for what is written for fixed sizes alone, as kernels by hand are.

Takes and gives `TENSOR` nodes.  `widest` fills a value up to its largest shape, `cut` takes from a result what
belongs to the sizes of the moment.  Values of fixed sizes stay as they are.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.infer import Shape
from lazulite.ir.size import max_shape, most, varies
from lazulite.ir.uop import UOp


def widest(node: UOp, fill: Scalar = 0) -> UOp:
    """The value in its largest shape; what it does not have itself is `fill`.

    >>> from lazulite.ir.size import Variable
    >>> numbers = UOp(ops.IOTA, dtypes.int32, (), Variable("n", 1, 4).bind(3))
    >>> widest(numbers).shape
    (4,)
    """
    if not varies(node.shape):
        return node
    missing = tuple([(0, most(size) - size) for size in node.shape])
    padded = UOp(ops.PAD, node.dtype, (node,), missing)
    if fill == 0:
        return padded
    every = UOp(ops.EXPAND, dtypes.bool, (UOp.const(dtypes.bool, True),), node.shape)
    return UOp(ops.PAD, dtypes.bool, (every,), missing).where(padded, UOp.const(node.dtype, fill))


def cut(node: UOp, shape: Shape) -> UOp:
    """The first elements along each axis that make up a shape whose largest is that of the value.

    >>> from lazulite.ir.size import Variable
    >>> cut(UOp(ops.IOTA, dtypes.int32, (), 4), (Variable("n", 1, 4).bind(3),)).shape
    (n = 3,)
    """
    if not varies(shape):
        return node
    assert node.shape == max_shape(shape)
    return UOp(ops.SHRINK, node.dtype, (node,), tuple([(0, size) for size in shape]))
