"""Diagonals and grids."""

from __future__ import annotations

from typing import Any, Self

from lazulite.base.errors import ArgumentError, AxisError, ShapeError
from lazulite.ir import ops
from lazulite.tensor.arrange import ArrangeMethods
from lazulite.tensor.base import one_axis


class DiagonalMethods(ArrangeMethods):
    """Diagonals and grids."""

    __slots__ = ()

    def diag(self, diagonal: int = 0) -> Self:
        """The square matrix with this vector on a diagonal; of a matrix its diagonal.

        >>> Tensor([1, 2]).diag().tolist()
        [[1, 0], [0, 2]]
        """
        if len(self.shape) == 2:
            return self.diagonal(diagonal)
        if len(self.shape) != 1:
            raise ShapeError("diag", f"takes a vector or a matrix, got {self.shape}", about={"tensor": self})
        (size,) = self.shape
        wide = self.unsqueeze(1).pad(((0, 0), (0, size))).flatten()
        square = wide.shrink(((0, size * size),)).reshape((size, size))
        row, column = max(-diagonal, 0), max(diagonal, 0)
        return square.pad(((row, column), (column, row))) if diagonal else square

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The diagonal of two axes, which go, along a new last axis; a view.

        `offset` above zero begins in a later column, below zero in a later row.

        >>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        rank = len(self.shape)
        first, second = [one_axis("diagonal", axis, rank) for axis in (dim1, dim2)]
        if first == second or rank < 2:
            raise AxisError("diagonal", f"needs two different axes, got {dim1} and {dim2} of {self.shape}")
        others = [axis for axis in range(rank) if axis not in (first, second)]
        x = self._moved(ops.PERMUTE, (*others, first, second))
        lead, (rows, columns) = x.shape[:-2], x.shape[-2:]
        row, column = max(-offset, 0), max(offset, 0)
        size = max(min(rows - row, columns - column), 0)
        row, column = min(row, rows - size), min(column, columns - size)
        whole = tuple([(0, n) for n in lead])
        x = x._moved(ops.SHRINK, (*whole, (row, row + size), (column, column + size)))
        x = x._moved(ops.RESHAPE, (*lead, size * size))
        x = x._moved(ops.PAD, (*[(0, 0) for _ in lead], (0, size)))
        x = x._moved(ops.RESHAPE, (*lead, size, size + 1))
        x = x._moved(ops.SHRINK, (*whole, (0, size), (0, 1)))
        return x._moved(ops.RESHAPE, (*lead, size))

    def meshgrid(self, *args: Any, indexing: str = "ij") -> tuple[Self, ...]:
        """This vector and the others as coordinates of a grid, each repeated along the axes of the others.

        With `indexing="xy"` the first two axes change places.

        >>> [part.tolist() for part in Tensor([1, 2]).meshgrid(Tensor([3, 4, 5]))]
        [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
        """
        if indexing not in ("ij", "xy"):
            raise ArgumentError("meshgrid", f"indexing is 'ij' or 'xy', not {indexing!r}")
        vectors = [self, *args]
        if any(len(vector.shape) > 1 for vector in vectors):
            raise ShapeError("meshgrid", f"takes vectors, got {', '.join(str(vector.shape) for vector in vectors)}")
        axes = list(range(len(vectors)))
        if indexing == "xy" and len(vectors) > 1:
            axes[:2] = [1, 0]
        sizes = [vector.numel() for vector in vectors]
        shape = tuple([sizes[axes.index(axis)] for axis in range(len(vectors))])
        return tuple([
            vector.reshape([size if axis == own else 1 for axis in range(len(vectors))]).expand(shape)
            for vector, own, size in zip(vectors, axes, sizes, strict=True)
        ])  # fmt: skip
