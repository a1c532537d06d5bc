"""Reverse-mode differentiation: from a value to the gradients of what it was computed from.

Takes and gives `TENSOR` graphs.  The walk is iterative, visits each node once, users before sources,
and adds several contributions to one node in the order in which the walk meets them, so the same
program always gives the same gradient, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lazulite.autograd.rules import GRADIENTS, spread, total
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.uop import UOp

History = Callable[[UOp], UOp | None]


def no_history(node: UOp) -> UOp | None:
    """What a value in memory was computed from, where nothing was recorded."""
    return None


def gradient(
    root: UOp, targets: Sequence[UOp], upstream: UOp | None = None, expand: History = no_history
) -> list[UOp | None]:
    """The gradient of `root` for each target; None where no path of floats leads to it.

    `upstream` weighs the elements of the root (ones by default).  `expand` may give the expression that
    a BUFFER was computed from; the walk goes on through it.
    """
    sources = sources_below([root], expand)
    active = _paths(sources, targets)
    if root not in active:
        return [None] * len(targets)
    one = UOp.const(root.dtype, 1) if upstream is None else upstream
    sums: dict[UOp, UOp] = {root: spread(one, root.shape)}
    for node in reversed(sources):
        if node in sums and node in active:
            _pass_on(node, sources[node], sums, active)
    return [sums.get(target) for target in targets]


def sources_below(roots: Iterable[UOp], expand: History = no_history) -> dict[UOp, tuple[UOp, ...]]:
    """Every node below the roots with the nodes it was computed from; sources stand before users."""
    known: dict[UOp, tuple[UOp, ...]] = {}
    entered: set[UOp] = set()
    for root in roots:
        if root in entered:
            continue
        entered.add(root)
        stack = [_opened(root, expand)]
        while stack:
            node, sources, pending = stack[-1]
            for source in pending:
                if source not in entered:
                    entered.add(source)
                    stack.append(_opened(source, expand))
                    break
            else:
                known[node] = sources
                stack.pop()
    return known


def _opened(node: UOp, expand: History) -> tuple[UOp, tuple[UOp, ...], Iterator[UOp]]:
    origin = expand(node) if node.op is ops.BUFFER else None
    sources = node.src if origin is None else (origin,)
    return node, sources, iter(sources)


def _paths(sources: Mapping[UOp, tuple[UOp, ...]], targets: Sequence[UOp]) -> set[UOp]:
    """The float nodes from which a target is reached through float nodes."""
    wanted = set(targets)
    active: set[UOp] = set()
    for node, below in sources.items():
        if node.dtype.is_float and (node in wanted or any(source in active for source in below)):
            active.add(node)
    return active


def _pass_on(node: UOp, below: tuple[UOp, ...], sums: dict[UOp, UOp], active: set[UOp]) -> None:
    """Add what the node's gradient gives to those of its sources that lie on a path."""
    if not any(source in active for source in below):
        return
    for source, part in zip(below, contributions(node, below, sums[node]), strict=True):
        if part is not None and source in active:
            share = fitted(part, source)
            sums[source] = sums[source] + share if source in sums else share


def contributions(node: UOp, below: tuple[UOp, ...], upstream: UOp) -> tuple[UOp | None, ...]:
    """What a node's gradient gives to each of its sources."""
    if node.op is ops.BUFFER:
        return (upstream,)
    rule = GRADIENTS.get(node.op)
    if rule is None:
        raise GradientError(
            "gradient",
            f"{node.op.name} has no derivative, but the result depends on the target through it",
            hint="detach() the part that is not to be differentiated",
        )
    parts = rule(upstream, node, *below)
    return parts if isinstance(parts, tuple) else (parts,)


def fitted(part: UOp, source: UOp) -> UOp:
    """A gradient in the shape of its value: an operand of rank 0 stood beside every element."""
    if part.shape == source.shape:
        return part
    return total(part) if source.shape == () else spread(part, source.shape)
