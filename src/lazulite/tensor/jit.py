"""`jit`: functions of tensors that are captured, and then carried out without running their Python code.

Every call looks at what the function can reach: its arguments, and what its closure, globals and objects
hold (`engine/environment.py`).  Types, shapes, devices and all values that are no tensors select a family
of calls; numbers select a call within the family.  A call that does the same as the one before it in its
place is captured, and the next is a replay.  So nothing that changes is frozen: what a replay would do
differently makes the function run again.

Invariant: results and state are those of calling the function itself each time.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from os import PathLike
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar

from lazulite.base.errors import ArgumentError, CaptureError
from lazulite.base.settings import SETTINGS
from lazulite.engine.capture import record, settle
from lazulite.engine.environment import Survey, survey
from lazulite.engine.execute import ONE_AT_A_TIME
from lazulite.engine.handles import Handle, is_written
from lazulite.engine.marks import number_mark
from lazulite.engine.results import Unrepeatable
from lazulite.engine.storage import Storage
from lazulite.engine.tracing import THREAD, traced
from lazulite.engine.variables import Variables
from lazulite.ir.size import Size, sizes_exist
from lazulite.tensor.aftermath import Aftermath
from lazulite.tensor.arguments import flatten
from lazulite.tensor.saved import Savable, Signature, arguments_of, save, signature_of
from lazulite.tensor.shortcut import Shortcut, shortcut
from lazulite.tensor.structure import NoOutlineError
from lazulite.tensor.tensor import Tensor

_Key = tuple[Hashable, ...]
P = ParamSpec("P")
R = TypeVar("R")

MOST_VARIANTS = 16
"""How many families of calls a function may have unless it is told otherwise."""
_MOST_NUMBERS = 256
_NO_VARIABLES = Variables()
_MOST_SHOWN = 4
_TOKENS = itertools.count()
_MOST_REMEMBERED = 8
"""How many surveys are kept, and how many calls with different numbers of each family."""


@dataclass(slots=True)
class _Family:
    """Calls that differ in tensors and numbers only."""

    facts: dict[str, str]
    """What selects the family, by path, for messages."""
    calls: dict[_Key, object] = field(default_factory=dict)
    """What the last call with each choice of numbers did; the one that was made longest ago first."""


@dataclass(slots=True)
class _Call:
    """A call with what the function reaches."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Tensor]
    handles: list[Handle]
    storages: list[Storage]
    variables: Variables
    around: Survey
    family: _Key
    """What selects the family."""
    key: _Key
    """That and the numbers."""


@dataclass(slots=True)
class _Surroundings:
    """A survey of what the function and some objects hold, and what stands for its key and its numbers."""

    survey: Survey
    objects: tuple[Any, ...]
    key: int
    numbers: int


class jit(Generic[P, R]):
    """A function whose calls are captured and then replayed in one submission each.

    The first call runs the function, the second is captured, later ones are replayed.  Another type, shape or
    device of a tensor, or another value of anything that is neither tensor nor number, begins a variant of
    its own, up to `limit`; then a CaptureError names what keeps changing.  Numbers that change run the
    function again.

    >>> @jit
    ... def double(x):
    ...     return x * 2
    >>> [double(Tensor([n])).item() for n in range(4)]
    [0, 2, 4, 6]
    """

    def __init__(self, function: Callable[P, R], *, limit: int = MOST_VARIANTS) -> None:
        if not callable(function):
            raise ArgumentError("jit", f"a function is captured, got {type(function).__name__}")
        self.function, self.limit = function, limit
        update_wrapper(self, function)
        self.reset()

    def reset(self) -> None:
        """Forget everything that was captured, and free its memory."""
        self.reason = ""
        """Why the last call that ran was not captured; empty where nothing is in the way."""
        self._captured: dict[_Key, Savable] = {}
        self._shortcut: Shortcut | None = None
        """That of the call which was replayed last."""
        self._shortcuts: dict[_Key, tuple[_Surroundings, Shortcut | None]] = {}
        self._families: dict[_Key, _Family] = {}
        self._around: _Surroundings | None = None
        """Those of calls without objects among the arguments."""
        self._surroundings: dict[tuple[int, ...], _Surroundings] = {}
        self._keys: dict[_Key, int] = {}
        self._numbers: dict[_Key, int] = {}

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was captured into a file, which `load_captured` makes a function of again.

        CaptureError where the function has state beside its arguments, which a file cannot hold.
        """
        save(path, self._name, self._captured.values())

    def __repr__(self) -> str:
        return f"<jit {self._name}: {len(self._captured)} captured>"

    @property
    def _name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if THREAD.function or THREAD.depth:  # a part of a function that is traced
            return self.function(*args, **kwargs)
        with ONE_AT_A_TIME.lock:
            if self._shortcut is not None and not kwargs:
                result = self._shortcut(args)
                if result is not None:
                    return result  # type: ignore[return-value]
            return self._call(args, kwargs)  # type: ignore[no-any-return]

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A replay where the call is captured; here every microsecond counts."""
        tensors: list[Tensor] = []
        key: list[Hashable] = []
        numbers: list[Hashable] = []
        sizes: list[Size] = []
        objects: list[Any] = []
        flatten(args, tensors, key, numbers, sizes, objects)
        if kwargs:
            key.append(tuple(kwargs))
            flatten(kwargs.values(), tensors, key, numbers, sizes, objects)
        around = self._around
        if objects or around is None or (around.survey.parts and not around.survey.unchanged()):
            around = self._surveyed(objects)
        tensors += around.survey.tensors
        handles, storages = _settled(tensors, key)
        variables = _NO_VARIABLES
        if sizes_exist():
            sizes += around.survey.sizes
            for storage in storages:
                sizes += storage.sizes
            variables = Variables(sizes)
            key.append(variables.key)
        family = *key, around.key, SETTINGS.traced
        full = family, around.numbers, *numbers
        known = self._captured.get(full)
        if known is None or (known.captured.hidden and not known.captured.fits()):
            call = _Call(args, kwargs, tensors, handles, storages, variables, around.survey, family, full)
            return self._run(call)
        captured, aftermath = known.captured, known.aftermath
        results = captured.run(handles, storages, variables.leaves)
        if aftermath.is_tensor:
            if not kwargs and not objects and len(args) + len(around.survey.tensors) == len(tensors):
                self._shortcut = self._shortcut_to(known, full, around, args, storages)
            return aftermath.tensor(results[0])
        surveys = [around.survey]
        if aftermath.needs_arguments:
            surveys.append(survey(Tensor, _named(self.function, args, kwargs), around.survey))
        return aftermath.apply(tensors, results, captured.results, surveys)

    def _shortcut_to(
        self, known: Savable, key: _Key, around: _Surroundings, args: tuple[Any, ...], storages: Sequence[Storage]
    ) -> Shortcut | None:
        """The shortcut, if there is one, for calls like this one; made when it is replayed for the first time."""
        made = self._shortcuts.get(key)
        if made is None or made[0] is not around:
            plain = all(type(each) is Tensor for each in args)
            device = known.aftermath.devices[0]
            found = shortcut(known.captured, device, around.survey, storages, len(args)) if plain else None
            made = self._shortcuts[key] = around, found
        return made[1]

    # --- what the function reaches ----------------------------------------------------------------

    def _surveyed(self, objects: list[Any]) -> _Surroundings:
        place = tuple([id(each) for each in objects])
        known = self._surroundings.get(place)
        if known is not None and known.survey.unchanged():
            return known
        roots = [(self._name, self.function), *[(type(each).__name__, each) for each in objects]]
        found = survey(Tensor, roots)
        numbers = tuple([number_mark(number) for number in found.numbers])
        if len(self._numbers) >= _MOST_NUMBERS:
            self._numbers.clear()
        known = _Surroundings(
            found, tuple(objects), self._keys.setdefault(found.key, next(_TOKENS)),
            self._numbers.setdefault(numbers, next(_TOKENS)),
        )  # fmt: skip
        if len(self._surroundings) >= _MOST_REMEMBERED:
            self._surroundings.clear()
        self._surroundings[place] = known
        if not objects:
            self._around = known
        return known

    # --- calls that run ---------------------------------------------------------------------------

    def _run(self, call: _Call) -> Any:
        """Run the function, and capture the call if it did what the last one with these numbers did."""
        family = self._families.get(call.family) or self._new_family(call)
        own = survey(Tensor, _named(self.function, call.args, call.kwargs), call.around)
        aftermath = Aftermath(call.tensors, [call.around, own])
        outcome: list[Any] = []

        def run() -> list[Handle]:
            with traced(self._name):
                outcome.append(self.function(*call.args, **call.kwargs))
            return aftermath.collect(outcome[0])

        self.reason, did = "", None
        self._shortcut = None
        self._shortcuts.clear()
        last = family.calls.pop(call.key, None)
        self._captured.pop(call.key, None)
        try:
            done = record(run, call.handles, call.storages, call.variables)
            aftermath.close()
            if own.opaque or (call.around.opaque and done.recording.trace.given):
                raise Unrepeatable(f"{own.opaque or call.around.opaque} may change without a trace")
            did = done.key, aftermath.key
        except Unrepeatable as reason:
            self.reason = str(reason)
        if did is not None and did == last and not SETTINGS.watched:  # who watches wants to see each kernel
            self._captured[call.key] = Savable(done.captured(), aftermath, _signature(call))
        while len(family.calls) >= _MOST_REMEMBERED:
            oldest = next(iter(family.calls))
            del family.calls[oldest]
            self._captured.pop(oldest, None)
        family.calls[call.key] = did
        return outcome[0]

    def _new_family(self, call: _Call) -> _Family:
        """A family for calls of this kind; CaptureError where there are too many."""
        own = survey(Tensor, _named(self.function, call.args, call.kwargs), call.around)
        facts = {path: _fact_text(fact) for path, fact in [*own.facts, *call.around.facts]}
        facts |= {
            path: f"{storage.shape} {storage.dtype.name} on {storage.device}"
            for path, storage in zip([*own.paths, *call.around.paths], call.storages, strict=False)
        }
        facts["the settings"] = f"set {SETTINGS.traced}"
        if len(self._families) >= self.limit:
            raise self._too_many(facts)
        family = self._families[call.family] = _Family(facts)
        return family

    def _too_many(self, facts: dict[str, str]) -> CaptureError:
        known = [family.facts for family in self._families.values()] + [facts]
        seen = {path: list(dict.fromkeys(each.get(path, "absent") for each in known)) for path in facts}
        changing = sorted([path for path in seen if len(seen[path]) > 1], key=lambda path: -len(seen[path]))
        lines = [f"{path} was {', then '.join(seen[path][-_MOST_SHOWN:])}" for path in changing[:_MOST_SHOWN]]
        return CaptureError(
            self._name, f"there are {self.limit} variants already, and this call needs another one: {'; '.join(lines)}",
            rule="A type, shape or device, or a value that is neither tensor nor number, has a variant of its own.",
            hint="bring what changes to a few shapes, for instance by padding, or jit(function, limit=...)",
        )  # fmt: skip


def _signature(call: _Call) -> Signature | str:
    """What selects a call where it is saved, or why it cannot be."""
    if call.around.tensors:
        return f"the function reaches {call.around.paths[0]}, which is no argument"
    try:
        form, tensors = arguments_of(call.args, call.kwargs)
    except NoOutlineError as error:
        return f"an argument is a {error}"
    if any(storage.parts for storage in call.storages):
        return "an argument is on several devices, which a file cannot hold"
    if len(tensors) < len(call.tensors):
        return "an argument has a gradient, which is state of its own"
    return signature_of(form, call.handles, call.storages)


def _settled(tensors: list[Tensor], key: list[Hashable]) -> tuple[list[Handle], list[Storage]]:
    """The handles of the leaves and their storages, in memory; what selects a family is added to the key.

    Gradients of leaves are leaves as well, as `backward` adds to them; they are appended to the tensors.
    """
    handles: list[Handle] = []
    storages: list[Storage] = []
    graded, written = False, is_written()
    for tensor in tensors:
        handle = tensor._handle
        storage = handle.storage
        if storage is None or storage.buffer is None or storage.failure or (written and handle.pending):
            storage = settle(handle, tensor._device)
            if handle.storage is None:
                key.append(False)  # it shows the contents of memory that another tensor owns
        if handle.grad is not None:
            graded = True
        handles.append(handle)
        storages.append(storage)
        key.append(storage.layout)
    if graded:
        numbers = tuple([number for number, handle in enumerate(handles) if handle.grad is not None])
        grads = [handles[number].grad for number in numbers]
        key.append(numbers)
        own = [grad._handle for grad in grads]
        storages += [settle(handle, grad._device) for handle, grad in zip(own, grads, strict=True)]
        key += [storage.layout for storage in storages[len(handles) :]]
        tensors += grads
        handles += own
    if len(storages) > 1 and len({*storages}) < len(storages):
        key.append(tuple([storages.index(storage) for storage in storages]))
    return handles, storages


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The arguments with the names of their parameters."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the call itself will say what is wrong
        return [(f"argument {number}", value) for number, value in enumerate(args, 1)] + list(kwargs.items())
    return list(bound.arguments.items())


def _fact_text(fact: object) -> str:
    """A fact of a survey for a message."""
    if isinstance(fact, tuple) and len(fact) == 2 and isinstance(fact[0], type):
        return (
            f"{fact[1]!r:.40}" if fact[0] in (bool, str, bytes, type(None)) else f"{fact[0].__name__} {fact[1]!r:.40}"
        )
    return getattr(fact, "__name__", f"{fact!r:.40}")


TinyJit = jit
