"""Rules and sets of rules.

A rule is a named function: its decorator holds the left side, its body returns the right side or
`No(reason)`, the first line of its docstring is an executed example ``before -> after``.  A
`RuleSet` finds the rules that can apply to a node by its op, the type of its first source and the
ops of its sources.  Invariant: which rules a set tries depends on the set and the setting `RULES` only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import TypeVar

from lazulite.base.errors import SettingError, nearest
from lazulite.base.settings import SETTINGS
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import Matcher, Pattern, matchers, may_match, names_of
from lazulite.rewrite.trace import RECORDING, Trace


@dataclass(frozen=True, slots=True)
class No:
    """What a body returns to decline; the reason is recorded."""

    reason: str


Body = Callable[..., "UOp | No"]
B = TypeVar("B", bound=Body)
_Candidate = tuple["Rule", Matcher, Body]
Table = dict[tuple[object, ...], list[_Candidate]]
_NAMES: set[str] = set()
"""The names of all sets of rules."""


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """One law: `name` is ``set.function``, `example` its text ``before -> after``."""

    name: str
    patterns: tuple[Pattern, ...]
    body: Body
    example: str
    matchers: tuple[tuple[Pattern, Matcher], ...]
    """Each order of the operands of commutative ops."""

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


def _made(name: str, patterns: tuple[Pattern, ...], body: Body) -> Rule:
    wanted = list(inspect.signature(body).parameters)
    for pattern in patterns:
        missing = set(wanted) - names_of(pattern)
        if missing:
            raise TypeError(f"rule {name}: the left side binds no {', '.join(sorted(missing))}")
        if pattern.ops is None:
            raise TypeError(f"rule {name}: the root of the left side must name its op")
    example = (inspect.getdoc(body) or "").partition("\n")[0].strip()
    if "->" not in example:
        raise TypeError(f"rule {name}: the docstring must begin with an example 'before -> after'")
    return Rule(name, patterns, body, example, tuple([m for p in patterns for m in matchers(p, wanted, name)]))


class RuleSet:
    """Rules tried in order at one node; the order never decides correctness.

    `visits` counts the nodes shown to the set since the program began (a statistic: threads may
    lose some).
    """

    def __init__(self, name: str, *included: RuleSet) -> None:
        self.name = name
        self.visits = 0
        self._rules: list[Rule] = []
        self._roots: set[Op] = set()
        self._tables: dict[frozenset[str], Table] = {}
        _NAMES.add(name)
        for rules in included:
            self.include(rules)

    def __repr__(self) -> str:
        return f"<{len(self._rules)} rules of {self.name}>"

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(self._rules)

    def rule(self, *patterns: Pattern) -> Callable[[B], B]:
        """Enter the decorated function as a rule for nodes that match any of the patterns."""

        def enter(body: B) -> B:
            self._enter(_made(f"{self.name}.{body.__name__}", patterns, body))
            return body

        return enter

    def include(self, rules: RuleSet) -> None:
        """Add all rules of another set, under their own names."""
        for rule in rules.rules:
            self._enter(rule)

    def _enter(self, rule: Rule) -> None:
        self._rules.append(rule)
        self._roots.update(*[pattern.ops or () for pattern in rule.patterns])
        self._tables.clear()

    def table(self) -> Table:
        """The candidates by root, without the rules that the setting `RULES` switches off."""
        off = switched_off()
        table = self._tables.get(off)
        if table is None:
            self._check_names(off)
            table = self._tables[off] = {}
        return table

    def _check_names(self, off: frozenset[str]) -> None:
        """Refuse what the setting names and nothing has."""
        for name in off:
            theme, _, rule = name.partition(".")
            own = [r.name for r in self._rules if r.name.partition(".")[0] == theme]
            if theme not in _NAMES or (rule and own and name not in own):
                hint = nearest(name, own if own and rule else _NAMES)
                raise SettingError("RULES", f"there is no rule and no set of rules {name}", hint=hint and f"-{hint}")

    def step(self, node: UOp, trace: Trace | None = None) -> UOp | None:
        """The node after the first rule that applies to it; None if none does."""
        fired = self.fire(node, self.table(), trace)
        return None if fired is None else fired[1]

    def fire(self, node: UOp, table: Table, trace: Trace | None = None) -> tuple[Rule, UOp] | None:
        """The first rule that applies and its result; `table` is what `table()` gave."""
        self.visits += 1
        if trace is None:
            trace = RECORDING.get()
        if trace is not None:
            trace.visits += 1
        op, src = node.op, node.src
        if op not in self._roots:
            return None
        key = (op, src[0].dtype, *[source.op for source in src]) if src else (op, node.dtype)
        candidates = table.get(key)
        if candidates is None:
            candidates = table[key] = self._candidates(node)
        if trace is not None:
            return _traced(node, candidates, trace)
        for rule, match, body in candidates:
            bound = match(node)
            if bound is not None:
                result = body(*bound)
                if result is not node and result.__class__ is not No:
                    return rule, result  # type: ignore[return-value]
        return None

    def _candidates(self, node: UOp) -> list[_Candidate]:
        off, first = switched_off(), node.src[0].dtype if node.src else node.dtype
        sources = [source.op for source in node.src]
        return [
            (rule, function, rule.body)
            for rule in self._rules
            if rule.name not in off and rule.name.partition(".")[0] not in off
            for pattern, function in rule.matchers
            if may_match(pattern, node.op, first, sources)
        ]


def _traced(node: UOp, candidates: Iterable[_Candidate], trace: Trace) -> tuple[Rule, UOp] | None:
    for rule, match, body in candidates:
        bound = match(node)
        if bound is None:
            continue
        start = perf_counter()
        result = body(*bound)
        trace.seconds[rule.name] += perf_counter() - start
        if isinstance(result, No):
            trace.record_declined(rule.name, node, result.reason)
        elif result is not node:
            trace.record_fired(rule.name, node, result)
            return rule, result
    return None


def switched_off() -> frozenset[str]:
    """The names of rules and sets that the setting `RULES` (as in ``-algebra.fold,-division``) excludes."""
    return _excluded(SETTINGS.RULES)


@cache
def _excluded(setting: str) -> frozenset[str]:
    return frozenset([part.removeprefix("-") for part in setting.split(",") if part])
