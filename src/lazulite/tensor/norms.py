"""The sizes of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, AxisError, ShapeError
from lazulite.tensor.base import Axes, DTypeLike, as_dtype, float_dtype, one_axis, sizes_argument, some_axes, wide_dtype
from lazulite.tensor.functions import FunctionMethods
from lazulite.tensor.products import ProductMethods


class NormMethods(FunctionMethods, ProductMethods):
    """Norms."""

    __slots__ = ()

    def vector_norm(
        self, ord: float = 2, dim: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None
    ) -> Self:
        """The p-norm over axes (all of them for None): (sum |x|^p)^(1/p); p may be 0, inf and -inf, too.

        Narrow floats are summed in float32.  The slope of a norm of zeros is zero, as in torch.

        >>> Tensor([3.0, 4.0]).vector_norm().item(), Tensor([3.0, -4.0]).vector_norm(float("inf")).item()
        (5.0, 4.0)
        """
        result = float_dtype(self.dtype) if dtype is None else as_dtype("vector_norm", dtype)
        axes = some_axes("vector_norm", dim, len(self.shape))
        size: Self = self.cast(wide_dtype(result)).abs()
        if ord in (math.inf, -math.inf):
            norm = size.max(axes, keepdim) if ord > 0 else size.min(axes, keepdim)
        elif ord == 0:
            norm = size.ne(0).cast(size.dtype).sum(axes, keepdim)
        elif ord == 1:
            norm = size.sum(axes, keepdim)
        else:
            power = size * size if ord == 2 else size.pow(ord)
            norm = power.sum(axes, keepdim)._safe_root(ord)
        return norm.cast(result)

    def _safe_root(self, p: float) -> Self:
        """x^(1/p), whose slope at zero is taken as zero."""
        some = self.ne(0)
        inner = some.where(self, 1)
        root = inner.sqrt() if p == 2 else inner.pow(1 / p)
        return some.where(root, 0.0 if p > 0 else math.inf)

    def matrix_norm(
        self, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Self:  # fmt: skip
        """A norm of matrices: "fro", "nuc", 1, -1, inf, -inf (sums of columns or rows), 2 or -2 (singular values).

        >>> Tensor([[1.0, -2.0], [3.0, 4.0]]).matrix_norm(1).item()
        6.0
        """
        if len(self.shape) < 2:
            raise ShapeError("matrix_norm", f"a matrix has two axes, got {self.shape}", about={"tensor": self})
        axes = [one_axis("matrix_norm", axis, len(self.shape)) for axis in sizes_argument("matrix_norm", dim)]
        if len(set(axes)) != 2:
            raise AxisError("matrix_norm", f"two axes are needed, got {dim}", about={"tensor": self})
        rows, columns = axes
        if ord == "fro":
            return self.vector_norm(2, (rows, columns), keepdim, dtype)
        x: Self = self if dtype is None else self.cast(dtype)
        if ord in (1, -1, math.inf, -math.inf):
            along, left = (rows, columns) if abs(ord) == 1 else (columns, rows)
            sums = x.vector_norm(1, along, True)
            norm = sums.max(left, True) if ord > 0 else sums.min(left, True)
        elif ord in ("nuc", 2, -2):
            others = [axis for axis in range(len(self.shape)) if axis not in (rows, columns)]
            values = x.permute((*others, rows, columns)).svdvals()  # type: ignore[attr-defined]
            norm = values.sum(-1) if ord == "nuc" else values.max(-1) if ord == 2 else values.min(-1)
            norm = norm.reshape([1 if axis in (rows, columns) else size for axis, size in enumerate(self.shape)])
        else:
            raise ArgumentError("matrix_norm", f"ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
        if keepdim:
            return norm
        sizes = [size for axis, size in enumerate(norm.shape) if axis not in (rows, columns)]
        return norm.reshape(sizes)

    def norm(self, p: Any = None, dim: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """`matrix_norm` for "fro" and "nuc" (over all axes, or two), otherwise `vector_norm`, with p 2 by default.

        >>> Tensor([[3.0, 4.0]]).norm().item()
        5.0
        """
        if p == "nuc" or (p == "fro" and dim is not None and not isinstance(dim, int)):
            axes = (-2, -1) if dim is None else tuple(some_axes("norm", dim, len(self.shape)))
            if len(axes) == 2:
                return self.matrix_norm(p, (axes[0], axes[1]), keepdim, dtype)
        return self.vector_norm(2 if p in (None, "fro") else p, dim, keepdim, dtype)
