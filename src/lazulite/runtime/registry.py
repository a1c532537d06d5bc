"""The devices by name: `Device["CPU:1"]`, `Device.DEFAULT`.

A name is ``KIND[:EMITTER][:NUMBER]`` in any case; canonical names leave out the emitter that the kind
uses anyway and the number 0.  A device is opened when it is first asked for and stays open.  The
default is what the user chose, else CPU: no other device is ever picked by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import overload

from lazulite.base.errors import DeviceError, nearest
from lazulite.base.settings import SETTINGS
from lazulite.runtime import device
from lazulite.runtime.forking import renew_after_fork

DEVICES = {
    "CPU": "lazulite.runtime.devices.cpu:CpuDevice",
    "PYTHON": "lazulite.runtime.devices.python:PythonDevice",
    "NULL": "lazulite.runtime.devices.null:NullDevice",
    "NPY": "lazulite.runtime.devices.npy:NpyDevice",
}
"""A line for each kind of device: where its class is."""


class Registry:
    """Opens devices and knows the default; `Device` is the only instance."""

    def __init__(self) -> None:
        self._open: dict[str, device.Device] = {}
        self._lock = threading.Lock()
        self._chosen: tuple[str, str] | None = None  # the default as assigned, and the setting DEV at that time
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> device.Device:
        """The device with this name, opened if need be."""
        known = self._open.get(name)
        return known if known is not None else self._opened(self.canonical(name))

    def __iter__(self) -> Iterator[str]:
        """The kinds of devices there are."""
        return iter(DEVICES)

    @property
    def DEFAULT(self) -> str:
        """The canonical name of the device for tensors made without one.

        What was assigned holds until the setting DEV changes, for instance in a `Context`.
        """
        setting = SETTINGS.DEV
        if self._chosen is not None and self._chosen[1] == setting:
            return self._chosen[0]
        return self.canonical(setting)

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._chosen = self.canonical(name), SETTINGS.DEV

    @overload
    def canonical(self, name: str) -> str: ...

    @overload
    def canonical(self, name: str | Sequence[str]) -> str | tuple[str, ...]: ...

    def canonical(self, name: str | Sequence[str]) -> str | tuple[str, ...]:
        """The one spelling of a device's name, or of each of several (one of them is one device); raises where there
        is no such kind or emitter.

        >>> Device.canonical("cpu:0"), Device.canonical("CPU:LLVM"), Device.canonical("CPU:1")
        ('CPU', 'CPU', 'CPU:1')
        >>> Device.canonical(("CPU:0", "CPU:1"))
        ('CPU', 'CPU:1')
        """
        if not isinstance(name, str):
            if not isinstance(name, Sequence) or not name:
                raise DeviceError(
                    "Device", f"a device is named by a text, several by a list of texts, got {name!r:.60}"
                )
            names = tuple([self.canonical(each) for each in name])
            return names[0] if len(names) == 1 else names
        return ":".join(part for part in _parts(name) if part)

    def problem(self, name: str) -> str | None:
        """Why a device does not work here; None if it does."""
        try:
            self[name].synchronize()
        except Exception as error:  # any failure of a driver is the answer
            return str(error)
        return None

    def _opened(self, canonical: str) -> device.Device:
        with self._lock:
            if canonical not in self._open:
                kind, emitter, _ = _parts(canonical)
                self._open[canonical] = _device_class(kind)(canonical, emitter)
            return self._open[canonical]


@cache
def _parts(name: str) -> tuple[str, str, str]:
    """Kind, emitter ("" for the usual one) and number ("" for 0) of a device's name."""
    kind, *rest = name.upper().split(":")
    if kind not in DEVICES:
        near = nearest(kind, list(DEVICES))
        raise DeviceError(
            "Device", f"there is no device {kind or name!r}", rule=f"The devices are {', '.join(DEVICES)}.", hint=near
        )
    emitter = rest.pop(0) if rest and not rest[0].isdecimal() else ""
    number = rest.pop(0) if rest and rest[0].isdecimal() else ""
    if rest:
        raise DeviceError(
            "Device",
            f"{name!r} is not the name of a device",
            rule="A name is DEVICE, DEVICE:EMITTER, DEVICE:NUMBER or DEVICE:EMITTER:NUMBER.",
        )
    emitters = _device_class(kind).emitters
    if emitter and emitter not in emitters:
        raise DeviceError(
            "Device",
            f"{kind} has no emitter {emitter}",
            hint=nearest(emitter, emitters),
            rule=f"Its emitters are {', '.join(emitters) or 'none'}.",
        )
    return kind, "" if emitter in emitters[:1] else emitter, str(int(number)) if int(number or 0) else ""


def _device_class(kind: str) -> type[device.Device]:
    module, _, name = DEVICES[kind].partition(":")
    found: type[device.Device] = getattr(import_module(module), name)
    return found


Device = Registry()
