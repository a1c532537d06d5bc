"""Rows from torch's operator and module databases.

`automatic(space, name)` is the row of a name that the database knows and that we have: its samples are those that
torch tests itself with, spread over all variants, in float32 and int64.  Where our meaning differs from torch's by
design (`BY_DESIGN`), torch's result is brought to ours first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from lazulite.tensor.spellings import RESHAPED
from surface.rows import ENOUGH, Row, Sample
from surface.spaces import SPACES
from surface.values import tensors_in

NO_GRADIENT = frozenset({"nextafter"})
"""Names whose gradient in torch is that of their first operand, although they are steps."""
CANDIDATES = 24
"""Samples of one variant and type that are looked at."""
LARGEST = 20_000
"""Elements of a sample's largest tensor."""


def _values(result: Any) -> Any:
    """The values of a result that is values and positions."""
    return result[0] if isinstance(result, tuple) else result


def _extremum(name: str, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """The values of torch's max or min; that of two tensors is called maximum here."""
    if args and isinstance(args[0], torch.Tensor):
        raise TypeError("not a reduction")
    return _values(getattr(torch, name)(tensor, *args, **kwargs))


BY_DESIGN: dict[str, dict[str, Callable[..., Any]]] = {
    **{name: {"reference": lambda *a, n=name, **k: _extremum(n, *a, **k)} for name in ("max", "min")},
    **{name: {"reference": lambda *a, n=name, **k: getattr(torch, n)(*a, **{**k, "stable": True})}
       for name in ("sort", "argsort")},
    **{name: {"finish": _values} for name in ("topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin")},
    "where": {"ours": lambda x, gate, y: gate.where(x, y), "reference": lambda x, gate, y: torch.where(gate, x, y)},
}  # fmt: skip
"""What is compared where our meaning differs on purpose: extrema along an axis are values, as in tinygrad; equal
elements keep their order in a sort, and of equal elements the first is chosen; the gate comes first in `where`."""
_PREFIXES = {"tensor": ("", "linalg.", "nn.functional.", "special."), "functional": ("nn.functional.", "", "special.")}
LOOSE = {"functional": 3e-5, "nn": 3e-5}
"""Relative bounds of spaces whose functions are long compositions."""
REFERENCE = {"polygamma": 1e-3, "logcumsumexp": 1e-3}
"""Relative bounds of names for which torch itself is that far from the true values."""


@cache
def operators() -> dict[str, list[Any]]:
    """The records of the operator database by each of their names."""
    found: dict[str, list[Any]] = {}
    for op in op_db:
        for name in (op.name, *[alias.name for alias in op.aliases]):
            found.setdefault(name, []).append(op)
    return found


def automatic(space: str, name: str) -> Row | None:
    """The row of a name that both sides have, or nothing."""
    if not SPACES[space].has(name):
        return None
    if space == "nn":
        return _module_row(name)
    if space == "numpy":
        return None
    in_place = space == "tensor" and name.endswith("_")
    plain = name[:-1] if in_place else name
    records = _records(space, plain)
    if not records:
        return None

    def samples() -> Iterable[Sample]:
        return _samples(records, in_place)

    relative = REFERENCE.get(plain, LOOSE.get(space, 1e-5))
    if in_place:
        return Row(
            space, name, samples, _in_place(name, own=True), _in_place(name, own=False),
            gradient=False, relative=relative,
        )  # fmt: skip
    target, design = SPACES[space], BY_DESIGN.get(name, {}) if space == "tensor" else {}
    ours = design.get("ours", lambda *a, **k: target.call(name, *a, **k))
    reference = design.get("reference", lambda *a, **k: target.call_reference(name, *a, **k))
    finish = design.get("finish", lambda out: out)
    return Row(
        space, name, samples, lambda *a, **k: finish(ours(*a, **k)), lambda *a, **k: finish(reference(*a, **k)),
        relative=relative, gradient=name not in NO_GRADIENT,
    )  # fmt: skip


def _records(space: str, name: str) -> list[Any]:
    prefixes = {
        "tensor": ("", "linalg.", "nn.functional.", "special."),
        "functional": ("nn.functional.", "", "special."),
    }
    for prefix in prefixes[space]:
        found = operators().get(prefix + name)
        if found:
            return found
    return []


def _in_place(name: str, own: bool) -> Callable[..., Any]:
    """Call a method that writes its tensor, on a copy; the copy afterwards."""

    def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        copy = tensor.clone()
        getattr(copy, name)(*args, **kwargs)
        if not own and copy.shape != tensor.shape and name.rstrip("_") not in RESHAPED:
            raise TypeError("torch has changed the shape")
        return copy

    return call


def _samples(records: list[Any], in_place: bool) -> Iterator[Sample]:
    """Samples of all variants in turn, floats and integers."""
    kinds = [kind for kind in (torch.float32, torch.int64) if any(op.supports_dtype(kind, "cpu") for op in records)]
    streams = [_spread(op, kind) for kind in kinds or [torch.bool] for op in records if op.supports_dtype(kind, "cpu")]
    for sample in itertools.chain.from_iterable(itertools.zip_longest(*streams)):
        if sample is not None and (not in_place or isinstance(sample.args[0], torch.Tensor)):
            yield sample


def _spread(op: Any, dtype: torch.dtype) -> Iterator[Sample]:
    """Samples of one record, spread over all that there are."""
    torch.manual_seed(0)
    found = _listed(op.sample_inputs, dtype)
    if len(found) < ENOUGH and hasattr(op, "reference_inputs"):
        found += _listed(op.reference_inputs, dtype)
    step = max(1, len(found) // CANDIDATES)
    for sample in found[::step]:
        yield Sample((sample.input, *sample.args), dict(sample.kwargs))


def _listed(make: Callable[..., Any], dtype: torch.dtype) -> list[Any]:
    samples = itertools.islice(make("cpu", dtype, requires_grad=False), 200)
    kept = []
    for sample in samples:
        sizes = [t.numel() for t in tensors_in((sample.input, sample.args, sample.kwargs), torch.Tensor)]
        if max(sizes, default=0) <= LARGEST:
            kept.append(sample)
    return kept


# --- modules -------------------------------------------------------------------------------------


def _module_row(name: str) -> Row | None:
    """A module class: both are made with the same arguments and get the same parameters."""
    records = [record for record in module_db if record.module_cls.__name__ == name]
    if not records:
        return None
    record = records[0]

    def samples() -> Iterator[Sample]:
        torch.manual_seed(0)
        inputs = record.module_inputs_func(
            record, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )
        for given in inputs:
            if given.forward_input is None:
                continue
            made, called = given.constructor_input, given.forward_input
            torch.manual_seed(1)
            try:
                module = record.module_cls(*made.args, **made.kwargs).eval()
            except Exception:  # what torch refuses is no sample
                continue
            state = {key: value.detach() for key, value in module.state_dict().items()}
            yield Sample((list(made.args), dict(made.kwargs), state, *called.args), dict(called.kwargs))

    def own(args: list[Any], kwargs: dict[str, Any], state: dict[str, Any], *inputs: Any, **named: Any) -> Any:
        from lazulite.nn.state import load_state_dict

        module = SPACES["nn"].call(name, *args, **_without_places(kwargs))
        if state:
            load_state_dict(module, state)
        return module(*inputs, **named)

    def theirs(args: list[Any], kwargs: dict[str, Any], state: dict[str, Any], *inputs: Any, **named: Any) -> Any:
        module = record.module_cls(*args, **kwargs).eval()
        module.load_state_dict(state)
        return module(*inputs, **named)

    return Row("nn", name, samples, own, theirs, relative=LOOSE["nn"])


def _without_places(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if key not in ("device", "dtype")}
