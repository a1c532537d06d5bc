"""Products of matrices and vectors by their usual names, all made of `matmul` and sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError, ShapeError
from lazulite.ir.dtype import Scalar
from lazulite.tensor.base import broadcast_shape, one_axis
from lazulite.tensor.diagonals import DiagonalMethods
from lazulite.tensor.products import ProductMethods


class MatrixMethods(ProductMethods, DiagonalMethods):
    """Matrix and vector products."""

    __slots__ = ()

    def _ranked(self, function: str, *pairs: tuple[Any, int]) -> list[Self]:
        """Operands as tensors of the ranks that they must have."""
        operands = [self._tensor(function, operand) for operand, _ in pairs]
        if any(len(x.shape) != rank for x, (_, rank) in zip(operands, pairs, strict=True)):
            wanted = " and ".join(str(rank) for _, rank in pairs)
            raise ShapeError(
                function, f"needs {wanted} axes, got {' and '.join(str(x.shape) for x in operands)}",
                about={f"operand {number}": x for number, x in enumerate(operands, 1)},
            )  # fmt: skip
        return operands

    # --- two operands -----------------------------------------------------------------------------------

    def mm(self, mat2: Any) -> Self:
        """The product of two matrices.

        >>> Tensor([[1, 2]]).mm(Tensor([[3], [4]])).tolist()
        [[11]]
        """
        left, right = self._ranked("mm", (self, 2), (mat2, 2))
        return left.matmul(right)

    def mv(self, vec: Any) -> Self:
        """The product of a matrix and a vector.

        >>> Tensor([[1, 2]]).mv(Tensor([3, 4])).tolist()
        [11]
        """
        left, right = self._ranked("mv", (self, 2), (vec, 1))
        return left.matmul(right)

    def bmm(self, mat2: Any) -> Self:
        """The products of two batches of matrices.

        >>> Tensor.ones(2, 1, 3).bmm(Tensor.ones(2, 3, 1)).tolist()
        [[[3.0]], [[3.0]]]
        """
        left, right = self._ranked("bmm", (self, 3), (mat2, 3))
        if left.shape[0] != right.shape[0]:
            raise ShapeError(
                "bmm", f"batches differ in {left.shape} and {right.shape}", about={"left": left, "right": right}
            )
        return left.matmul(right)

    def outer(self, vec2: Any) -> Self:
        """All products of an element of this vector and one of the other.

        >>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()
        [[3, 4], [6, 8]]
        """
        left, right = self._ranked("outer", (self, 1), (vec2, 1))
        return left.unsqueeze(1) * right

    def ger(self, vec2: Any) -> Self:
        """`outer` by its other name.

        >>> Tensor([1, 2]).ger(Tensor([3])).tolist()
        [[3], [6]]
        """
        return self.outer(vec2)

    def inner(self, other: Any) -> Self:
        """The sums of products over the last axes of both; with a number, the product.

        >>> Tensor([[1, 2], [3, 4]]).inner(Tensor([1, 1])).tolist()
        [3, 7]
        """
        right = self._tensor("inner", other)
        if not self.shape or not right.shape:
            return self * right
        return self.tensordot(right, ([-1], [-1]))

    def vdot(self, other: Any) -> Self:
        """The sum of products of two vectors.

        >>> Tensor([1, 2]).vdot(Tensor([3, 4])).item()
        11
        """
        left, right = self._ranked("vdot", (self, 1), (other, 1))
        return left.dot(right)

    def tensordot(self, other: Any, dims: Any = 2) -> Self:
        """The sums of products over pairs of axes: the last `dims` of this with the first of the other, or two lists.

        The other axes of both remain, in their order; an axis of size 1 goes with any.

        >>> Tensor([[1, 2], [3, 4]]).tensordot(Tensor([[1, 0], [0, 1]]), dims=2).item()
        5
        """
        right = self._tensor("tensordot", other)
        if isinstance(dims, int):
            if not 0 <= dims <= min(len(self.shape), len(right.shape)):
                raise ShapeError(
                    "tensordot", f"there are no {dims} pairs of axes in {self.shape} and {right.shape}",
                    about={"left": self, "right": right},
                )  # fmt: skip
            dims = (list(range(len(self.shape) - dims, len(self.shape))), list(range(dims)))
        if not isinstance(dims, Sequence) or len(dims) != 2:
            raise ArgumentError("tensordot", f"dims is a number of axes or two lists of them, got {dims!r:.60}")
        mine, theirs = [
            [one_axis("tensordot", axis, len(x.shape)) for axis in _listed(part)]
            for x, part in zip((self, right), dims, strict=True)
        ]
        left, right = _paired(self, mine, theirs, right), _paired(right, theirs, mine, self)
        sizes = [tuple([x.shape[axis] for axis in axes]) for x, axes in ((left, mine), (right, theirs))]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                "tensordot", f"paired axes have sizes {sizes[0]} and {sizes[1]}", about={"left": self, "right": right}
            )
        kept = [
            [axis for axis in range(len(x.shape)) if axis not in axes] for x, axes in ((left, mine), (right, theirs))
        ]
        shape = [x.shape[axis] for x, axes in zip((left, right), kept, strict=True) for axis in axes]
        count = math.prod(sizes[0])
        left = left.permute([*kept[0], *mine]).reshape((math.prod(self.shape[axis] for axis in kept[0]), count))
        last = right.permute([*theirs, *kept[1]])
        last = last.reshape((count, math.prod(right.shape[axis] for axis in kept[1])))
        return left.matmul(last).reshape(shape)  # type: ignore[no-any-return]

    def kron(self, other: Any) -> Self:
        """The Kronecker product: each element of this times the whole other.

        >>> Tensor([1, 2]).kron(Tensor([1, 10])).tolist()
        [1, 10, 2, 20]
        """
        right = self._tensor("kron", other)
        rank = max(len(self.shape), len(right.shape))
        x, y = [(1,) * (rank - len(t.shape)) + t.shape for t in (self, right)]
        left = self.reshape([size for axis in x for size in (axis, 1)])
        product = left * right.reshape([size for axis in y for size in (1, axis)])
        return product.reshape([a * b for a, b in zip(x, y, strict=True)])

    def cross(self, other: Any, dim: int | None = None) -> Self:
        """The vector product along an axis of size 3: the given one, or the first there is.

        >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0])).tolist()
        [0, 0, 1]
        """
        right = self._tensor("cross", other)
        shape = broadcast_shape("cross", [self, right])
        threes = [axis for axis, size in enumerate(shape) if size == 3]
        axis = (threes or [-1])[0] if dim is None else one_axis("cross", dim, len(shape))
        if axis < 0 or not shape or shape[axis] != 3:
            raise ShapeError("cross", f"an axis of size 3 is needed, got {shape}", about={"left": self, "right": right})
        x, y = self.expand(shape), right.expand(shape)
        return x.roll(-1, axis) * y.roll(-2, axis) - x.roll(-2, axis) * y.roll(-1, axis)

    def trace(self) -> Self:
        """The sum of the diagonal of a matrix.

        >>> Tensor([[1, 2], [3, 4]]).trace().item()
        5
        """
        (matrix,) = self._ranked("trace", (self, 2))
        return matrix.diagonal().sum()

    # --- sums with products -----------------------------------------------------------------------------

    def _plus(self, product: Self, beta: Scalar, alpha: Scalar) -> Self:
        """beta * self + alpha * product; with beta 0 what this holds does not matter."""
        if not product.dtype.is_float and any(isinstance(factor, float) for factor in (beta, alpha)):
            raise DTypeError("addmm", f"factors of {product.dtype.name} are integers, got {beta} and {alpha}")
        scaled = product if alpha == 1 else product * alpha
        if beta == 0:
            return scaled.expand(broadcast_shape("addmm", [self, scaled]))
        return (self if beta == 1 else self * beta) + scaled

    def addmm(self, mat1: Any, mat2: Any, *, beta: Scalar = 1, alpha: Scalar = 1) -> Self:
        """beta * self + alpha * (mat1 @ mat2); with beta 0 what this holds does not matter, NaN too.

        >>> Tensor([1.0]).addmm(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])).tolist()
        [[12.0]]
        """
        left, right = self._ranked("addmm", (mat1, 2), (mat2, 2))
        return self._plus(left.matmul(right), beta, alpha)

    def addmv(self, mat: Any, vec: Any, *, beta: Scalar = 1, alpha: Scalar = 1) -> Self:
        """beta * self + alpha * (mat @ vec).

        >>> Tensor([1.0]).addmv(Tensor([[1.0, 2.0]]), Tensor([3.0, 4.0])).tolist()
        [12.0]
        """
        left, right = self._ranked("addmv", (mat, 2), (vec, 1))
        return self._plus(left.matmul(right), beta, alpha)

    def addr(self, vec1: Any, vec2: Any, *, beta: Scalar = 1, alpha: Scalar = 1) -> Self:
        """beta * self + alpha * outer(vec1, vec2).

        >>> Tensor([1.0]).addr(Tensor([1.0, 2.0]), Tensor([3.0])).tolist()
        [[4.0], [7.0]]
        """
        left, right = self._ranked("addr", (vec1, 1), (vec2, 1))
        return self._plus(left.outer(right), beta, alpha)

    def baddbmm(self, batch1: Any, batch2: Any, *, beta: Scalar = 1, alpha: Scalar = 1) -> Self:
        """beta * self + alpha * bmm(batch1, batch2).

        >>> Tensor([1.0]).baddbmm(Tensor.ones(1, 1, 2), Tensor.ones(1, 2, 1)).tolist()
        [[[3.0]]]
        """
        left, right = self._ranked("baddbmm", (batch1, 3), (batch2, 3))
        return self._plus(left.bmm(right), beta, alpha)

    def addbmm(self, batch1: Any, batch2: Any, *, beta: Scalar = 1, alpha: Scalar = 1) -> Self:
        """beta * self + alpha * the sum over the batch of bmm(batch1, batch2).

        >>> Tensor([1.0]).addbmm(Tensor.ones(3, 1, 2), Tensor.ones(3, 2, 1)).tolist()
        [[7.0]]
        """
        left, right = self._ranked("addbmm", (batch1, 3), (batch2, 3))
        if left.shape[0] != right.shape[0]:
            raise ArgumentError("addbmm", f"batches differ: {left.shape} and {right.shape}")
        return self._plus(left.tensordot(right, ([0, 2], [0, 1])), beta, alpha)


def _paired(x: Any, own: list[int], other: list[int], y: Any) -> Any:
    """Summed over the axes whose partners have size 1: a single factor broadcasts."""
    if len(own) != len(other):
        raise ShapeError("tensordot", f"{len(own)} axes are paired with {len(other)}", about={"left": x, "right": y})
    wide = [axis for axis, partner in zip(own, other, strict=True) if y.shape[partner] == 1 < x.shape[axis]]
    return x.sum(wide, keepdim=True) if wide else x


def _listed(value: int | Sequence[int]) -> list[int]:
    return list(value) if isinstance(value, Sequence) else [value]
