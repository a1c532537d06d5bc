"""Losses, and classes as vectors.

`Y` holds class numbers.  A number outside the classes matches none, so it adds nothing (B085 raises
under CHECK=bounds).  `reduction` is "mean", "sum" or "none".
"""

from __future__ import annotations

from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError, ShapeError
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.activations import ActivationMethods
from lazulite.tensor.base import expanded
from lazulite.tensor.create import CreateMethods, shape_of
from lazulite.tensor.picking import refuse_outside
from lazulite.tensor.products import ProductMethods


class LossMethods(ActivationMethods, ProductMethods, CreateMethods):
    """Losses."""

    __slots__ = ()

    def one_hot(self, num_classes: int) -> Self:
        """Class numbers as int32 vectors with a single 1, along a new last axis.

        >>> Tensor([0, 2]).one_hot(3).tolist()
        [[1, 0, 0], [0, 0, 1]]
        """
        (count,) = shape_of("one_hot", (num_classes,))
        return self._derived(self._matches("one_hot", count, len(self.shape)).cast(dtypes.int32))

    def _matches(self, function: str, num_classes: int, axis: int) -> UOp:
        """Where the class along a new axis is this one's number."""
        if self.dtype.is_float:
            raise DTypeError(function, f"class numbers are integers, got {self.dtype.name}", about={"classes": self})
        shape = (*self.shape[:axis], num_classes, *self.shape[axis:])
        classes = UOp(ops.IOTA, dtypes.int32, (), num_classes)
        column = UOp(ops.RESHAPE, classes.dtype, (classes,), (num_classes,) + (1,) * (len(self.shape) - axis))
        own = UOp(ops.RESHAPE, self.dtype, (self.uop,), (*self.shape[:axis], 1, *self.shape[axis:]))
        wide = dtypes.promote(self.dtype, dtypes.int32)
        wide = wide if wide.is_int else dtypes.int64
        return expanded(own.cast(wide), shape).eq(expanded(column.cast(wide), shape))

    def _class_axis(self, function: str) -> int:
        """The axis of the classes: the second one, the only one of a vector."""
        if not self.shape:
            raise ShapeError(function, "scores have an axis of classes, got a single number", about={"scores": self})
        return min(1, len(self.shape) - 1)

    def _counted(self, ignored: int) -> Self:
        """Which of these class numbers count: all but one, which their type need not hold."""
        return self.cast(types.promote(self.dtype, dtypes.int32)).ne(ignored)

    def _of_class(self, function: str, classes: Self, axis: int, ignored: int | None = None) -> Self:
        """The element of each class number along an axis, which goes; 0 for a number outside."""
        refuse_outside(function, classes, 0, self.shape[axis], ignored)
        expected = self.shape[:axis] + self.shape[axis + 1 :]
        if classes.shape != expected:
            raise ShapeError(
                function, f"{self.shape} needs class numbers of shape {expected}, got {classes.shape}",
                about={"scores": self, "classes": classes},
            )  # fmt: skip
        chosen = self._tensor(function, classes)._matches(function, self.shape[axis], axis)
        return self._derived(chosen.where(self.uop, UOp.const(self.dtype, 0))).sum(axis)

    def _reduce_loss(self, function: str, reduction: str, weight: Self | None = None) -> Self:
        if reduction == "none":
            return self
        if reduction == "sum":
            return self.sum()
        if reduction != "mean":
            raise ArgumentError(function, f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
        return self.mean() if weight is None else self.sum() / weight.sum()

    def nll_loss(
        self, Y: Any, weight: Self | None = None, ignore_index: int | None = None, reduction: str = "mean"
    ) -> Self:
        """The negative log-probability of each class; classes along axis 1 (the only axis of a vector).

        `weight` weighs each class, in the sum and in the mean; rows of class `ignore_index` count nothing.

        >>> Tensor([[-1.0, -2.0]]).nll_loss(Tensor([1])).item()
        2.0
        """
        classes = self._tensor("nll_loss", Y)
        axis = self._class_axis("nll_loss")
        chosen = -self._of_class("nll_loss", classes, axis, ignore_index)
        if weight is None and ignore_index is None:
            return chosen._reduce_loss("nll_loss", reduction)
        counted = chosen.ones_like() if weight is None else self._class_weight(weight, classes, axis, ignore_index)
        if ignore_index is not None:
            counted = classes._counted(ignore_index).where(counted, 0)
        return counted.ne(0).where(chosen * counted, 0)._reduce_loss("nll_loss", reduction, counted)

    def _class_weight(self, weight: Self, classes: Self, axis: int, ignored: int | None) -> Self:
        """The weight of each class number, in the shape of the class numbers."""
        column = weight.reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        return column.expand(self.shape)._of_class("nll_loss", classes, axis, ignored)

    def sparse_categorical_crossentropy(
        self, Y: Any, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Self:
        """The cross entropy of scores along the last axis and class numbers; rows of `ignore_index` count nothing.

        >>> round(Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([1])).item(), 4)
        0.6931
        """
        function = "sparse_categorical_crossentropy"
        classes, axis = self._tensor(function, Y), max(self._class_axis(function), len(self.shape) - 1)
        logs = self.log_softmax(axis)
        loss = -logs._of_class(function, classes, axis, ignore_index) * (1 - label_smoothing)
        if label_smoothing:
            loss = loss - logs.mean(axis) * label_smoothing
        counted = classes._counted(ignore_index)
        return counted.where(loss, 0)._reduce_loss(function, reduction, counted)

    def cross_entropy(
        self, Y: Any, reduction: str = "mean", label_smoothing: float = 0.0, weight: Self | None = None,
        ignore_index: int = -100,
    ) -> Self:  # fmt: skip
        """The cross entropy of scores along axis 1 with class numbers, or with probabilities of the same shape.

        `weight` weighs each class.  Class `ignore_index` counts nothing (B083).  `label_smoothing` is the share of
        the even distribution in the target (Szegedy et al.).

        >>> round(Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1])).item(), 4)
        0.6931
        """
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError("cross_entropy", f"label_smoothing is from 0 to 1, got {label_smoothing}")
        targets = self._tensor("cross_entropy", Y)
        axis = self._class_axis("cross_entropy")
        logs = self.log_softmax(axis)
        column = None if weight is None else weight.reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        smooth = None
        if label_smoothing:
            smooth = (logs if column is None else logs * column).sum(axis) * (label_smoothing / self.shape[axis])
        if targets.shape == self.shape:
            terms = targets * logs if column is None else targets * logs * column
            loss = -terms.sum(axis) * (1 - label_smoothing)
            return (loss if smooth is None else loss - smooth)._reduce_loss("cross_entropy", reduction)
        loss = -logs._of_class("cross_entropy", targets, axis, ignore_index)
        counts = counted = targets._counted(ignore_index)
        if weight is not None:
            share = self._class_weight(weight, targets, axis, ignore_index)
            loss, counted = loss * share, counts.where(share, 0)
        loss = loss * (1 - label_smoothing)
        loss = counts.where(loss if smooth is None else loss - smooth, 0)
        return loss._reduce_loss("cross_entropy", reduction, counted)

    def binary_crossentropy(self, Y: Any, reduction: str = "mean") -> Self:
        """The cross entropy of probabilities with targets between 0 and 1.

        >>> round(Tensor([0.5]).binary_crossentropy(Tensor([1.0])).item(), 4)
        0.6931
        """
        targets = self._tensor("binary_crossentropy", Y)
        loss = -(targets * self.log() + (1 - targets) * (1 - self).log())
        return loss._reduce_loss("binary_crossentropy", reduction)

    def binary_crossentropy_logits(self, Y: Any, reduction: str = "mean", pos_weight: Self | None = None) -> Self:
        """The cross entropy of sigmoid scores with targets between 0 and 1, without overflow.

        `pos_weight` weighs the targets that are 1, in the last axes.

        >>> Tensor([1000.0]).binary_crossentropy_logits(Tensor([1.0])).item()
        0.0
        """
        targets = self._tensor("binary_crossentropy_logits", Y)
        if pos_weight is None:
            loss = self.softplus() - targets * self
        else:
            loss = (1 - targets) * self + ((pos_weight - 1) * targets + 1) * (-self).softplus()
        return loss._reduce_loss("binary_crossentropy_logits", reduction)
