"""What users get wrong: each mistake has a typed error that says what was expected, what came, and where.

A table of the usual mistakes, to be added to when users find others.  A message names the public function, shows
the line of the mistake, and fits on a screen.
"""
# ruff: noqa: PLW0108  (each mistake is written as a user writes it, on a line of its own)

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import (
    AxisError,
    Context,
    Device,
    DeviceError,
    DTypeError,
    GradientError,
    IndexRangeError,
    LazuliteError,
    OutOfMemoryError,
    SettingError,
    ShapeError,
    Tensor,
    nn,
)

LINES_OF_A_SCREEN = 16

a, b = Tensor.ones(4, 3), Tensor.ones(5, 2)
here, there = Tensor([1.0, 2.0]), Tensor([1.0, 2.0], device="PYTHON")
nowhere = Tensor([1.0], device="NULL")

Mistake = tuple[Callable[[], Any], type[LazuliteError], list[str]]

MISTAKES: dict[str, Mistake] = {
    # data
    "ragged list": (lambda: Tensor([[1, 2], [3]]), ShapeError, ["Tensor:", "expected 2 elements, got [3]"]),
    "uneven depth": (lambda: Tensor([[1, 2], 3]), ShapeError, ["Tensor:", "expected 2 elements, got 3"]),
    "array of objects": (lambda: Tensor(np.array([1, "a"], dtype=object)), DTypeError, ["array of object", "Try:"]),
    "complex array": (lambda: Tensor(np.array([1j])), DTypeError, ["array of complex128", "array.imag"]),
    "array of text": (lambda: Tensor(np.array(["a"])), DTypeError, ["array of <U1", "The dtypes are"]),
    "text": (lambda: Tensor("abc"), DTypeError, ["Tensor:", "str", "'abc'"]),
    "dict": (lambda: Tensor({"a": 1}), DTypeError, ["Tensor:", "dict"]),
    "None in a list": (lambda: Tensor([None]), DTypeError, ["elements must be numbers", "NoneType"]),
    "complex number": (lambda: Tensor([1j]), DTypeError, ["elements must be numbers", "complex"]),
    # names
    "misspelt dtype": (lambda: Tensor([1], dtype="flaot32"), DTypeError, ["'flaot32' is no dtype", "Try: float32"]),
    "unknown dtype": (lambda: a.cast("int23"), DTypeError, ["cast:", "The dtypes are", "Try: int"]),
    "misspelt device": (lambda: Tensor([1], device="CUP"), DeviceError, ["no device 'CUP'", "Try: CPU"]),
    "unknown device": (lambda: a.to("TPU9"), DeviceError, ["no device 'TPU9'", "The devices are CPU"]),
    "unknown emitter": (lambda: Device["CPU:LVM"], DeviceError, ["no emitter LVM", "Try: LLVM"]),
    "misspelt setting": (lambda: Context(DEBGU=2), SettingError, ["no setting DEBGU", "Try: DEBUG"]),
    "value of a setting": (lambda: Context(DEBUG="loud"), SettingError, ["DEBUG takes", "got 'loud'"]),
    "misspelt stage": (lambda: shown("SHOW", "lower.loop"), SettingError, ["no stage lower.loop", "Try: lower.loops"]),
    "misspelt end": (lambda: shown("STOP", "kernel.aply"), SettingError, ["no stage kernel.aply", "kernel.apply"]),
    "misspelt feature": (lambda: shown("CPU_FEATURES", "-avx51f"), SettingError, ["avx51f", "Try: avx512f"]),
    "misspelt keyword": (lambda: a.sum(keepdimm=True), DTypeError, ["sum:", "'keepdimm'", "Try: keepdim"]),
    "missing argument": (lambda: a.conv2d(), DTypeError, ["conv2d:", "'weight'", "conv2d(weight, bias=None"]),
    # shapes
    "matmul": (lambda: a @ b, ShapeError, ["matmul:", "3 and 5 in (4, 3) @ (5, 2)", "(4, 3) float32", "made by ones"]),
    "broadcast": (lambda: a + b, ShapeError, ["add:", "(4, 3) and (5, 2)", "made by ones"]),
    "concatenation of ranks": (lambda: a.cat(here), ShapeError, ["cat:", "(4, 3) and (2,)", "All sizes but that"]),
    "stack of shapes": (lambda: Tensor.stack(a, b), ShapeError, ["stack:", "(4, 3) and (5, 2)"]),
    "reshape": (lambda: a.reshape(5, 5), ShapeError, ["reshape:", "12 elements", "(5, 5)", "At most one size is -1"]),
    "expand": (lambda: a.expand(5, 5), ShapeError, ["expand:", "(4, 3) does not expand to (5, 5)"]),
    "assign": (lambda: a.assign(b), ShapeError, ["assign:", "(5, 2) does not broadcast to (4, 3)"]),
    "convolution": (lambda: a.conv2d(b), ShapeError, ["conv2d:", "Input (N, C, ..)", "weight"]),
    "size of a layer": (lambda: nn.Linear(3, 3)(here), ShapeError, ["linear:", "2 and 3", "made by Linear"]),
    # axes and indices
    "axis": (lambda: a.sum(5), AxisError, ["sum:", "axis 5", "rank 2", "Axes run from -2 to 1"]),
    "axis that is no number": (lambda: a.sum("x"), AxisError, ["sum:", "got 'x'"]),
    "axis twice": (lambda: a.permute(0, 0), AxisError, ["permute:", "(0, 0)"]),
    "index": (lambda: a[7], IndexRangeError, ["getitem:", "index 7", "axis 0 of size 4"]),
    "too many indices": (lambda: a[0, 0, 0], IndexRangeError, ["getitem:", "3 indices for the 2 axes"]),
    # values
    "item of many": (lambda: a.item(), ShapeError, ["item:", "(4, 3)", "Try: select an element"]),
    "truth of many": (lambda: bool(a > 1), ShapeError, ["bool:", "(4, 3)", "any() or all()"]),
    "number of many": (lambda: float(a), ShapeError, ["float:", "(4, 3)", "Try:"]),
    "NULL device": (lambda: nowhere.tolist(), DeviceError, ["tolist:", "NULL", "keeps no data", "PYTHON"]),
    "NULL as array": (lambda: nowhere.numpy(), DeviceError, ["numpy:", "NULL", "keeps no data"]),
    "mixed devices": (lambda: here + there, DeviceError, ["add:", "CPU and PYTHON", "Try:", ".to('CPU')"]),
    "host without room": (lambda: Tensor.zeros(1 << 46).numpy(), OutOfMemoryError, ["numpy:", "no room for", "Try:"]),
    # types
    "shift by a float": (lambda: Tensor([1, 2]) << 1.5, DTypeError, ["lshift:", "no meaning for float32"]),
    "and of floats": (lambda: a & 1, DTypeError, ["bitwise_and:", "float32", "Try: cast"]),
    "text as operand": (lambda: a + "x", DTypeError, ["add:", "str", "'x'"]),
    "number as weight": (lambda: a.conv2d(3), DTypeError, ["conv2d:", "weight is a tensor, got int 3"]),
    "list as number": (lambda: a.celu([1]), DTypeError, ["celu:", "alpha is a number, got list [1]", "Try: celu"]),
    "device as number": (lambda: a.to(5), DTypeError, ["to:", "a device, a dtype or like a tensor, got int"]),
    # gradients
    "backward of many": (lambda: here.backward(), ShapeError, ["backward:", "(2,)", "sum() or .mean()"]),
    "backward of integers": (lambda: Tensor([1]).backward(), GradientError, ["backward:", "float", "int32"]),
    "gradient of another shape": (lambda: here.backward(b), ShapeError, ["backward:", "(5, 2)", "(2,)"]),
    "gradient for integers": (lambda: here.sum().gradient(Tensor([1])), GradientError, ["gradient:", "int32"]),
    "integer parameters": (lambda: nn.optim.SGD([Tensor([1])], lr=1.0), DTypeError, ["SGD:", "floats", "int32"]),
}  # fmt: skip


def shown(setting: str, value: str) -> None:
    with Context(**{setting: value}):
        (Tensor([1.0, 2.0]) * 3).tolist()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str) -> None:
    wrong, kind, fragments = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        wrong()
    text = str(caught.value)

    assert [] == [fragment for fragment in fragments if fragment not in text], text
    assert text.count("\n") < LINES_OF_A_SCREEN and max(map(len, text.splitlines()[:1])) <= 160, text
    assert caught.value.origins, "the user's line is missing"
    own = inspect.getsourcelines(wrong)[1]
    assert __file__ == caught.value.origins[0].file, text
    assert own == caught.value.origins[0].line or "shown" in wrong.__code__.co_names, text


def test_a_full_device_names_its_largest_tensors_and_the_lines_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Tensor.rand(512, 512).realize()
    monkeypatch.setattr(Device["CPU"].allocator, "limit", Device["CPU"].allocator.in_use)
    wanted = Tensor.rand(300, 300, 30)
    with pytest.raises(OutOfMemoryError) as caught:
        wanted.realize()
    text = str(caught.value)

    assert text.startswith("realize: CPU has no room for 10.80 MB")
    assert "wanted = Tensor.rand(300, 300, 30)" in text and "wanted.realize()" in text
    made = inspect.getsourcelines(test_a_full_device_names_its_largest_tensors_and_the_lines_that_made_them)[1] + 1
    assert f"1.05 MB {kept.origin.place if kept.origin else ''}" in text and f":{made}" in text


def test_an_integer_that_does_not_fit_names_the_method_and_the_line() -> None:
    with pytest.raises(OverflowError, match=r"^add: the integer 300 does not fit uint8") as caught:
        Tensor([1, 2], dtype="uint8") + 300
    assert any("+ 300" in note for note in caught.value.__notes__)


def test_class_numbers_of_any_integer_type_are_held_against_the_ignored_class() -> None:
    scores, classes = Tensor([[0.0, 0.0]]), Tensor([1], dtype="uint8")
    assert 0.6931 == round(scores.sparse_categorical_crossentropy(classes).item(), 4)
