import gc
import pickle
import traceback
import weakref

import pytest

from lazulite.base import errors
from lazulite.base.errors import (
    ArgumentError,
    AxisError,
    CaptureError,
    DeviceError,
    DTypeError,
    EffectError,
    FormatError,
    GradientError,
    IndexRangeError,
    LazuliteError,
    OutOfMemoryError,
    SettingError,
    ShapeError,
    StageError,
    nearest,
    point_home,
)
from lazulite.base.origin import Origin
from lazulite.ir.dtype import dtypes


class Operand:
    def __init__(self, shape, made_by="", line=0):
        self.shape, self.dtype = shape, dtypes.float32
        self.origin = Origin.at("/model/model.py", line, "forward", made_by) if line else None


def raised(error, *args, **kwargs):
    """The error as it is caught, made in this test file."""
    with pytest.raises(error) as caught:
        raise error(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ShapeError, ValueError), (FormatError, ValueError), (SettingError, ValueError), (DTypeError, TypeError),
        (AxisError, IndexError), (IndexRangeError, IndexError), (DeviceError, RuntimeError),
        (GradientError, RuntimeError), (StageError, RuntimeError), (CaptureError, RuntimeError),
        (OutOfMemoryError, MemoryError), (EffectError, RuntimeError),
        (ArgumentError, ValueError),
    ],
)  # fmt: skip
def test_every_error_is_ours_and_the_builtin_that_fits(error, builtin):
    assert issubclass(error, LazuliteError) and issubclass(error, builtin)


def test_no_error_class_is_without_a_builtin_and_a_docstring():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, LazuliteError)]
    assert 15 == len(classes)
    assert all(c.__doc__ for c in classes)


def test_the_message_reads_from_the_function_to_what_to_try():
    hidden, weight = Operand((4, 3), "Tensor.relu", 15), Operand((5, 2), "rand", 6)
    error = raised(
        ShapeError, "matmul", "inner sizes must be equal, got 3 and 5 in (4, 3) @ (5, 2)",
        about={"hidden": hidden, "weight": weight}, hint="hidden @ weight[:3]",
        rule="The last axis of the left side must equal the second last of the right side.",
    )  # fmt: skip
    first, blank, line, *rest = str(error).splitlines()
    assert "matmul: inner sizes must be equal, got 3 and 5 in (4, 3) @ (5, 2)" == first
    assert "" == blank
    assert "test_errors.py:" in line and line.endswith("raise error(*args, **kwargs)")
    assert [
        "  hidden   (4, 3) float32   made by relu   /model/model.py:15",
        "  weight   (5, 2) float32   made by rand   /model/model.py:6",
        "",
        "  The last axis of the left side must equal the second last of the right side.",
        "  Try: hidden @ weight[:3]",
    ] == rest


def test_an_operand_has_the_name_that_the_user_gave_it():
    logits = Operand((4, 3))
    error = ShapeError("relu", "no", about={"x": logits, "limit": 3})
    assert [["logits", "(4,", "3)", "float32"], ["limit", "3"]] == [line.split() for line in error.operands]


def test_a_message_fits_one_screen():
    many = {f"input {i}": Operand((i,) * 60) for i in range(500)}
    lines = str(ShapeError("cat", "shapes differ", about=many)).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 102
    assert "  and 492 more" == lines[-1]


def test_an_error_keeps_no_operand_alive():
    def fail():
        operand = Operand((2,))
        return weakref.ref(operand), ShapeError("relu", "no", about={"x": operand})

    alive, error = fail()
    gc.collect()
    assert alive() is None and "(2,)" in str(error)


def test_the_line_that_wrote_it_stands_before_the_line_that_ran_it():
    error = raised(DeviceError, "realize", "the device stopped")
    error.add_origin(Origin.at("/model/model.py", 17, "forward", "Tensor.exp"))
    error.add_origin(error.origins[0])
    error.add_origin(None)
    assert [origin.file for origin in error.origins] == ["/model/model.py", __file__]


def test_any_exception_can_carry_the_users_line_once():
    origin = Origin.at("/model/model.py", 17)
    for error in (KeyError("x"), ShapeError("relu", "no")):
        point_home(error, origin)
        point_home(error, origin)
        assert 1 == "".join(traceback.format_exception(error)).count("/model/model.py:17")


def test_without_a_line_given_the_present_one_is_carried():
    error = KeyError("x")
    point_home(error)
    assert "point_home(error)" in error.__notes__[0]


@pytest.mark.parametrize(
    "error",
    [
        ShapeError("relu", "no", about={"x": Operand((2,))}, hint="less"),
        FormatError("load", "too short", file="a.gguf", field="version", offset=4),
        StageError("lower.vectors", "two lanes", text="%1 = add", replay="failure.txt"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_pickles_with_its_text(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_a_format_error_says_where_in_the_file():
    error = raised(FormatError, "load", "the file ends early", file="a.gguf", field="version", offset=0)
    assert ("a.gguf", "version", 0) == (error.file, error.field, error.offset)
    assert "  file    a.gguf\n  field   version\n  offset  0" in str(error)


def test_a_stage_error_shows_the_program_and_how_to_repeat_it():
    error = raised(StageError, "lower.vectors", "a value has two lanes", text="a = x + y\n    ^", replay="fault.txt")
    assert "  a = x + y\n      ^\n  Repeat it: lazulite replay fault.txt" in str(error)


def test_the_nearest_name_is_empty_where_nothing_is_near():
    assert "CPU" == nearest("CPUU", ["CPU", "PYTHON"])
    assert "" == nearest("xyzzy", ["CPU", "PYTHON"])
