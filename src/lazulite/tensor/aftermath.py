"""What a call leaves behind in Python: its result, and tensors that it put into objects, as data.

`collect` notes it for a call that ran, `apply` does it again after a replay.  Whatever else a call changes
(a number in an object, the length of a list) would not happen in a replay, so that is `Unrepeatable`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lazulite.engine.environment import Survey
from lazulite.engine.handles import Handle
from lazulite.engine.marks import mark
from lazulite.engine.results import Same, Unrepeatable
from lazulite.tensor.base import DeviceName
from lazulite.tensor.structure import NoOutlineError, Outline, Place, filled, outline
from lazulite.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class _Put:
    """A tensor is put into a container: number of the survey, of the part, the place, and number of the tensor."""

    survey: int
    part: int
    place: Any = field(compare=False)
    tensor: int
    mark: Hashable = field(init=False)
    """What is compared of the place."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mark", mark(self.place))


@dataclass(frozen=True, slots=True)
class _Grad:
    """The gradient of a leaf becomes a tensor, or None."""

    leaf: int
    tensor: int | None


@dataclass(frozen=True, slots=True)
class _Replaced:
    """The tensor of a leaf stands for another value."""

    leaf: int
    tensor: int


class Aftermath:
    """The result and the effects of one call."""

    def __init__(self, tensors: Sequence[Tensor], surveys: Sequence[Survey]) -> None:
        self._before = [(tensor, tensor._handle, tensor._handle.grad) for tensor in tensors]
        self._surveys = surveys
        self._numbers: dict[int, int] = {}
        self._results: list[Tensor] = []
        self.effects: list[_Put | _Grad | _Replaced] = []
        self.form: Outline = Place(0)
        self.devices: list[DeviceName] = []
        self.is_tensor = self._is_new = False
        """Whether all that the call leaves behind is one tensor of its own."""
        self.reason = ""
        """Why the call cannot be repeated, if it cannot."""

    @classmethod
    def restored(cls, form: Outline, devices: list[DeviceName]) -> Aftermath:
        """That of a call which left nothing but results of this form, on these devices."""
        self = cls((), ())
        self.form, self.devices = form, devices
        return self

    def collect(self, value: Any) -> list[Handle]:
        """Note what the call gave and changed; the handles of all its tensors."""
        try:
            self.form = outline(value, self._number)
        except NoOutlineError as error:
            self.reason = f"it gives a {error}, which cannot be made anew"
        self._collect_changes()
        for leaf, (tensor, handle, grad) in enumerate(self._before):
            if tensor._handle is not handle:
                self.effects.append(_Replaced(leaf, self._number(tensor)))
            if handle.grad is not grad:
                self.effects.append(_Grad(leaf, None if handle.grad is None else self._number(handle.grad)))
        self.devices = [tensor.device for tensor in self._results]
        leaves = {id(handle) for _, handle, _ in self._before}
        self._is_new = not any(id(tensor._handle) in leaves for tensor in self._results)
        return [tensor._handle for tensor in self._results]

    def close(self) -> None:
        """Let go of the call; a reason not to repeat it is raised."""
        self._before, self._results, self._surveys = [], [], ()
        self.is_tensor = type(self.form) is Place and not self.effects and len(self.devices) == 1 and self._is_new
        if self.reason:
            raise Unrepeatable(self.reason)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for calls that left the same behind."""
        return self.form, tuple(self.effects), tuple(self.devices)

    @property
    def needs_arguments(self) -> bool:
        """Whether something is put into the arguments."""
        return any(isinstance(effect, _Put) and effect.survey for effect in self.effects)

    def tensor(self, handle: Handle) -> Tensor:
        """What the call leaves behind where that is one tensor."""
        tensor = object.__new__(Tensor)
        tensor._handle, tensor._device = handle, self.devices[0]
        return tensor

    def apply(
        self, tensors: Sequence[Tensor], handles: Sequence[Handle], results: Sequence[Same | object],
        surveys: Sequence[Survey],
    ) -> Any:  # fmt: skip
        """Leave the same behind, with these handles for the results; the result of the call."""
        made = [
            tensors[result.leaf] if isinstance(result, Same) else _tensor(handle, device)
            for handle, device, result in zip(handles, self.devices, results, strict=True)
        ]
        for effect in self.effects:
            if isinstance(effect, _Replaced):
                tensors[effect.leaf]._handle = made[effect.tensor]._handle
                made[effect.tensor] = tensors[effect.leaf]
            elif isinstance(effect, _Grad):
                handle = tensors[effect.leaf]._handle
                handle.grad = None if effect.tensor is None else made[effect.tensor]
            else:
                surveys[effect.survey].parts[effect.part].put(effect.place, made[effect.tensor])
        return made[0] if type(self.form) is Place and not self.form.number else filled(self.form, made)

    def _number(self, tensor: Tensor) -> int:
        number = self._numbers.setdefault(id(tensor), len(self._results))
        if number == len(self._results):
            self._results.append(tensor)
        return number

    def _collect_changes(self) -> None:
        for number, survey in enumerate(self._surveys):
            for change in survey.changes():
                if isinstance(change.value, Tensor) and change.can_be_put:
                    self.effects.append(_Put(number, change.part, change.place, self._number(change.value)))
                else:
                    self.reason = self.reason or f"it changes {change.path}"


def _tensor(handle: Handle, device: DeviceName) -> Tensor:
    tensor = object.__new__(Tensor)
    tensor._handle, tensor._device = handle, device
    return tensor
