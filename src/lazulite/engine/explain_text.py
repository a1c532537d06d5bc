"""How an explanation reads: what `str()` of an `Explanation` and of its kernels gives.

Takes the records of `engine/explain.py`, gives text for somebody who has never seen a compiler: work
in plain units, every schedule step with what it means, and the user's line wherever there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lazulite.base.terminal import columns, size_text
from lazulite.ir import ops
from lazulite.ir.spelling import ATOM, Expression, express
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel import steps
from lazulite.pipeline import PIPELINE

if TYPE_CHECKING:
    from lazulite.engine.explain import Explanation, KernelReport, Memory, Reason

_LABEL = 10
_LONGEST_PART = 60
_LEAVES = {
    ops.RANGE: "r",
    ops.PARAM: "p",
    ops.SCALAR: "s",
    ops.CARRY: "state",
    ops.FINAL: "state",
    ops.SCRATCH: "scratch",
}


def explanation_text(explanation: Explanation, first: int = 0) -> str:
    """The whole explanation; its kernels are numbered from `first`."""
    blocks = [_summary(explanation)]
    blocks += [f"kernel {first + n}  {kernel_text(kernel, first)}" for n, kernel in enumerate(explanation.kernels)]
    if explanation.kernels:
        stages = " -> ".join(stage.name for stage in PIPELINE)
        blocks.append(f"Stages of each kernel: schedule.kernel -> {stages}")
    return "\n\n".join(blocks)


def _summary(explanation: Explanation) -> str:
    kernels = explanation.kernels
    lines = []
    if kernels:
        count = "1 kernel runs" if len(kernels) == 1 else f"{len(kernels)} kernels run, in this order"
        work = f"{count_text(sum(k.ops for k in kernels))} operations, {size_text(sum(k.bytes for k in kernels))} moved"
        lines.append(f"{count}: {work}; intermediates need {size_text(explanation.arena)}.")
    lines += [f"No kernel: {text}." for text in explanation.constants]
    return "\n".join(lines) or "Nothing has to run: the value is in memory already, or is one constant."


def kernel_text(kernel: KernelReport, first: int = 0) -> str:
    """One kernel: its name and line, its work, its memory, the reasons, the steps.

    `first` is the number of the first kernel of its realize.
    """
    title = f"{kernel.name}   on {kernel.device}"
    if kernel.origin is not None:
        title += f"   {kernel.line}   {kernel.origin.text}".rstrip()
    rows = [("work", f"{count_text(kernel.ops)} operations, {size_text(kernel.bytes)} read or written")]
    rows += [("reads", memory_text(memory, first)) for memory in kernel.reads]
    rows += [("writes", memory_text(memory, first)) for memory in kernel.writes]
    rows += _reason_rows(kernel.reasons)
    rows += _step_rows(kernel)
    return "\n".join([title, *[f"  {label.ljust(_LABEL)}  {text}" for label, text in _unrepeated(rows)]])


def count_text(count: int) -> str:
    """A number of operations in words.

    >>> count_text(950), count_text(2_500_000)
    ('950', '2.5 million')
    """
    for size, word in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return str(count)


def memory_text(memory: Memory, first: int = 0) -> str:
    """What memory is, its size, and for an intermediate which kernels share it."""
    users = ", ".join(str(first + number) for number in memory.kernels)
    return f"{memory.what}, {size_text(memory.nbytes)}{f', an intermediate of kernels {users}' if users else ''}"


def _unrepeated(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """A label only at the first of the rows that have it."""
    before = ["", *[label for label, _ in rows]]
    return [("" if label == previous else label, text) for (label, text), previous in zip(rows, before, strict=False)]


def _reason_rows(reasons: Sequence[Reason]) -> list[tuple[str, str]]:
    """The decisions, those of one line and one reason together."""
    together: dict[tuple[str, str, str], dict[str, int]] = {}
    for reason in reasons:
        names = together.setdefault((reason.kind, reason.line, reason.reason), {})
        names[reason.op] = names.get(reason.op, 0) + 1
    return [
        (kind, f"{_names(names)}{f' ({line})' if line else ''}: {why}")
        for (kind, line, why), names in sorted(together.items(), key=lambda item: item[0][0] != "stored")
    ]


def _names(counts: dict[str, int]) -> str:
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in counts.items())


# --- steps -----------------------------------------------------------------------------------------


def _step_rows(kernel: KernelReport) -> list[tuple[str, str]]:
    if kernel.sink is None:
        return [("steps", "none: memory is copied from one device to the other")]
    if kernel.target is None:
        return [("steps", f"none: {kernel.device} runs the kernel as it is written")]
    if not kernel.schedule:
        return [("steps", "none: plain loops are good enough for so little work, or OPT=0 asks for them")]
    lines = columns((steps.text((step,)), meaning(step)) for step in kernel.schedule)
    return [("steps", line) for line in lines]


def meaning(step: steps.Step) -> str:
    """What a schedule step does, in a sentence."""
    if isinstance(step, steps.Split):
        name = steps.name_text(step.range)
        return f"loop {name} becomes {name}.0 around {name}.1, which has {step.factor} turns"
    if isinstance(step, steps.Partition):
        name = steps.name_text(step.range)
        return f"the first {step.at} turns of loop {name} become {name}.0, the rest {name}.1"
    if isinstance(step, steps.Reorder):
        return "from the outermost to the innermost"
    if isinstance(step, steps.Stage):
        return f"argument {step.slot} is first copied to where it can be read in order"
    if isinstance(step, steps.MatrixUnit):
        return "a matrix unit sums the products of tiles with these rows, columns and depth"
    if isinstance(step, steps.Block):
        name = steps.name_text(step.range)
        return f"each statement runs through {step.factor} turns of loop {name}, its {name}.1, before the next begins"
    if isinstance(step, steps.Strip):
        name = steps.name_text(step.range)
        return f"statements run over {step.factor} turns of loop {name} at a time; sums and maxima are carried along"
    if isinstance(step, steps.Within):
        return f"statement {step.statement}: {meaning(step.step)}"
    if isinstance(step, steps.Keep):
        return f"computed once and kept, also for loop {steps.name_text(step.again)}"
    if isinstance(step, steps.Prefetch):
        return f"argument {step.slot} is asked for one turn of loop {steps.name_text(step.ahead)} ahead"
    if isinstance(step, steps.Stream):
        return f"argument {step.slot} is written past the caches, which it would not fit"
    return _MEANINGS.get(type(step), "")


_MEANINGS: dict[type[steps.Step], str] = {
    steps.Parallel: "its turns are shared among threads",
    steps.Vectorize: "its turns are the lanes of one vector",
    steps.Tile: "its turns are written out and stay in registers",
    steps.Group: "partial results first, so that long sums stay exact",
    steps.Epilogue: "what is made of the finished tile is computed in loops, in vectors along these rows or lanes",
}


# --- expressions -----------------------------------------------------------------------------------


def expression(node: UOp) -> str:
    """A node as one expression; what is long in it is left out.

    >>> from lazulite.ir.dtype import dtypes
    >>> expression(UOp.const(dtypes.int32, 3) + 4)
    '3:int32 + 4'
    """
    texts: dict[UOp, Expression] = {}
    for part in toposort(node):
        if part.op in _LEAVES:
            number = part.arg[0] if isinstance(part.arg, tuple) else part.arg
            marks = number if isinstance(number, tuple) else (number,)
            text = Expression(_LEAVES[part.op] + "_".join(str(mark) for mark in marks), ATOM)
        else:
            text = express(part, [texts[source] for source in part.src])
        texts[part] = text if part is node or len(text.text) <= _LONGEST_PART else Expression("(...)", ATOM)
    return texts[node].text
