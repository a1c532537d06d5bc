"""Captured functions in files: `save` writes the calls of one, `load_captured` makes a callable of them.

A call is chosen by its `Signature`: what is around the tensors among its arguments, the type, shape and device of each,
and which of them share memory.  Only calls whose state lies in their arguments can be saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from lazulite.base.errors import CaptureError
from lazulite.base.replacing import replacing
from lazulite.engine.capture import settle
from lazulite.engine.captured import Captured
from lazulite.engine.execute import ONE_AT_A_TIME
from lazulite.engine.handles import Handle
from lazulite.engine.saved import Archive, Opened
from lazulite.engine.storage import Storage
from lazulite.engine.tracing import THREAD
from lazulite.ir.placement import Placement
from lazulite.tensor.aftermath import Aftermath
from lazulite.tensor.structure import Group, NoOutlineError, Outline, Place, Plain, tensors_in
from lazulite.tensor.tensor import Tensor

_CONTAINERS: Mapping[str, type] = {"list": list, "tuple": tuple, "dict": dict}
_PLAIN = (bool, int, float, str, type(None))
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Signature:
    """What selects a saved call."""

    form: Outline
    leaves: tuple[tuple[str, tuple[int, ...], str | Placement, bool], ...]
    """Type, shape and device of each tensor, and whether it owns its memory."""
    shared: tuple[int, ...]
    """The first tensor with the same memory, for each."""

    def __str__(self) -> str:
        shown = [f"{shape} {dtype} on {device}" for dtype, shape, device, _ in self.leaves[:_MOST_SHOWN]]
        return f"({', '.join(shown)}{', ...' if len(self.leaves) > _MOST_SHOWN else ''})"


@dataclass(frozen=True, slots=True)
class Savable:
    """A captured call, with what selects it or the reason why it cannot be saved."""

    captured: Captured
    aftermath: Aftermath
    signature: Signature | str


def arguments_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Outline, list[Tensor]]:
    """What is around the tensors of a call, and the tensors, as often as they occur."""
    return tensors_in((args, kwargs))


def signature_of(form: Outline, handles: Sequence[Handle], storages: Sequence[Storage]) -> Signature:
    """The signature of a call whose tensors are in memory."""
    leaves = [
        (storage.dtype.name, storage.shape, storage.device, handle.storage is not None)
        for handle, storage in zip(handles, storages, strict=True)
    ]
    return Signature(form, tuple(leaves), tuple([storages.index(storage) for storage in storages]))


# --- writing -----------------------------------------------------------------------------------


def save(path: str | PathLike[str], name: str, calls: Iterable[Savable]) -> None:
    """Write a file; CaptureError where a call cannot be saved."""
    archive, calls = Archive(), list(calls)
    if len({call.signature for call in calls}) < len(calls):
        raise CaptureError(
            "save", f"{name} is captured several times for the same arguments, as something else decides what it does",
            rule="Numbers in the closure, attributes and settings are frozen in a file.", hint="pass it as an argument",
        )  # fmt: skip
    described = [_described(archive, call) for call in calls]
    if not described:
        raise CaptureError(
            "save", f"nothing of {name} is captured yet",
            rule="A call is captured when it does what the one before it did.", hint="call it twice, then save it",
        )  # fmt: skip
    with replacing(path) as file:
        file.write(archive.to_bytes({"name": name, "calls": described}))


def _described(archive: Archive, call: Savable) -> dict[str, object]:
    signature, aftermath = call.signature, call.aftermath
    if isinstance(signature, str):
        raise CaptureError(
            "save", signature, rule="A file holds no state: what a function reads and writes are its arguments."
        )
    if aftermath.effects:
        raise CaptureError("save", "the function puts tensors into objects, or gives them gradients")
    return {
        **archive.call(call.captured),
        "arguments": _packed(signature.form),
        "leaves": signature.leaves,
        "shared": signature.shared,
        "result": _packed(aftermath.form),
        "devices": aftermath.devices,
    }


def _packed(form: Outline) -> object:
    if isinstance(form, Place):
        return form.number
    if isinstance(form, Plain):
        if form.kind not in _PLAIN:
            raise CaptureError("save", f"a {form.kind.__name__} cannot be saved, among arguments or results")
        return {"value": form.value}
    name = next((name for name, kind in _CONTAINERS.items() if kind is form.kind), None)
    if name is None or not all(type(each) in _PLAIN for each in form.names):
        raise CaptureError("save", f"a {form.kind.__name__} cannot be saved, among arguments or results")
    return {"kind": name, "names": form.names, "items": [_packed(item) for item in form.items]}


# --- reading -----------------------------------------------------------------------------------


class SavedFunction:
    """The captured calls of a function, without the function.

    It takes the arguments that the calls were captured with, whatever the tensors hold; CaptureError for others.
    """

    def __init__(self, name: str, calls: dict[Signature, tuple[Captured, Aftermath]]) -> None:
        self._name, self._calls = name, calls

    def __repr__(self) -> str:
        return f"<saved {self._name}: {len(self._calls)} captured>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if THREAD.function:
            raise CaptureError(
                self._name, f"{THREAD.function} is captured, and what was loaded from a file cannot become a part of it"
            )
        with ONE_AT_A_TIME.lock:
            try:
                form, tensors = arguments_of(args, kwargs)
            except NoOutlineError as error:
                raise CaptureError(self._name, f"a {error} among the arguments was not captured") from None
            handles = [tensor._handle for tensor in tensors]
            storages = [settle(tensor._handle, tensor._device) for tensor in tensors]
            signature = signature_of(form, handles, storages)
            known = self._calls.get(signature)
            if known is None:
                raise CaptureError(
                    self._name, f"no captured call takes {signature} and these values beside them",
                    rule=f"It was saved for {'; '.join([str(each) for each in self._calls])}.",
                )  # fmt: skip
            captured, aftermath = known
            return aftermath.apply(tensors, captured.run(handles, storages), captured.results, ())


def load_captured(path: str | PathLike[str]) -> SavedFunction:
    """The function that `jit(...).save(path)` wrote; FormatError for a file that is damaged or for another machine.

    A file holds machine code: load only what you would run.

    >>> import os, tempfile
    >>> double = jit(lambda x: x * 2)
    >>> once, twice = double(Tensor([1.0])), double(Tensor([2.0]))
    >>> path = os.path.join(tempfile.mkdtemp(), "double")
    >>> double.save(path)
    >>> load_captured(path)(Tensor([5.0])).tolist()
    [10.0]
    """
    opened = Opened(Path(path).read_bytes(), fspath(path))
    try:
        calls = dict([_call(opened, description) for description in opened.header["calls"]])
        return SavedFunction(str(opened.header["name"]), calls)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        opened.refuse_header(error)


def _call(opened: Opened, description: Mapping[str, Any]) -> tuple[Signature, tuple[Captured, Aftermath]]:
    leaves = [(dtype, tuple(shape), device, owns) for dtype, shape, device, owns in description["leaves"]]
    signature = Signature(_form(description["arguments"]), tuple(leaves), tuple(description["shared"]))
    aftermath = Aftermath.restored(_form(description["result"]), description["devices"])
    return signature, (opened.call(description), aftermath)


def _form(packed: Any) -> Outline:
    if isinstance(packed, int):
        return Place(packed)
    if "value" in packed:
        value = packed["value"]
        return Plain(type(value), value)
    return Group(_CONTAINERS[packed["kind"]], tuple(packed["names"]), tuple([_form(item) for item in packed["items"]]))
