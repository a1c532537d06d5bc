import pytest

from lazulite.base.errors import DeviceError
from lazulite.base.settings import Context
from lazulite.runtime.registry import DEVICES, Device, Registry


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("CPU", "CPU"),
        ("cpu", "CPU"),
        ("CPU:0", "CPU"),
        ("CPU:LLVM", "CPU"),
        ("cpu:llvm:02", "CPU:2"),
        ("NULL:1", "NULL:1"),
    ],
)
def test_a_device_has_one_canonical_name(written, canonical):
    """A27"""
    registry = Registry()
    assert registry.canonical(written) == canonical
    assert registry[written] is registry[canonical]
    assert registry[written].name == canonical


def test_instances_of_one_kind_are_different_devices():
    assert Device["CPU"] is not Device["CPU:1"]


def test_an_unknown_name_suggests_a_near_one_and_lists_what_exists():
    """A27"""
    with pytest.raises(DeviceError, match="no device 'PYHTON'") as caught:
        Device["PYHTON:1"]
    assert "The devices are CPU, PYTHON, NULL, NPY." in str(caught.value)
    assert "Try: PYTHON" in str(caught.value)


@pytest.mark.parametrize("name", ["", "CPU:LLVM:1:2", "CPU:1:LLVM", "CPU:LVM", "CPU:-1", "NPY:LLVM"])
def test_a_name_that_says_nothing_is_refused(name):
    with pytest.raises(DeviceError):
        Device[name]


def test_a_device_is_opened_when_it_is_first_asked_for():
    registry = Registry()
    assert (list(registry), registry._open) == (list(DEVICES), {})
    assert registry.canonical("NULL") == "NULL"
    assert registry._open == {}


def test_the_default_is_cpu_unless_the_user_asks_otherwise():
    """A27"""
    registry = Registry()
    assert registry.DEFAULT == "CPU"
    with Context(DEV="cpu:1"):
        assert registry.DEFAULT == "CPU:1"
    registry.DEFAULT = "null"
    assert registry.DEFAULT == "NULL"
    with Context(DEV="PYTHON"):
        assert registry.DEFAULT == "PYTHON"
    assert registry.DEFAULT == "NULL"
    with pytest.raises(DeviceError):
        registry.DEFAULT = "GPU9"


def test_a_device_says_whether_it_works():
    registry = Registry()
    assert registry.problem("CPU") is None
    assert "no device 'VAX'" in registry.problem("VAX")
    registry[registry.DEFAULT].synchronize()
