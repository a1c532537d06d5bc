"""Settings and devices as tinygrad's scripts use them."""

from __future__ import annotations

import pytest

from lazulite import Device as Devices
from lazulite import SettingError, dtypes
from lazulite.base.settings import SETTINGS
from lazulite.interop.tinygrad.context import BEAM, DEBUG, WINO, Context, ContextVar, Device, getenv


def test_a_setting_of_lazulite_is_that_setting() -> None:
    with Context(BEAM=3, NOOPT=1):
        assert (3, 3, 0) == (BEAM.value, SETTINGS.BEAM, SETTINGS.OPT)
        assert BEAM >= 3 and BEAM > 2 and not BEAM < 3 and BEAM <= 3 and BEAM == 3 and int(BEAM) == 3
    assert (0, 1) == (SETTINGS.BEAM, SETTINGS.OPT)
    with pytest.raises(SettingError):
        Context(DEBUG="much").__enter__()


def test_any_other_is_a_number_that_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANCY", "7")
    fancy = ContextVar("FANCY", 1)

    @Context(FANCY=2, WINO=1, UNHEARD_OF=5)
    def inside(depth: int) -> tuple[int, int]:
        return inside(depth - 1) if depth else (fancy.value, WINO.value)

    assert (2, 1) == inside(2)
    assert (7, 0) == (fancy.value, WINO.value)
    assert hash(fancy) == hash("FANCY")
    assert not DEBUG


def test_the_environment_gives_values_of_the_default_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPS", "12")

    assert (12, "12", 12.0) == (getenv("STEPS"), getenv("STEPS", ""), getenv("STEPS", 1.5))


def test_devices_have_what_scripts_read() -> None:
    assert Devices.DEFAULT == Device.DEFAULT
    assert dtypes.float32 in Device[Device.DEFAULT].renderer.supported_dtypes()
    assert "CPU" == Device.canonicalize("cpu:0")
    assert Devices.DEFAULT == Device.canonicalize(None)
    assert "CPU" in list(Device) and "CPU" in list(Device.get_available_devices())
    Device["CPU"].synchronize()
    before = Device.DEFAULT
    Device.DEFAULT = "PYTHON"
    assert "PYTHON" == Devices.DEFAULT
    Device.DEFAULT = before
