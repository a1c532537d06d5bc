"""Variables of a transform: tensors that stand for the arguments a function is differentiated by.

A stand-in has the value of its argument, so the function may look at it and branch on it, but is a node of its
own: what the function holds beside its arguments is constant, even where it is the same tensor.  Afterwards
`Variables.released` puts the arguments back, so that a transform further out sees one plain graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazulite.base.errors import DTypeError, GradientError
from lazulite.engine.effects import differentiable
from lazulite.engine.handles import Handle, forget_history, history, keep_history, pending_writes, tracked_values
from lazulite.engine.tracing import transformed
from lazulite.ir import ops
from lazulite.ir.functions import variable
from lazulite.ir.uop import UOp, toposort
from lazulite.tensor.structure import NoOutlineError, Outline, filled, tensors_in
from lazulite.tensor.tensor import Tensor


class Variables:
    """The stand-ins of one call of a transformed function."""

    def __init__(self) -> None:
        self.nodes: list[UOp] = []
        self.table: dict[UOp, UOp] = {}
        """For each stand-in the value of its argument."""
        self._anchors: list[Handle] = []
        """They tell the engine to remember how it computed what depends on a stand-in."""

    def stand_in(self, tensor: Tensor, depth: int) -> Tensor:
        """A tensor of the same value that derivatives are asked for."""
        node = variable(tensor.uop, depth, len(self.nodes))
        self.nodes.append(node)
        self.table[node] = tensor.uop
        self._anchors.append(Handle(node, requires_grad=True))
        return tensor._made(Handle(node), tensor.device)

    def close(self) -> None:
        """The function is done, and what it wrote to other tensors is over the arguments."""
        self._anchors.clear()
        for handle in pending_writes():
            (handle.value,) = self.released([handle.value])

    def released(self, nodes: Sequence[UOp]) -> list[UOp]:
        """The values with the arguments in the place of the stand-ins."""
        return replaced(nodes, self.table)

    def settled(self, nodes: Sequence[UOp], *, wanted: bool) -> list[UOp]:
        """As `released`, and so is what is remembered of values in memory, if somebody may want it."""
        result = self.released(nodes)
        pending = list(result)
        while pending:
            buffers = [node for node in toposort(*pending) if node.op is ops.BUFFER]
            pending = []
            for buffer in buffers:
                past = history(buffer)
                released = None if past is None else self.released([past])[0]
                if released is None or released is past:
                    continue
                if wanted:
                    keep_history(buffer, released)
                    pending.append(released)
                else:
                    forget_history([buffer])
        return result


class Call:
    """A function called with stand-ins for some of its arguments: what it gave, as graphs over these."""

    def __init__(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
        argnums: Sequence[int], has_aux: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.variables = name, Variables()
        own, self.outlines = list(args), list[Outline]()
        self.counts: list[int] = []
        with transformed() as depth:
            try:
                for number in argnums:
                    form, tensors = flat(name, with_floats(own[number]))
                    own[number] = filled(form, [self._stand_in(tensor, depth) for tensor in tensors])
                    self.outlines.append(form)
                    self.counts.append(len(tensors))
                result = function(*own, **kwargs)
                result, rest = self._split(result) if has_aux else (result, None)
                self.form, self.outputs = flat(name, result)
                self.graphs = unfolded([each.uop for each in self.outputs])
                """What the function gave over its stand-ins, nothing read from memory that depends on one."""
            finally:
                self.variables.close()
        self.value = self._plain(self.form, self.outputs, depth)
        self.aux = self._plain(*flat(name, rest), depth)

    def _split(self, result: Any) -> tuple[Any, Any]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise DTypeError(
                self.name, "with has_aux=True a function gives a pair: what is differentiated, and the rest"
            )
        return result

    def _stand_in(self, tensor: Tensor, depth: int) -> Tensor:
        if not tensor.dtype.is_float:
            raise GradientError(
                self.name, f"only floats have derivatives, got {tensor.dtype.name}", about={"argument": tensor},
                hint="name the arguments to differentiate by in argnums, or cast them: x.float()",
            )  # fmt: skip
        return self.variables.stand_in(tensor, depth)

    def _plain(self, form: Outline, tensors: Sequence[Tensor], depth: int) -> Any:
        """A result without stand-ins."""
        wanted = depth > 0 or bool(tracked_values())
        nodes = self.variables.settled([tensor.uop for tensor in tensors], wanted=wanted)
        return filled(form, [t if node is t.uop else t._derived(node) for t, node in zip(tensors, nodes, strict=True)])

    def differentiable(self) -> tuple[list[UOp], dict[UOp, UOp]]:
        """The graphs without effects, and what each kernel's result in them stands for."""
        values: list[UOp] = []
        launches: dict[UOp, UOp] = {}
        for graph in self.graphs:
            value, found = differentiable(graph)
            values.append(value)
            launches |= found
        return values, launches


def with_floats(value: Any) -> Any:
    """The argument, a Python float as a tensor of rank 0."""
    return Tensor(value) if isinstance(value, float) else value


def flat(name: str, value: Any) -> tuple[Outline, list[Tensor]]:
    """The tensors of an argument or result, and what is around them."""
    try:
        return tensors_in(value)
    except NoOutlineError as kind:
        raise DTypeError(
            name, f"a function takes and gives tensors in lists, tuples, dictionaries and dataclasses, got {kind}"
        ) from None


def replaced(nodes: Sequence[UOp], table: Mapping[UOp, UOp]) -> list[UOp]:
    """As `substitute`; a new node keeps the line of the old one, and where its value is in memory."""
    done = dict(table)
    for node in toposort(*nodes, enter=lambda n: n not in table):
        if node in done:
            continue
        src = tuple([done[source] for source in node.src])
        if src == node.src:
            done[node] = node
            continue
        new = done[node] = UOp(node.op, node.dtype, src, node.arg)
        new.origin = new.origin or node.origin
        new.memory = new.memory or node.memory
    return [done[node] for node in nodes]


def unfolded(nodes: Sequence[UOp]) -> list[UOp]:
    """The values with every one in memory that may be asked for a gradient written as it was computed."""
    while True:
        past = {n: then for n in toposort(*nodes) if n.op is ops.BUFFER and (then := history(n)) is not None}
        if not past:
            return list(nodes)
        nodes = replaced(nodes, past)
