"""tinygrad's settings and devices.

A setting that Lazulite has under the same name, or under another one, is that setting; any other is a number that
a script can set and read, and that has no effect here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ContextDecorator, ExitStack
from typing import Any, Self

from lazulite.base.settings import DECLARED, SETTINGS
from lazulite.base.settings import Context as OwnContext
from lazulite.ir.dtype import STORED, DType
from lazulite.runtime.registry import Device as Devices

_OPPOSITE = {"NOOPT": "OPT", "NO_MEMORY_PLANNER": "PLAN_MEMORY"}
"""Settings that say here what is on, and there what is off."""
_OTHERS: dict[str, ContextVar] = {}


def getenv(key: str, default: Any = 0) -> Any:
    """An environment variable as a value of the default's type; a word where a number is wanted says yes or no.

    >>> getenv("SURELY_NOT_SET", 5)
    5
    """
    given = os.environ.get(key, default)
    if isinstance(given, str) and isinstance(default, int):
        words = {"true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0, "": 0}
        given = words.get(given.lower(), given)
    return type(default)(given)


class ContextVar:
    """One setting as an object that compares like its value."""

    def __init__(self, key: str, default_value: Any = 0) -> None:
        self.key = key
        self._own: Any = default_value if key in DECLARED else getenv(key, default_value)
        _OTHERS.setdefault(key, self)

    @property
    def value(self) -> Any:
        if self.key in DECLARED:
            return getattr(SETTINGS, self.key)
        return self._own

    @value.setter
    def value(self, value: Any) -> None:
        self._own = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= other)

    def __hash__(self) -> int:
        return hash(self.key)

    def __int__(self) -> int:
        return int(self.value)


DEBUG, BEAM, TRAINING, DEV = ContextVar("DEBUG"), ContextVar("BEAM"), ContextVar("TRAINING"), ContextVar("DEV", "")
JIT, NOOPT, WINO, CI, IMAGE = ContextVar("JIT", 1), *map(ContextVar, ("NOOPT", "WINO", "CI", "IMAGE"))


class Context(ContextDecorator):
    """Settings for a block or a function.

    >>> from lazulite.interop.tinygrad.context import Context
    >>> with Context(BEAM=2, WINO=1):
    ...     BEAM.value, WINO.value
    (2, 1)
    >>> WINO.value
    0
    """

    def __init__(self, **settings: Any) -> None:
        opposite = {_OPPOSITE[name]: int(not value) for name, value in settings.items() if name in _OPPOSITE}
        self._known = {name: value for name, value in settings.items() if name in DECLARED} | opposite
        self._other = {name: value for name, value in settings.items() if name not in DECLARED}
        self._entered: list[tuple[ExitStack, dict[str, Any]]] = []

    def __enter__(self) -> Self:
        stack = ExitStack()
        stack.enter_context(OwnContext(**self._known))
        before = {}
        for name, value in self._other.items():
            variable = _OTHERS[name] if name in _OTHERS else ContextVar(name)
            before[name], variable.value = variable.value, value
        self._entered.append((stack, before))
        return self

    def __exit__(self, *error: object) -> None:
        stack, before = self._entered.pop()
        for name, value in before.items():
            _OTHERS[name].value = value
        stack.close()


class _Renderer:
    """What scripts ask of the code generator of a device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def supported_dtypes(self) -> set[DType]:
        """The element types: all of them, on every device."""
        return set(STORED)


class _Device:
    """A device with the attributes that scripts read."""

    def __init__(self, name: str) -> None:
        self._device = Devices[name]
        self.device, self.renderer = name, _Renderer(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class _Devices:
    """The devices by name."""

    @property
    def DEFAULT(self) -> str:
        return Devices.DEFAULT

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        Devices.DEFAULT = name

    def __getitem__(self, name: str) -> _Device:
        return _Device(self.canonicalize(name))

    def __iter__(self) -> Iterator[str]:
        return iter(Devices)

    def canonicalize(self, device: str | None) -> str:
        """The one spelling of a device's name; the default for None."""
        return Devices.DEFAULT if device is None else Devices.canonical(device)

    def get_available_devices(self) -> Iterator[str]:
        """The devices that work here."""
        return (name for name in Devices if Devices.problem(name) is None)


Device = _Devices()
