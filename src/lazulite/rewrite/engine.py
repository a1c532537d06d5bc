"""The rewriting engine: applies a set of rules from the leaves up until none applies.

Takes: roots and a `RuleSet`.  Gives: the rewritten roots.  Invariants: no recursion over graph
depth; every node is shown to the rules once however often it is used; nodes that no rule changes
keep their identity; rewriting ends, at the latest when more than `LONGEST_CHAIN` rewrites descend
from one node, with an error that names the rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.base.collector import collector_paused
from lazulite.base.errors import StageError
from lazulite.ir.uop import UOp
from lazulite.rewrite.rule import RuleSet, Table
from lazulite.rewrite.trace import Trace

LONGEST_CHAIN = 256
"""How many rewrites may follow one another from one node; more means that rules undo each other."""

_Frame = tuple[UOp, int, "list[UOp] | None"]
"""A node to settle, how many rewrites it descends from, and the nodes that share its result."""


def rewrite(roots: Iterable[UOp], rules: RuleSet, trace: Trace | None = None) -> list[UOp]:
    """The roots with the rules applied everywhere, sources first, until none applies."""
    roots = list(roots)
    done: dict[UOp, UOp] = {}
    table = rules.table()
    with collector_paused():
        for root in roots:
            if root not in done:
                _settle(root, rules, table, done, trace)
    return [done[root] for root in roots]


def _settle(root: UOp, rules: RuleSet, table: Table, done: dict[UOp, UOp], trace: Trace | None) -> None:
    """Enter the final form of the root, and of everything met on the way, into `done`."""
    stack: list[_Frame] = [(root, 0, None)]
    while stack:
        node, chain, waiting = stack[-1]
        before = len(stack)
        for source in node.src:
            if source not in done:
                stack.append((source, chain, None))
        if len(stack) > before:
            continue
        stack.pop()
        final = done.get(node)
        if final is None:
            src = tuple([done[source] for source in node.src])
            built = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
            final = done.get(built)
            if final is None:
                fired = rules.fire(built, table, trace)
                if fired is not None:
                    if chain >= LONGEST_CHAIN:
                        raise endless(fired[0].name)
                    stack.append((fired[1], chain + 1, [node, built, *(waiting or ())]))
                    continue
                final = done[built] = built
            done[node] = final
        for known in waiting or ():
            done[known] = final


def endless(rule: str) -> StageError:
    """The error for rules that undo each other or grow a node without end."""
    return StageError(
        "rewrite",
        f"more than {LONGEST_CHAIN} rewrites follow one another from one node, the last by the rule {rule}",
        hint=f"LAZULITE_RULES=-{rule}",
    )
