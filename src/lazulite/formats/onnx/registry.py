"""The table of operators: each a function whose signature says what the operator takes.

`@onnx_op("Clip", since=13)` registers a function for the versions of a domain from 13 on; of several the
latest that a model may use counts.  Positional parameters are the inputs (`*xs` for any number), keyword
parameters the attributes with their defaults.  An attribute that became an input in a later version is one
parameter.  The annotation of an input says what it is converted to: `Tensor`, `Host` (a NumPy array,
computed now), `Ints` (a tuple of Python integers), `Value` (as it comes).  A parameter `call` is given a `Call`.
"""

from __future__ import annotations

import inspect
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.values import Lift, Value, on_host

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Call:
    """What an operator may ask about the node that calls it."""

    outputs: int
    """How many results the node names."""
    opset: int
    device: str
    lift: Lift
    """A value as a tensor; one of the model's own constants always as the same."""
    run: Callable[[Any, Sequence[Value]], list[Value]]
    """Run a subgraph with these inputs; it sees the values around the node."""
    values: Mapping[str, Value]
    """The values that are known where the node stands."""


@dataclass(frozen=True, slots=True, order=True)
class Operator:
    since: int
    name: str = field(compare=False)
    domain: str = field(compare=False)
    function: Callable[..., Any] = field(compare=False)
    inputs: tuple[tuple[str, str, bool], ...] = field(compare=False)
    """Name, kind and whether it may be absent, of each input that has a parameter of its own."""
    further: str | None = field(compare=False)
    """The kind of any number of further inputs."""
    attributes: frozenset[str] = field(compare=False)
    asks: bool = field(compare=False)

    def unknown_attributes(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self.attributes and name != _UNUSED]

    def __call__(self, values: Sequence[Value], attributes: Mapping[str, Any], call: Call) -> Any:
        """The results for values of any kind."""
        kinds = [kind for _, kind, _ in self.inputs]
        if len(values) > len(kinds) and self.further is None:
            raise FormatError("OnnxRunner", f"{self.name} takes {len(kinds)} inputs, got {len(values)}")
        kinds += [self.further or ""] * (len(values) - len(kinds))
        inputs = [converted(value, kind, call.lift) for value, kind in zip(values, kinds, strict=False)]
        named = {name: value for name, value in attributes.items() if name != _UNUSED}
        for place, (name, kind, _) in enumerate(self.inputs):
            if name in named:  # the older form of an input
                moved = converted(_as_value(named.pop(name)), kind, call.lift)
                inputs += [None] * (place + 1 - len(inputs))
                inputs[place] = moved
        missing = [
            name
            for place, (name, _, optional) in enumerate(self.inputs)
            if not optional and (place >= len(inputs) or inputs[place] is None)
        ]
        if missing:
            raise FormatError("OnnxRunner", f"{self.name} needs an input {missing[0]}")
        if self.asks:
            named["call"] = call
        return self.function(*inputs, **named)


OPERATORS: dict[tuple[str, str], list[Operator]] = {}
"""By domain and name, the versions ascending."""
_UNUSED = "consumed_inputs"
"""An attribute of first versions that says what may be overwritten; it has no meaning for a result."""


def onnx_op(name: str, since: int = 1, domain: str = "") -> Callable[[F], F]:
    """Register a function as an operator of a domain, from a version on."""

    def register(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        inputs = tuple([
            (p.name, _kind(p.annotation), p.default is None)
            for p in parameters
            if p.kind is p.POSITIONAL_OR_KEYWORD
        ])  # fmt: skip
        further = [_kind(p.annotation) for p in parameters if p.kind is p.VAR_POSITIONAL]
        keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        operator = Operator(
            since, name, domain, function, inputs, further[0] if further else None,
            frozenset(keywords - {"call"}) | {name for name, _, _ in inputs}, "call" in keywords,
        )  # fmt: skip
        insort(OPERATORS.setdefault((domain, name), []), operator)
        return function

    return register


def find(domain: str, name: str, opset: int) -> Operator | None:
    """The version of an operator that a model of an opset uses."""
    fitting = [each for each in OPERATORS.get((domain, name), ()) if each.since <= opset]
    return fitting[-1] if fitting else None


def converted(value: Value, kind: str, lift: Lift) -> Any:
    """A value as an operator wants it."""
    if value is None or kind == "Value":
        return value
    if kind == "Tensor":
        return lift(value)
    array = on_host(value)
    return tuple([int(number) for number in array.reshape(-1)]) if kind == "Ints" else array


def _as_value(attribute: Any) -> Value:
    """An attribute as the value that an input would have."""
    if isinstance(attribute, float) or (isinstance(attribute, list) and any(isinstance(x, float) for x in attribute)):
        return numpy.array(attribute, "float32")
    if isinstance(attribute, int | list):
        return numpy.array(attribute, "int64")
    return attribute


def _kind(annotation: str) -> str:
    return annotation.removesuffix(" | None")
