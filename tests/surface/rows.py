"""Rows of the differential test: one public name, what it is compared with, and samples.

A row belongs to a `space` (`tests/surface/spaces.py`) and counts for the name when no sample gives a wrong
result and at least `ENOUGH` agree: in shape, in the kind of type, in value within the stated bound, and, where
the reference has a gradient, in that too.  Families of rows are modules `rows_*.py` with a list `ROWS`; `row`
writes one where both sides are called by the same name, or by given functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from lazulite import ArgumentError, DTypeError, Tensor
from surface.values import as_numpy, as_ours, as_torch, is_complex, leaves, tensors_in

ENOUGH = 5
MOST = 6
"""Samples that are compared, where there are so many."""
GRADIENTS = 2
"""Samples whose gradients are compared."""
RELATIVE, ABSOLUTE = 1e-5, 2e-6
"""How far a result may be off: of itself, and of the largest finite element of the result."""
TINY = 5e-8
"""What is no more than this may as well be zero."""
REFUSALS = (DTypeError, ArgumentError, OverflowError)
"""What a call that names an option we do not have raises."""


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """How one name is tested."""

    space: str
    name: str
    samples: Callable[[], Iterable[Sample]]
    ours: Callable[..., Any]
    reference: Callable[..., Any]
    oracle: str = "torch"
    """The library whose arrays the reference takes: ``torch`` or ``numpy``."""
    gradient: bool = True
    relative: float = RELATIVE
    absolute: float = ABSOLUTE
    alone: bool = False
    """Whether this row keeps the automatic one away."""


@dataclass
class Outcome:
    """What became of the samples of a row."""

    passed: int = 0
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def row(
    name: str,
    *samples: Any,
    ours: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    space: str = "tensor",
    **options: Any,
) -> Row:
    """A row from samples written out: each is a `Sample`, a tuple of arguments, or one argument.

    Without `ours` and `reference` the method (function, for other spaces) of that name is called on both sides.
    """
    from surface.spaces import SPACES

    given = [s if isinstance(s, Sample) else Sample(s if isinstance(s, tuple) else (s,)) for s in samples]
    own = ours or (lambda *args, **kwargs: SPACES[space].call(name, *args, **kwargs))
    theirs = reference or (lambda *args, **kwargs: SPACES[space].call_reference(name, *args, **kwargs))
    options.setdefault("oracle", SPACES[space].oracle)
    return Row(space, name, lambda: given, own, theirs, **options)


def claim(name: str, *claims: Callable[[], Any], space: str = "tensor") -> Row:
    """A row for what has no reference, such as random draws: each claim is called and gives true.  It stands alone."""
    samples = [Sample((each,)) for each in claims]
    return Row(space, name, lambda: samples, lambda c: bool(c()), lambda c: True, gradient=False, alone=True)


# --- comparing -----------------------------------------------------------------------------------


def outcome(tested: Row) -> Outcome:
    """Run the samples of a row until enough have passed."""
    result, gradients = Outcome(), 0
    for sample in tested.samples():
        if result.passed >= MOST:
            break
        if is_complex(sample.args) or is_complex(sample.kwargs):
            continue
        compared = _compare(tested, sample, result, gradients < GRADIENTS)
        gradients += compared
    return result


def _compare(tested: Row, sample: Sample, result: Outcome, wants_gradient: bool) -> bool:
    """Note how one sample went; whether its gradients were compared."""
    convert = as_torch if tested.oracle == "torch" else as_numpy
    theirs = (convert(sample.args), convert(sample.kwargs))
    if tested.oracle == "torch" and tested.gradient and wants_gradient:
        for leaf in tensors_in(theirs, torch.Tensor):
            if leaf.is_floating_point() and leaf.is_leaf:
                leaf.requires_grad_()
    mine = (as_ours(sample.args), as_ours(sample.kwargs))
    try:
        expected = tested.reference(*theirs[0], **theirs[1])
        wanted = leaves(expected)
    except Exception:  # what the reference refuses is no sample
        return False
    if any(is_complex(leaf) for leaf in wanted):
        return False
    try:
        got = tested.ours(*mine[0], **mine[1])
        problem = difference(leaves(got), wanted, tested)
        compared = False
        if not problem and tested.oracle == "torch" and tested.gradient and wants_gradient:
            compared, problem = _gradient_difference(mine, theirs, tested, expected)
    except REFUSALS as error:
        result.refused.append(str(error).partition("\n")[0])
        return False
    except Exception as error:
        compared, problem = False, f"{type(error).__name__}: {error}".partition("\n")[0]
    if problem:
        result.problems.append(f"{_text(sample)}: {problem}")
    else:
        result.passed += 1
    return compared


def difference(got: Sequence[Any], wanted: Sequence[Any], tested: Row) -> str:
    """In which way results differ, or nothing."""
    if len(got) != len(wanted):
        return f"{len(got)} results instead of {len(wanted)}"
    for own, other in zip(got, wanted, strict=True):
        if not isinstance(other, np.ndarray):
            if isinstance(own, np.ndarray) and own.shape == () and isinstance(other, bool | int | float):
                own = own.item()
            same = own == other or (own != own and other != other)
            if isinstance(other, float) and isinstance(own, int | float):
                same = same or abs(own - other) <= tested.relative * abs(other) + tested.absolute
            if not same:
                return f"{own!r} instead of {other!r}"
            continue
        problem = _array_difference(np.asarray(own), other, tested)
        if problem:
            return problem
    return ""


def _array_difference(own: np.ndarray, other: np.ndarray, tested: Row) -> str:
    if own.shape != other.shape:
        return f"shape {own.shape} instead of {other.shape}"
    kinds = ["i" if array.dtype.kind == "u" else array.dtype.kind for array in (own, other)]
    if kinds[0] != kinds[1]:
        return f"{own.dtype} instead of {other.dtype}"
    if kinds[0] != "f":
        same = np.array_equal(own, other)
    else:
        narrow = other.dtype == np.float16
        own, other = own.astype(np.float64), other.astype(np.float64)
        size = np.max(np.abs(other), where=np.isfinite(other), initial=0.0)
        loose = 100 if narrow else 1
        same = np.allclose(
            own, other, rtol=tested.relative * loose, atol=tested.absolute * loose * size + TINY, equal_nan=True
        )
    return "" if same else f"{_short(own)} instead of {_short(other)}"


def _gradient_difference(mine: Any, theirs: Any, tested: Row, expected: Any) -> tuple[bool, str]:
    """Whether gradients could be compared, and how they differ; ours are taken from a call of their own."""
    outputs = [out for out in tensors_in(expected, torch.Tensor) if out.requires_grad]
    places = [n for n, out in enumerate(tensors_in(expected, torch.Tensor)) if out.requires_grad]
    inputs = list(tensors_in(theirs, torch.Tensor))
    own_inputs = list(tensors_in(mine, Tensor))
    wanted = [n for n, leaf in enumerate(inputs) if leaf.requires_grad]
    if not outputs or not wanted:
        return False, ""
    own_outputs = [list(tensors_in(tested.ours(*mine[0], **mine[1]), Tensor))[place] for place in places]
    weights = [np.cos(np.arange(out.numel(), dtype=np.float32)).reshape(tuple(out.shape)) for out in outputs]
    total = sum((out * torch.from_numpy(w)).sum() for out, w in zip(outputs, weights, strict=True))
    try:
        reached = torch.autograd.grad(total, [inputs[n] for n in wanted], allow_unused=True)
    except RuntimeError:  # the reference has no gradient here
        return False, ""
    own_total = sum(((out * Tensor(w)).sum() for out, w in zip(own_outputs, weights, strict=True)), start=Tensor(0.0))
    for n, slope in zip(wanted, reached, strict=True):
        own = own_total.gradient(own_inputs[n])[0].numpy() if slope is not None else None
        if own is None or slope.numel() == 0:
            continue
        loose = Row("", "", tuple, bool, bool, relative=20 * tested.relative, absolute=20 * tested.absolute)
        problem = _array_difference(own, slope.numpy(force=True), loose)
        if problem:
            return True, f"gradient {problem}"
    return True, ""


def _short(array: np.ndarray) -> str:
    return np.array2string(array, precision=7, threshold=12).replace("\n", "")


def _text(sample: Sample) -> str:
    parts = []
    for part in (*sample.args, *sample.kwargs.items()):
        shown = part
        with contextlib.suppress(Exception):
            shown = f"{part.dtype}{tuple(part.shape)}" if hasattr(part, "shape") else part
        parts.append(f"{shown!s:.60}")
    return ", ".join(parts)
