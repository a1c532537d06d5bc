"""Parts of a tensor by name: one place, a stretch, a diagonal; and the tensor with such a part replaced.

`select`, `narrow` and their like are views.  The `_scatter` methods give a new tensor in which the view of that
name holds `src`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lazulite.base.errors import AxisError, ShapeError
from lazulite.ir import ops
from lazulite.ir.size import most
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Shape, expanded, one_axis, sizes_argument
from lazulite.tensor.create import CreateMethods
from lazulite.tensor.diagonals import DiagonalMethods
from lazulite.tensor.gather import GatherMethods
from lazulite.tensor.indexing import IndexMethods

_MOST_PARTS = 1 << 16
"""More parts than this and than there are elements are a mistake."""


class PartMethods(IndexMethods, GatherMethods, DiagonalMethods, CreateMethods):
    """Named parts, and axes in another order."""

    __slots__ = ()

    # --- one place and stretches ------------------------------------------------------------------------

    def select(self, dim: int, index: int) -> Self:
        """The part at one place of an axis, which goes; a view.

        >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        axis = one_axis("select", dim, len(self.shape))
        return self[(*[slice(None)] * axis, index)]

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """`length` places of an axis from `start` on; a view.

        >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist()
        [2, 3]
        """
        axis = one_axis("narrow", dim, len(self.shape))
        begin = int(start)
        begin += self.shape[axis] if begin < 0 else 0
        return self.shrink([(begin, begin + length) if at == axis else None for at in range(len(self.shape))])

    def narrow_copy(self, dim: int, start: int, length: int) -> Self:
        """`narrow` with memory of its own.

        >>> Tensor([1, 2, 3, 4]).narrow_copy(0, 1, 2).tolist()
        [2, 3]
        """
        return self._derived(self.narrow(dim, start, length).uop)

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The parts at all places of an axis; views.

        >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).unbind(1)]
        [[1, 3], [2, 4]]
        """
        axis = one_axis("unbind", dim, len(self.shape))
        if not self.shape:
            raise ShapeError("unbind", "a tensor without axes has no parts", about={"tensor": self})
        return tuple([self.select(axis, place) for place in range(self.shape[axis])])

    # --- several parts --------------------------------------------------------------------------------

    def tensor_split(self, indices_or_sections: Any, dim: int = 0) -> tuple[Self, ...]:
        """Parts that begin at these places of an axis, or so many parts of about equal size.

        >>> [part.tolist() for part in Tensor([1, 2, 3, 4, 5]).tensor_split(2)]
        [[1, 2, 3], [4, 5]]
        """
        axis = one_axis("tensor_split", dim, len(self.shape))
        size = self.shape[axis] if self.shape else 0
        given = indices_or_sections.tolist() if hasattr(indices_or_sections, "tolist") else indices_or_sections
        if not self.shape:
            raise ShapeError("tensor_split", "a tensor without axes has no parts", about={"tensor": self})
        if isinstance(given, int):
            if not 0 < given <= max(most(size), _MOST_PARTS):
                raise ShapeError("tensor_split", f"cannot make {given} parts", about={"tensor": self})
            small, larger = divmod(size, given)
            given = [number * small + min(number, larger) for number in range(1, given)]
        cuts = sizes_argument("tensor_split", given)
        bounds = [slice(*pair) for pair in zip([None, *cuts], [*cuts, None], strict=True)]
        return tuple([self[(*[slice(None)] * axis, part)] for part in bounds])

    def hsplit(self, indices_or_sections: Any) -> tuple[Self, ...]:
        """`tensor_split` along the columns: the second axis, or the only one.

        >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).hsplit(2)]
        [[[1], [3]], [[2], [4]]]
        """
        return self._even_split("hsplit", indices_or_sections, int(len(self.shape) > 1), 1)

    def vsplit(self, indices_or_sections: Any) -> tuple[Self, ...]:
        """`tensor_split` along the rows: the first of at least two axes.

        >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).vsplit(2)]
        [[[1, 2]], [[3, 4]]]
        """
        return self._even_split("vsplit", indices_or_sections, 0, 2)

    def dsplit(self, indices_or_sections: Any) -> tuple[Self, ...]:
        """`tensor_split` along the third axis.

        >>> len(Tensor.ones(2, 2, 4).dsplit(2))
        2
        """
        return self._even_split("dsplit", indices_or_sections, 2, 3)

    def _even_split(self, function: str, given: Any, axis: int, least: int) -> tuple[Self, ...]:
        if len(self.shape) < least:
            raise ShapeError(function, f"needs {least} axes, got {self.shape}", about={"tensor": self})
        if isinstance(given, int) and (given < 1 or self.shape[axis] % given):
            raise ShapeError(
                function, f"{self.shape[axis]} does not divide into {given} parts", about={"tensor": self},
                hint="tensor_split makes parts that are not equal",
            )  # fmt: skip
        return self.tensor_split(given, axis)

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """`split` into these sizes.

        >>> [part.tolist() for part in Tensor([1, 2, 3]).split_with_sizes([1, 2])]
        [[1], [2, 3]]
        """
        return self.split(split_sizes, dim)

    def unsafe_split(self, split_size: int, dim: int = 0) -> tuple[Self, ...]:
        """`split`; parts of this library are always safe.

        >>> len(Tensor([1, 2, 3]).unsafe_split(1))
        3
        """
        return self.split(split_size, dim)

    def unsafe_split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """`split_with_sizes`.

        >>> len(Tensor([1, 2, 3]).unsafe_split_with_sizes([1, 2]))
        2
        """
        return self.split(split_sizes, dim)

    def unsafe_chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """`chunk`.

        >>> len(Tensor([1, 2, 3]).unsafe_chunk(2))
        2
        """
        return self.chunk(chunks, dim)

    # --- together ---------------------------------------------------------------------------------------

    def vstack(self, *args: Self) -> Self:
        """Rows below one another: along the first axis, a vector counting as a row.

        >>> Tensor([1, 2]).vstack(Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        return _joined([x.reshape(1, -1) if len(x.shape) < 2 else x for x in _all(self, args)], 0)  # type: ignore[no-any-return]

    def hstack(self, *args: Self) -> Self:
        """Columns beside one another: along the second axis, of vectors along the only one.

        >>> Tensor([1, 2]).hstack(Tensor([3])).tolist()
        [1, 2, 3]
        """
        parts = [x.reshape(1) if not x.shape else x for x in _all(self, args)]
        return _joined(parts, int(len(parts[0].shape) > 1))  # type: ignore[no-any-return]

    def dstack(self, *args: Self) -> Self:
        """Along the third axis; a vector of n counts as (1, n, 1), a matrix gets a third axis of size 1.

        >>> Tensor([1, 2]).dstack(Tensor([3, 4])).tolist()
        [[[1, 3], [2, 4]]]
        """
        parts = [x.reshape(1, -1) if len(x.shape) < 2 else x for x in _all(self, args)]
        return _joined([x.unsqueeze(2) if len(x.shape) == 2 else x for x in parts], 2)  # type: ignore[no-any-return]

    def column_stack(self, *args: Self) -> Self:
        """Along the second axis, a vector counting as a column.

        >>> Tensor([1, 2]).column_stack(Tensor([3, 4])).tolist()
        [[1, 3], [2, 4]]
        """
        return _joined([x.reshape(-1, 1) if len(x.shape) < 2 else x for x in _all(self, args)], 1)  # type: ignore[no-any-return]

    # --- axes -------------------------------------------------------------------------------------------

    def t(self) -> Self:
        """A matrix transposed; fewer axes stay what they are.

        >>> Tensor([[1, 2]]).t().tolist()
        [[1], [2]]
        """
        if len(self.shape) > 2:
            raise ShapeError("t", f"takes at most two axes, got {self.shape}", about={"tensor": self})
        return self.T

    def adjoint(self) -> Self:
        """The last two axes exchanged: the conjugate transpose, as all numbers are real.

        >>> Tensor([[1, 2]]).adjoint().tolist()
        [[1], [2]]
        """
        if len(self.shape) < 2:
            raise ShapeError("adjoint", f"needs two axes, got {self.shape}", about={"tensor": self})
        return self.transpose(-2, -1)

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Self:
        """Axes moved to other places, the others in their order.

        >>> Tensor.ones(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
        """
        rank = len(self.shape)
        pairs = [
            [one_axis("movedim", axis, rank) for axis in (given if isinstance(given, Sequence) else [given])]
            for given in (source, destination)
        ]
        if len({len(part) for part in pairs}) > 1 or any(len(set(part)) < len(part) for part in pairs):
            raise AxisError("movedim", f"from {source} to {destination} is no move of axes", about={"tensor": self})
        placed = dict(zip(pairs[1], pairs[0], strict=True))
        rest = iter([axis for axis in range(rank) if axis not in pairs[0]])
        return self.permute([placed[axis] if axis in placed else next(rest) for axis in range(rank)])

    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Self:
        """`movedim` by its other name.

        >>> Tensor.ones(2, 3, 4).moveaxis(0, -1).shape
        (3, 4, 2)
        """
        return self.movedim(source, destination)

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Self:
        """Turned by `k` right angles in the plane of two axes, from the first towards the second.

        >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        first, second = [one_axis("rot90", axis, len(self.shape)) for axis in dims]
        if first == second or len(self.shape) < 2:
            raise AxisError("rot90", f"a plane has two axes, got {tuple(dims)} of {self.shape}", about={"tensor": self})
        turns = k % 4
        if turns == 2:
            return self.flip(first, second)
        if turns == 0:
            return self._derived(self.uop)
        return self.flip(second).transpose(first, second) if turns == 1 else self.transpose(first, second).flip(second)

    def fliplr(self) -> Self:
        """The columns reversed.

        >>> Tensor([[1, 2]]).fliplr().tolist()
        [[2, 1]]
        """
        if len(self.shape) < 2:
            raise ShapeError("fliplr", f"needs two axes, got {self.shape}", about={"tensor": self})
        return self.flip(1)

    def flipud(self) -> Self:
        """The rows reversed.

        >>> Tensor([1, 2]).flipud().tolist()
        [2, 1]
        """
        if not self.shape:
            raise ShapeError("flipud", "needs an axis", about={"tensor": self})
        return self.flip(0)

    def ravel(self) -> Self:
        """All elements along one axis.

        >>> Tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        return self.flatten()

    def tile(self, *dims: Any) -> Self:
        """The whole tensor repeated along each axis; fewer counts are for the last axes.

        >>> Tensor([[1, 2]]).tile(2).tolist()
        [[1, 2, 1, 2]]
        """
        counts = sizes_argument("tile", dims[0], dims[1:]) if dims else ()
        return self.repeat((1,) * (len(self.shape) - len(counts)) + counts)

    # --- the shape of another -----------------------------------------------------------------------------

    def broadcast_to(self, shape: Any, *args: Any) -> Self:
        """`expand` by its other name.

        >>> Tensor([1, 2]).broadcast_to((2, 2)).tolist()
        [[1, 2], [1, 2]]
        """
        return self.expand(shape, *args)

    def expand_as(self, other: Self) -> Self:
        """Expanded to the shape of another.

        >>> Tensor([1]).expand_as(Tensor([1, 2])).tolist()
        [1, 1]
        """
        return self.expand(other.shape)

    def reshape_as(self, other: Self) -> Self:
        """Reshaped to the shape of another.

        >>> Tensor([1, 2]).reshape_as(Tensor([[0], [0]])).tolist()
        [[1], [2]]
        """
        return self.reshape(other.shape)

    def view_as(self, other: Self) -> Self:
        """`reshape_as` by its other name.

        >>> Tensor([1, 2]).view_as(Tensor([[0], [0]])).tolist()
        [[1], [2]]
        """
        return self.reshape(other.shape)

    # --- diagonals --------------------------------------------------------------------------------------

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Self:
        """Zeros with the last axis along a diagonal of two new axes.

        >>> Tensor([1, 2]).diag_embed().tolist()
        [[1, 0], [0, 2]]
        """
        rank = len(self.shape) + 1
        first, second = [one_axis("diag_embed", axis, rank) for axis in (dim1, dim2)]
        if first == second or not self.shape:
            raise AxisError("diag_embed", f"needs two different axes, got {dim1} and {dim2}", about={"tensor": self})
        size, lead = self.shape[-1], self.shape[:-1]
        row, column = max(-offset, 0), max(offset, 0)
        x = self.unsqueeze(-1).pad_to((*lead, size, size + 1)).flatten(-2)
        x = x.shrink_to((*lead, size * size)) if size else x
        x = x.reshape((*lead, size, size)).pad((column, row, row, column))
        return x.movedim((-2, -1), (first, second))

    def diagflat(self, offset: int = 0) -> Self:
        """All elements along a diagonal of a square matrix of zeros.

        >>> Tensor([[1, 2]]).diagflat().tolist()
        [[1, 0], [0, 2]]
        """
        return self.flatten().diag_embed(offset)

    # --- a part replaced --------------------------------------------------------------------------------

    def _with(self, function: str, view: Any, src: Any) -> Self:
        """A copy in which the view that a function gives holds `src`."""
        copy = self._derived(UOp(ops.COPY, self.dtype, (self.uop,), self.device))
        place = view(copy)
        source = self._tensor(function, src)
        if source.shape != place.shape:
            raise ShapeError(
                function,
                f"the place has shape {place.shape}, src {source.shape}",
                about={"tensor": self, "src": source},
            )
        if 0 not in place.shape:
            place.assign(place._derived(expanded(source.uop.cast(self.dtype), place.shape)))
        return copy

    def select_scatter(self, src: Any, dim: int, index: int) -> Self:
        """This with `src` as the part that `select` gives.

        >>> Tensor([[1, 2], [3, 4]]).select_scatter(Tensor([7, 8]), 0, 1).tolist()
        [[1, 2], [7, 8]]
        """
        return self._with("select_scatter", lambda copy: copy.select(dim, index), src)

    def slice_scatter(
        self, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Self:
        """This with `src` in the slice from `start` to `end` of an axis.

        >>> Tensor([1, 2, 3, 4]).slice_scatter(Tensor([7, 8]), 0, 0, 4, 2).tolist()
        [7, 2, 8, 4]
        """
        axis = one_axis("slice_scatter", dim, len(self.shape))
        part = (*[slice(None)] * axis, slice(start, end, step))
        return self._with("slice_scatter", lambda copy: copy[part], src)

    def diagonal_scatter(self, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """This with `src` on a diagonal.

        >>> Tensor([[1, 2], [3, 4]]).diagonal_scatter(Tensor([7, 8])).tolist()
        [[7, 2], [3, 8]]
        """
        return self._with("diagonal_scatter", lambda copy: copy.diagonal(offset, dim1, dim2), src)

    # --- by strides -------------------------------------------------------------------------------------

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Self:
        """The elements at offset + sum(i * stride) of the flattened tensor, in a shape; one may occur several times.

        Elements are in row-major order whatever views the tensor was made by; IndexRangeError beyond them.

        >>> Tensor([1, 2, 3, 4]).as_strided((2, 2), (1, 2)).tolist()
        [[1, 3], [2, 4]]
        """
        return self.take(self._strided("as_strided", tuple(size), stride, storage_offset))

    def as_strided_scatter(self, src: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Self:
        """This with `src` in the elements that `as_strided` names.

        >>> Tensor([1, 2, 3, 4]).as_strided_scatter(Tensor([7, 8]), (2,), (2,)).tolist()
        [7, 2, 8, 4]
        """
        places = self._strided("as_strided_scatter", tuple(size), stride, storage_offset).flatten()
        source: Any = self._tensor("as_strided_scatter", src).expand(tuple(size)).flatten()
        return self.flatten().scatter(0, places, source).reshape(self.shape)

    def _strided(self, function: str, size: Shape, stride: Sequence[int], offset: int) -> Self:
        """The places in the flattened tensor."""
        if len(size) != len(stride) or min((*size, *stride, offset), default=0) < 0:
            raise ShapeError(function, f"sizes {size} and strides {tuple(stride)} do not fit", about={"tensor": self})
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if 0 not in size and last >= self.numel():
            raise ShapeError(function, f"element {last} lies beyond {self.numel()}", about={"tensor": self})
        places: Any = type(self).full((1,) * len(size), offset, dtype="int32", device=self.device)
        for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
            along: Any = type(self).arange(n, device=self.device)
            places = places + (along * step).reshape([n if at == axis else 1 for at in range(len(size))])
        return places  # type: ignore[no-any-return]


def _joined(parts: list[Any], axis: int) -> Any:
    return parts[0].cat(*parts[1:], dim=axis)


def _all(first: Any, rest: tuple[Any, ...]) -> list[Any]:
    """Tensors given one by one or as a list."""
    return [*first, *rest] if isinstance(first, list | tuple) else [first, *rest]
