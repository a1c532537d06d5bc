"""The errors that reach a user, and how they read.

Every class is a `LazuliteError` and the built-in exception that fits, so both can be caught.  A
message names the public function first, then what was expected and what came; below it stand the
user's line, the operands with where they were made, the rule, and one thing to try.  Everything is
turned into text when the error is made: an error keeps no tensor alive.

`point_home` gives the user's line to any exception on its way out of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import FrameType, MappingProxyType

from lazulite.base.origin import Origin, find_frame, user_frame
from lazulite.base.terminal import columns

_NOTHING: Mapping[str, object] = MappingProxyType({})
_MOST_OPERANDS = 8
_WIDEST_LINE = 100


class LazuliteError(Exception):
    """What every error of this package is; raised itself where no narrower class fits.

    `function` is the public function as the user wrote it, `about` maps names to the operands and
    other values that matter: what has a shape and a dtype is shown with both and with its origin.
    """

    origins: list[Origin]
    """Lines of the user's program, the most telling first."""
    told = False
    """Whether `function` is known to be what the user called."""

    def __init__(
        self, function: str, message: str, *, rule: str = "", hint: str = "", about: Mapping[str, object] = _NOTHING
    ) -> None:
        super().__init__(function, message)
        self.function, self.message, self.rule, self.hint = function, message, rule, hint
        frame, called = find_frame(2)
        self.origins = [] if frame is None else [Origin(frame.f_code, frame.f_lasti, called)]
        self.operands = _operand_lines(about, frame)

    def add_origin(self, origin: Origin | None) -> None:
        """Put a line before those known so far: the one that wrote what failed later."""
        if origin is not None and origin.place not in [known.place for known in self.origins]:
            self.origins.insert(0, origin)

    def extra_lines(self) -> list[str]:
        """What a subclass shows between the operands and the rule."""
        return []

    def __str__(self) -> str:
        blocks = [_source_lines(self.origins) + self.operands, self.extra_lines()]
        blocks.append([line for line in (self.rule, f"Try: {self.hint}" if self.hint else "") if line])
        texts = ["\n".join(f"  {line}" for line in block) for block in blocks if block]
        return "\n\n".join([f"{self.function}: {self.message}", *texts])


class ShapeError(LazuliteError, ValueError):
    """Shapes do not fit together.

    Raised while the graph is built, never during execution.
    """


class DTypeError(LazuliteError, TypeError):
    """An element type is not accepted here, or a value has no place in it."""


class AxisError(LazuliteError, IndexError):
    """There is no such axis, or the same axis is named twice."""


class IndexRangeError(LazuliteError, IndexError):
    """An index known on the host lies outside the tensor."""


class ArgumentError(LazuliteError, ValueError):
    """An argument that is neither a shape, an axis, an index nor a type has a value that makes no sense here."""


class CheckError(LazuliteError, ArithmeticError):
    """A check that the setting CHECK asks for found something."""


class SettingError(LazuliteError, ValueError):
    """No such setting, or a value that it does not take."""


class DeviceError(LazuliteError, RuntimeError):
    """A device does not exist, does not work here, or failed while it ran a program."""


class OutOfMemoryError(LazuliteError, MemoryError):
    """A device has no room for a storage, even after its free lists were emptied."""


class GradientError(LazuliteError, RuntimeError):
    """A gradient does not exist, or what it needs is gone."""


class EffectError(LazuliteError, RuntimeError):
    """Stores and calls of a hand-written graph contradict each other, or cannot be understood.

    Raised before anything runs, so every tensor stays as it was.
    """


class CaptureError(LazuliteError, RuntimeError):
    """A captured function did what a capture cannot replay."""


class FormatError(LazuliteError, ValueError):
    """A file is not what its format says; `file`, `field` and `offset` say where."""

    def __init__(
        self, function: str, message: str, *, file: str = "", field: str = "", offset: int | None = None,
        rule: str = "", hint: str = "", about: Mapping[str, object] = _NOTHING,
    ) -> None:  # fmt: skip
        super().__init__(function, message, rule=rule, hint=hint, about=about)
        self.file, self.field, self.offset = file, field, offset

    def extra_lines(self) -> list[str]:
        parts = [("file", self.file), ("field", self.field), ("offset", self.offset)]
        return [f"{name.ljust(8)}{value}" for name, value in parts if value not in ("", None)]


class StageError(LazuliteError, RuntimeError):
    """A fault of the compiler itself: the stage takes the place of the function.

    `text` is the part of the program at fault, `replay` the file from which `lazulite replay` repeats the failure.
    """

    def __init__(
        self, function: str, message: str, *, text: str = "", replay: str = "",
        rule: str = "", hint: str = "", about: Mapping[str, object] = _NOTHING,
    ) -> None:  # fmt: skip
        super().__init__(function, message, rule=rule, hint=hint, about=about)
        self.text, self.replay = text, replay

    def extra_lines(self) -> list[str]:
        return self.text.splitlines() + ([f"Repeat it: lazulite replay {self.replay}"] if self.replay else [])


def point_home(error: BaseException, origin: Origin | None = None) -> None:
    """Give an exception the user's line: one of ours in its message, any other as a note, each line once."""
    origin = origin or user_frame()
    if isinstance(error, LazuliteError):
        error.add_origin(origin)
    elif origin is not None:
        note = "\n".join(f"  {line}" for line in _source_lines([origin]))
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that is spelt most alike, or an empty string; for hints.

    >>> nearest("DEBGU", ["DEV", "DEBUG"])
    'DEBUG'
    """
    from difflib import get_close_matches  # only errors need it, and it is slow to import

    return next(iter(get_close_matches(name, list(names), 1)), "")


# --- layout ------------------------------------------------------------------------------------


def _source_lines(origins: list[Origin]) -> list[str]:
    return [_cut(line) for line in columns((origin.place, origin.text) for origin in origins)]


def _operand_lines(about: Mapping[str, object], frame: FrameType | None) -> list[str]:
    rows = [_row(_name_of(value, frame) or name, value) for name, value in about.items()]
    lines = [_cut(line) for line in columns(rows[:_MOST_OPERANDS])]
    return lines + [f"and {len(rows) - _MOST_OPERANDS} more"] * (len(rows) > _MOST_OPERANDS)


def _row(name: str, value: object) -> tuple[str, ...]:
    if not _is_operand(value):
        return name, str(value)
    shape, dtype, origin = (getattr(value, fact, None) for fact in ("shape", "dtype", "origin"))
    kind = f"{shape} {getattr(dtype, 'name', dtype)}"
    if not isinstance(origin, Origin):
        return name, kind
    return name, kind, f"made by {origin.made_by}" if origin.made_by else "made at", origin.place


def _is_operand(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _name_of(value: object, frame: FrameType | None) -> str:
    """What the user's function calls this very object; empty if it has no name there."""
    if frame is None or not _is_operand(value):
        return ""
    return next((name for name, held in frame.f_locals.items() if held is value and name.isidentifier()), "")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST_LINE else line[: _WIDEST_LINE - 3] + "..."
