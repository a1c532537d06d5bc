"""What this thread is doing on behalf of a function that is traced rather than just called.

While `jit` captures a function, `vmap` makes it one for many examples, or `to_onnx` a model, no value of a tensor
may be looked at: the function would go on by it, and a replay, another example, or the model, would not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lazulite.base.errors import CaptureError
from lazulite.ir.uop import UOp


class _Thread(threading.local):
    function = ""
    rule = ""
    depth = 0
    examples: tuple[UOp, ...] = ()
    constant = False


THREAD = _Thread()
"""`function` is the name of the function whose tensors must not be looked at, or empty, and `rule` says why;
`depth` counts the transforms (`grad`, `vmap`, ..) that this thread is inside of, within which nothing is captured;
`examples` are the numbers, of rank 0, of the examples that random draws differ for; `constant` says that nothing
made now passes a gradient."""

_CAPTURED = "It runs once or twice; after that its kernels run without it, whatever the values are."
BATCHED = "It runs once for all examples, so no tensor in it has the values of one of them."
EXPORTED = "It runs once; the model that is made of it computes the same for any values of its inputs."
_DOINGS = {
    _CAPTURED: "is captured by jit, and a captured function must not look at values",
    BATCHED: "is batched by vmap, and must not look at values",
    EXPORTED: "is exported by to_onnx, and must not look at values",
}


@contextmanager
def traced(function: str, rule: str = _CAPTURED) -> Iterator[None]:
    """This thread runs a function of this name."""
    before = THREAD.function, THREAD.rule
    THREAD.function, THREAD.rule = function, rule
    try:
        yield
    finally:
        THREAD.function, THREAD.rule = before


@contextmanager
def transformed() -> Iterator[int]:
    """This thread runs a function that is transformed; gives how many transforms are around it."""
    THREAD.depth += 1
    try:
        yield THREAD.depth - 1
    finally:
        THREAD.depth -= 1


def refuse_reading(method: str, tensor: object) -> None:
    """A CaptureError where the thread is inside of a function whose values must not be looked at."""
    if THREAD.function:
        raise CaptureError(
            method, f"{THREAD.function} {_DOINGS[THREAD.rule]}", about={"tensor": tensor}, rule=THREAD.rule,
            hint="return the tensor and look at it outside, or choose with where(...) in the place of an if",
        )  # fmt: skip
