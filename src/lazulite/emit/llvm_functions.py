"""Functions of a kernel as LLVM assembly: loops with register tiles that run one after another in a loop.

Each is a function of its own, so that its registers are nobody else's business: else the code generator keeps what one
loop needs again in the next turn, such as the constants of a power, in registers while another one runs, and spills the
sums of that.  Values from outside become arguments when they are first asked for.  Functions that differ in nothing but
their arguments are written once.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from lazulite.emit.llvm_loops import LoopWriter
from lazulite.emit.llvm_text import Text, Typed
from lazulite.emit.llvm_types import type_name
from lazulite.emit.llvm_values import Key
from lazulite.ir import ops
from lazulite.ir.uop import UOp


@dataclass(slots=True)
class _Nest:
    """A loop, or all of the kernel."""

    range: UOp | None
    stands_alone: bool
    """Whether it has no states of its own, and nothing in it concerns the whole kernel."""
    tiles: int = 0
    """How many loops have register tiles as states."""
    inner: list[_Nest] = field(default_factory=list)


class _Arguments(dict[UOp, dict[Key, str]]):
    """The values in a function: one from outside becomes an argument when it is first asked for."""

    def __init__(self, writer: FunctionWriter) -> None:
        super().__init__()
        self.writer, self.around, self.caller = writer, writer.values, writer.text
        self.passed: dict[Typed, str] = {}
        """The name of the argument for each value from outside."""

    def __missing__(self, node: UOp) -> dict[Key, str]:
        kind, found = self.writer.type_of(node), dict[Key, str]()
        for key, value in self.around[node].items():
            found[key] = self.passed.setdefault((kind, value), f"%given{len(self.passed)}")
        self[node] = found
        return found

    @property
    def parameters(self) -> str:
        return ", ".join([f"{kind} {name}" for (kind, _), name in self.passed.items()])

    @property
    def operands(self) -> str:
        return ", ".join([f"{kind} {value}" for kind, value in self.passed])


class FunctionWriter(LoopWriter):
    """Writes some loops as functions."""

    def __init__(self, linear: UOp) -> None:
        super().__init__(linear)
        self.apart = self._apart()
        """The ranges of loops that become functions."""
        self.functions: dict[str, str] = {}
        """The name of each by its text."""

    def type_of(self, node: UOp) -> str:
        """The type of a node's value."""
        if node.op in (ops.PARAM, ops.SCRATCH):
            return "ptr"
        lanes = 0 if node.op in (ops.SCALAR, ops.RANGE) else self.lanes_of(node)
        return type_name(node.dtype, lanes, self.index_bits(node, lanes))

    def open_loop(self, r: UOp) -> None:
        if r in self.apart:
            self.values, self.text = _Arguments(self), Text(self.text.declarations)
        super().open_loop(r)

    def close_loop(self) -> None:
        r = self.loops[-1].closer.src[0]
        super().close_loop()
        if r in self.apart and isinstance(self.values, _Arguments):
            self._call(self.values)

    def _call(self, arguments: _Arguments) -> None:
        """End a function, and call it."""
        head = f"({arguments.parameters}) noinline nounwind {{\nentry:"
        function = "\n".join([head, *self.text.lines, "  ret void\n}"])
        name = self.functions.setdefault(function, f"@tile{len(self.functions)}")
        self.values, self.text = arguments.around, arguments.caller
        self.text.line(f"call void {name}({arguments.operands})")

    def definitions(self) -> list[str]:
        """The functions beside the kernel's."""
        return [f"define internal void {name}{function}" for function, name in self.functions.items()]

    def _apart(self) -> set[UOp]:
        tiled = {r for r, carries in self.carries.items() if any(self.form(carry).rows for carry in carries)}
        if len(tiled) < 2:
            return set()
        chosen, pending = set[UOp](), [self._nests(tiled)]
        while pending:
            nest = pending.pop()
            apart = [inner.range for inner in nest.inner if inner.tiles and inner.stands_alone]
            if nest.range is not None and len(apart) > 1:
                chosen.update([r for r in apart if r is not None])
            else:
                pending += nest.inner
        return chosen

    def _nests(self, tiled: Container[UOp]) -> _Nest:
        """The loops of the kernel; what is beside the parallel one is written for all of its chunks, or for one."""
        stack = [_Nest(None, False)]
        for node in self.nodes:
            if node.op is ops.RANGE:
                shared = self.parallel is not None and not any(nest.range is self.parallel for nest in stack)
                stack.append(_Nest(node, not shared))
            elif node.op is ops.FOR:
                nest = stack.pop()
                nest.tiles += node.src[0] in tiled
                nest.stands_alone &= not node.arg
                stack[-1].tiles += nest.tiles
                stack[-1].inner.append(nest)
            elif node.op is ops.MMA or (node.op is ops.STORE and node.arg == "stream"):
                for nest in stack:
                    nest.stands_alone = False
        return stack[0]
