"""What networks are made of beyond products: attention, transposed convolution, unit vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from lazulite.autograd.rules import spread
from lazulite.base.errors import ShapeError
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import detached, expanded, float_dtype, one_axis, wide_dtype
from lazulite.tensor.norms import NormMethods
from lazulite.tensor.patterns import PatternMethods
from lazulite.tensor.pooling import PoolMethods
from lazulite.tensor.products import each_axis
from lazulite.tensor.random import RandomMethods
from lazulite.tensor.reduce import reduced
from lazulite.tensor.resample import ResampleMethods


class NeuralMethods(NormMethods, PatternMethods, PoolMethods, ResampleMethods, RandomMethods):
    """Attention, transposed convolution, unit vectors."""

    __slots__ = ()

    def scaled_dot_product_attention(
        self, key: Self, value: Self, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
        enable_gqa: bool = False, scale: float | None = None,
    ) -> Self:  # fmt: skip
        """softmax(self @ key.T * scale) @ value, for (.., queries, size), (.., keys, size), (.., keys, width).

        A mask of bools says which keys count, one of floats is added to the scores; what a key holds that is
        masked out (by false or -inf) has no influence (B082).  A query without any key gives zeros.  With
        `is_causal` key j counts for queries j and later.  With `enable_gqa` several heads (axis -3) share a key.
        `scale` is 1 / sqrt(size) unless given.

        >>> q = Tensor([[[1.0, 0.0]]])
        >>> q.scaled_dot_product_attention(q, Tensor([[[5.0, 7.0]]])).tolist()
        [[[5.0, 7.0]]]
        """
        if enable_gqa:
            if any(len(part.shape) < 3 or self.shape[-3] % max(part.shape[-3], 1) for part in (self, key, value)):
                raise ShapeError(
                    "scaled_dot_product_attention",
                    f"the heads of {key.shape} and {value.shape} do not divide those of {self.shape}",
                    about={"query": self, "key": key, "value": value}, hint="heads are axis -3",
                )  # fmt: skip
            key, value = [part.repeat_interleave(self.shape[-3] // part.shape[-3], -3) for part in (key, value)]
        if any(len(part.shape) < 2 or not part.shape[-1] for part in (self, key)):
            raise ShapeError(
                "scaled_dot_product_attention", f"needs (.., positions, features), got {self.shape} and {key.shape}",
                about={"query": self, "key": key, "value": value},
            )  # fmt: skip
        wide = wide_dtype(self.dtype)
        scale = 1 / math.sqrt(self.shape[-1]) if scale is None else scale
        scores = self._derived(self.uop.cast(wide)).matmul(key.transpose(-2, -1)) * scale
        scores = scores._masked(attn_mask, is_causal)
        axes = (len(scores.shape) - 1,)
        top = detached(reduced(ops.MAX, scores.uop, axes))
        top = (top > -math.inf).where(top, UOp.const(top.dtype, 0))
        grown = UOp.apply(ops.EXP, scores.uop - spread(top, scores.shape))
        total = reduced(ops.ADD, grown, axes)
        total = total.eq(0).where(UOp.const(total.dtype, 1), total)
        weights = self._derived(grown.cast(float_dtype(self.dtype))).dropout(dropout_p)
        mixed = weights.matmul(value, dtype=wide).uop
        result = types.promote(weights.dtype, value.dtype)
        return self._derived((mixed / spread(total, mixed.shape)).cast(result))

    def _masked(self, mask: Any, causal: bool) -> Self:
        """These scores with -inf where a key does not count."""
        nothing, scores = UOp.const(self.dtype, -math.inf), self
        if mask is not None:
            given = self._tensor("scaled_dot_product_attention", mask)
            if given.dtype is dtypes.bool:
                scores = given.where(scores, -math.inf)
            else:
                scores = given.ne(-math.inf).where(scores + given, -math.inf)
        if causal:
            allowed = self._derived(expanded(UOp.const(dtypes.bool, True), self.shape[-2:])).tril()
            scores = scores._derived(expanded(allowed.uop, scores.shape).where(scores.uop, nothing))
        return scores

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """The value over its p-norm along an axis; a norm below `eps` counts as `eps`.

        >>> Tensor([[3.0, 4.0]]).normalize().tolist()
        [[0.6000000238418579, 0.800000011920929]]
        """
        wide = self._derived(self.uop.cast(wide_dtype(self.dtype)))
        norm = wide.vector_norm(p, one_axis("normalize", dim, len(self.shape)), keepdim=True)
        return (wide / norm.maximum(eps)).cast(float_dtype(self.dtype))

    def conv_transpose2d(
        self, weight: Self, bias: Self | None = None, groups: int = 1, stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0,
    ) -> Self:  # fmt: skip
        """The gradient of `conv2d` as a function: each element spreads the kernel (B098).

        `weight` is (channels, outputs / groups, kernel ..).  An axis of size n becomes (n - 1) * stride -
        2 * padding + dilation * (kernel - 1) + 1 + output_padding.

        >>> Tensor([[[[1.0, 2.0]]]]).conv_transpose2d(Tensor.ones(1, 1, 1, 2)).tolist()
        [[[[1.0, 3.0, 2.0]]]]
        """
        function, kernel = "conv_transpose2d", weight.shape[2:]
        rank = len(kernel)
        if len(self.shape) != rank + 2 or weight.shape[0] != self.shape[1] or groups < 1 or self.shape[1] % groups:
            raise ShapeError(
                function, f"the weight {weight.shape} does not fit the input {self.shape} in {groups} groups",
                about={"input": self, "weight": weight},
                rule="The input is (batch, channels, ..), the weight (channels, outputs / groups, kernel ..).",
            )  # fmt: skip
        steps, gaps, margins, extras = [
            each_axis(function, given, rank) for given in (stride, dilation, padding, output_padding)
        ]
        x = self
        for axis, (size, step, gap, margin, extra) in enumerate(
            zip(kernel, steps, gaps, margins, extras, strict=True), 2
        ):
            around = gap * (size - 1) - margin
            x = x._stretched(axis, step)._widened(axis, around, around + extra)
        turned = weight.flip(tuple(range(2, 2 + rank))).reshape((groups, -1, *weight.shape[1:])).transpose(1, 2)
        return x.conv2d(turned.reshape((-1, weight.shape[0] // groups, *kernel)), bias, groups, 1, gaps)

    def _stretched(self, axis: int, step: int) -> Self:
        """Zeros put between the elements of an axis."""
        size = self.shape[axis]
        if step == 1 or not size:
            return self
        apart = self.unsqueeze(axis + 1)._widened(axis + 1, 0, step - 1)
        return apart.flatten(axis, axis + 1)._widened(axis, 0, 1 - step)

    def _widened(self, axis: int, before: int, after: int) -> Self:
        """Zeros put around an axis; a negative number cuts."""
        size = self.shape[axis]
        others = [(0, n) for n in self.shape]
        others[axis] = (max(-before, 0), size - max(-after, 0))
        around = [(0, 0)] * len(self.shape)
        around[axis] = (max(before, 0), max(after, 0))
        return self.shrink(others).pad(around)
