"""Where in the user's program a call was made.

`user_frame` walks from its caller outwards to the first frame that belongs neither to this package
nor to the standard library, and returns it as an `Origin`.  Taking one is cheap, because it only
notes two code objects and a position; file, line and text are worked out when somebody asks.  An
`Origin` never keeps a frame, and so no local variable, alive.

`lazulite.llm` and `lazulite.tools` count as users: they call the library as everybody else does.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from itertools import islice
from types import CodeType, FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PROGRAMS = tuple([os.path.join(_PACKAGE, name) + os.sep for name in ("llm", "tools")])
_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_SITE_PACKAGES = ("site-packages", "dist-packages")

_USER, _INSIDE, _UNCLEAR = 0, 1, 2
_kinds: dict[str, int] = {}
"""What is known about a file name: code of the user, code to walk past, or to be told by its module."""


def _kind_of(file: str) -> int:
    if file.startswith("<"):  # typed in, or made by dataclasses and the like on behalf of some module
        return _INSIDE if file.startswith("<frozen ") else _UNCLEAR
    if file.startswith(_PACKAGE):
        return _USER if file.startswith(_PROGRAMS) else _INSIDE
    if file.startswith(_LIBRARY) and not any(part in file for part in _SITE_PACKAGES):
        return _INSIDE
    return _USER


def _is_user(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    kind = _kinds.get(file)
    if kind is None:
        kind = _kinds[file] = _kind_of(file)
    if kind == _UNCLEAR:
        return not str(frame.f_globals.get("__name__", "")).startswith("lazulite.")
    return kind == _USER


class Origin:
    """A place in the user's program, and the function of this package that it called."""

    __slots__ = ("_source",)
    _source: tuple[CodeType, int, CodeType | None] | tuple[str, int, str, str]
    """Where to find the facts, and from the first question on the facts: file, line, function, made by."""

    def __init__(self, code: CodeType, position: int, called: CodeType | None) -> None:
        self._source = code, position, called

    @classmethod
    def at(cls, file: str, line: int, function: str = "", made_by: str = "") -> Origin:
        """An origin whose facts are known already.

        >>> Origin.at("model.py", 17, "forward", "Tensor.relu").made_by
        'relu'
        """
        self = object.__new__(cls)
        self._source = file, line, function, _short(made_by)
        return self

    def _facts(self) -> tuple[str, int, str, str]:
        if len(self._source) == 3:
            code, position, called = self._source
            made_by = _short(called.co_qualname) if called else ""
            self._source = code.co_filename, _line_at(code, position), code.co_name, made_by
        return self._source

    @property
    def file(self) -> str:
        """The file as the interpreter names it."""
        return self._facts()[0]

    @property
    def line(self) -> int:
        """The number of the line, from 1."""
        return self._facts()[1]

    @property
    def function(self) -> str:
        """The user's function that holds the line."""
        return self._facts()[2]

    @property
    def made_by(self) -> str:
        """The function of this package that the line called, as users write it; empty if not known."""
        return self._facts()[3]

    @property
    def text(self) -> str:
        """The source of the line; empty where there is none to read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        """``file:line``, the file relative to the working directory where it lies below it."""
        return f"{_near(self.file)}:{self.line}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        return f"<Origin {self.place}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Origin.at, self._facts()


def _short(qualified: str) -> str:
    """A method by the name that follows the dot in a call; what builds a tensor with its class.

    >>> _short("Tensor.relu"), _short("Tensor.__add__"), _short("Tensor.__init__")
    ('relu', '+', 'Tensor')
    """
    owner, _, name = qualified.rpartition(".")
    if name in ("__init__", "__new__", "__call__"):
        return owner.rpartition(".")[2]
    if not (name.startswith("__") and name.endswith("__")):
        return name
    plain = name[2:-2]
    return _SPELLINGS.get(plain) or _SPELLINGS.get(plain.removeprefix("r"), name)


_SPELLINGS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "neg": "-", "invert": "~",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "getitem": "[]", "setitem": "[] =",
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "imatmul": "@=", "iand": "&=", "ior": "|=", "ixor": "^=", "ilshift": "<<=", "irshift": ">>=",
}  # fmt: skip


def _line_at(code: CodeType, position: int) -> int:
    found = next(islice(code.co_positions(), position // 2, None), (None,))[0]
    return found if found is not None else code.co_firstlineno


def _near(file: str) -> str:
    try:
        below = os.getcwd() + os.sep
    except OSError:  # the directory is gone
        return file
    return file.removeprefix(below)


def find_frame(depth: int = 1) -> tuple[FrameType | None, CodeType | None]:
    """The user's frame and the code of this package that it called; the search begins `depth` callers up."""
    frame: FrameType | None = sys._getframe(depth)
    code: CodeType | None = None
    while frame is not None:
        called, code = code, frame.f_code
        kind = _kinds.get(code.co_filename)
        if kind != _INSIDE and (kind == _USER or _is_user(frame)):
            return frame, called
        frame = frame.f_back
    return None, code


def user_frame() -> Origin | None:
    """The line of the user's program that led here; None where no user code is on the stack."""
    frame, called = find_frame(2)
    return None if frame is None else Origin(frame.f_code, frame.f_lasti, called)
