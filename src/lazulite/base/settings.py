"""Settings: declared once, read everywhere as ``SETTINGS.NAME``, changed by `Context`.

A value comes from the innermost `Context` of this thread or task, else from the environment variable
``LAZULITE_<NAME>`` (for a few also ``<NAME>``), else from the declaration.  The environment is read
once, at the first use.  A name that nobody declared and a value of the wrong kind raise `SettingError`;
nothing is ignored in silence.

A new thread starts without the `Context` of its parent: who hands work to a thread on behalf of a
user runs it in `contextvars.copy_context()`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar, overload

from lazulite.base.errors import SettingError, nearest

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

PREFIX = "LAZULITE_"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """What a setting takes: how to name it, and how to make a value of it or say no with None."""

    name: str
    accept: Callable[[object], T | None]


def flag() -> Kind[int]:
    """0 or 1, True or False."""
    return whole(0, 1, "0 or 1")


def whole(low: int, high: int | None = None, name: str = "") -> Kind[int]:
    """An integer from `low` to `high`."""

    def accept(value: object) -> int | None:
        if isinstance(value, str):
            value = int(value) if value.strip().lstrip("-").isdecimal() else None
        return int(value) if isinstance(value, int) and low <= value and (high is None or value <= high) else None

    return Kind(name or (f"an integer from {low}" + (f" to {high}" if high is not None else "")), accept)


def text(name: str = "text") -> Kind[str]:
    """Any text; what it means is for the reader of the setting."""
    return Kind(name, lambda value: os.fspath(value) if isinstance(value, str | os.PathLike) else None)


def choices(*known: str) -> Kind[str]:
    """A comma-separated selection of known words, or nothing."""

    def accept(value: object) -> str | None:
        words = value.split(",") if isinstance(value, str) and value else []
        return value if isinstance(value, str) and all(word in known for word in words) else None

    return Kind(f"a list of {', '.join(known)}", accept)


def one_of(*known: str) -> Kind[str]:
    """One of some known words, or nothing."""
    return Kind(f"one of {', '.join(known)}", lambda value: str(value) if value in ("", *known) else None)


def switches(name: str) -> Kind[str]:
    """A comma-separated list of names, each after a minus; what the names mean is for the reader of the setting."""

    def accept(value: object) -> str | None:
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) and value else []
        return ",".join(parts) if isinstance(value, str) and all(p[:1] == "-" and p[1:] for p in parts) else None

    return Kind(f"{name}, each after a minus", accept)


class Setting(Generic[T]):
    """One declared setting; as an attribute of `SETTINGS` it reads as its current value."""

    __slots__ = ("default", "help", "keyed", "kind", "name", "notyet", "selects", "unprefixed")
    name: str

    def __init__(
        self,
        kind: Kind[T],
        default: T,
        help: str,
        *,
        keyed: bool = False,
        selects: bool = False,
        unprefixed: bool = False,
        notyet: bool = False,
    ) -> None:
        self.kind, self.default, self.help = kind, default, help
        self.keyed, self.selects, self.unprefixed, self.notyet = keyed, keyed or selects, unprefixed, notyet
        """`keyed`: the value decides what is compiled, and so is part of every plan's key.  `selects`: within this
        process another value may need another program.  `notyet`: nothing heeds it so far, so it takes only its
        default instead of being ignored."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, instance: Settings, owner: type) -> T: ...
    def __get__(self, instance: Settings | None, owner: type) -> Setting[T] | T:
        if instance is None:
            return self
        return (_current.get() or _root()).values[self.name]  # type: ignore[no-any-return]

    def __set__(self, instance: Settings, value: T) -> None:
        raise SettingError("SETTINGS", f"{self.name} cannot be set", hint=f"with Context({self.name}={value!r}): ...")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, the strongest first."""
        return (PREFIX + self.name, self.name) if self.unprefixed else (PREFIX + self.name,)

    def check(self, where: str, value: object) -> T:
        """The value as this setting holds it, or an error that says what it takes."""
        accepted = self.kind.accept(value)
        if accepted is None:
            raise SettingError(where, f"{self.name} takes {self.kind.name}, got {value!r}", rule=self.help)
        if self.notyet and accepted != self.default:
            raise SettingError(where, f"{self.name} has no effect yet", rule=self.help)
        return accepted


class Settings:
    """Every setting; `SETTINGS` is the only instance.

    >>> SETTINGS.FUSE
    1
    """

    __slots__ = ()

    # fmt: off
    DEV = Setting(text("DEVICE[:EMITTER] or DEVICE:NUMBER"), "CPU",
                  "The default device, such as CPU, CPU:LLVM, CPU:1 or PYTHON.", unprefixed=True)
    DEBUG = Setting(whole(0, 5), 0, "How much to tell on stderr: 1 what is compiled, 2 each kernel with its time, "
                    "3 its schedule, 4 its text, 5 every stage.", unprefixed=True)
    BEAM = Setting(whole(0), 0, "How many candidate schedules a search keeps for each kernel; 0 does not search.",
                   keyed=True, unprefixed=True)
    BEAM_SECONDS = Setting(whole(0), 10, "How long such a search may try schedules of one kernel.")
    THREADS = Setting(whole(0), 0, "Threads that compute on the CPU; 0 is one for each physical core.", selects=True)
    CACHE = Setting(flag(), 1, "Keep plans and compiled programs on disk.")
    CACHE_DIR = Setting(text("a directory"), "", "Where they are kept; by default `lazulite` in the user's cache "
                        "directory.")
    FUSE = Setting(flag(), 1, "Merge operations into kernels; 0 makes each operation its own.", keyed=True)
    OPT = Setting(flag(), 1, "Give kernels schedule steps; 0 leaves plain loops.", keyed=True)
    PANELS = Setting(whole(0), 256, "Megabytes of operands that are kept in the order in which kernels read them; 0 "
                     "keeps none.", keyed=True)
    PLAN_MEMORY = Setting(flag(), 1, "Let intermediate values share memory.", keyed=True)
    VERIFY = Setting(flag(), 0, "Check the program between all stages.")
    SHOW = Setting(text("the name of a stage"), "", "Print the program before and after this stage.", selects=True)
    STOP = Setting(text("the name of a stage"), "", "End the compilation after this stage.", selects=True)
    RULES = Setting(switches("names of rules"), "", "Rewrite rules to leave out, such as "
                    "-algebra.gather_constants.", keyed=True)
    CHECK = Setting(choices("nan", "reference", "bounds"), "", "Stop at the first operation that makes a value that is "
                    "not finite (nan), at the first kernel that differs from the interpreter (reference), and at "
                    "any index that can leave its memory or axis (bounds).", keyed=True)
    RELAXED = Setting(flag(), 0, "Allow foldings that are wrong for inf, nan and -0.", keyed=True, notyet=True)
    TRAINING = Setting(flag(), 0, "Layers behave as in training: batch statistics, dropout.")
    CPU_FEATURES = Setting(switches("features"), "", "Processor features not to use, such as "
                           "-amx,-avx512f.", keyed=True)
    MATRIX_UNITS = Setting(flag(), 1, "Let matrix units multiply, for which subnormal numbers are zero; 0 keeps "
                           "vector code, for which they are not.", keyed=True)
    PROFILE = Setting(text("a file name"), "", "When the process ends, write the times of all kernels to this file in "
                      "Chrome's trace format.")
    ALL_REDUCE = Setting(one_of("naive", "ring", "all-to-all"), "", "How devices combine partial results; by default "
                         "naive where there are few elements, else all-to-all.", selects=True)
    # fmt: on

    @property
    def key(self) -> tuple[object, ...]:
        """The values that decide what is compiled, for keys of plans and programs."""
        layer = _current.get() or _root()
        if layer.key is None:
            layer.key = tuple([layer.values[setting.name] for setting in DECLARED.values() if setting.keyed])
        return layer.key

    @property
    def selection(self) -> tuple[object, ...]:
        """The values that decide which program runs, for keys within this process."""
        layer = _current.get() or _root()
        if layer.selection is None:
            layer.selection = tuple([layer.values[setting.name] for setting in DECLARED.values() if setting.selects])
        return layer.selection

    @property
    def watched(self) -> bool:
        """Whether somebody looks at each launch: then they are handed over one by one."""
        layer = _current.get() or _root()
        if layer.watched is None:
            values = layer.values
            layer.watched = values["DEBUG"] >= 2 or bool(values["CHECK"] or values["PROFILE"])
        return layer.watched

    @property
    def traced(self) -> int:
        """A number for the values that decide what a function of tensors does, and whether somebody watches it."""
        layer = _current.get() or _root()
        if layer.traced is None:
            values = layer.values
            facts = self.watched, values["TRAINING"], values["DEV"], *self.selection
            layer.traced = _traced.setdefault(facts, len(_traced))
        return layer.traced


_traced: dict[tuple[object, ...], int] = {}
DECLARED: Mapping[str, Setting[Any]] = {n: s for n, s in vars(Settings).items() if isinstance(s, Setting)}
SETTINGS = Settings()


class _Layer:
    """All values as one `Context`, or the environment, leaves them, and what they were before."""

    __slots__ = ("key", "outer", "selection", "traced", "values", "watched")

    def __init__(self, values: dict[str, Any], outer: _Layer | None) -> None:
        self.values, self.outer = values, outer
        self.key: tuple[object, ...] | None = None
        self.selection: tuple[object, ...] | None = None
        self.traced: int | None = None
        self.watched: bool | None = None


_current: ContextVar[_Layer | None] = ContextVar("lazulite_settings", default=None)


@cache
def _root() -> _Layer:
    return _Layer(read_environment(os.environ), None)


def read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The value of every setting in this environment; an empty variable is as good as none.

    >>> read_environment({"LAZULITE_DEBUG": "2"})["DEBUG"]
    2
    """
    for variable in environment:
        if variable.startswith(PREFIX) and variable.removeprefix(PREFIX) not in DECLARED:
            raise _unknown("environment", variable, [PREFIX + name for name in DECLARED])
    values: dict[str, Any] = {}
    for setting in DECLARED.values():
        given = next((v for v in setting.variables if environment.get(v)), None)
        values[setting.name] = setting.default if given is None else setting.check(given, environment[given])
    return values


def _unknown(where: str, name: str, known: list[str]) -> SettingError:
    near = nearest(name, known)
    return SettingError(
        where,
        f"there is no setting {name}",
        rule="docs/reference/settings.md lists all settings.",
        hint=near or "lazulite doctor, which prints them",
    )


class Context:
    """Other values for some settings, inside a ``with`` block or a function.

    One object may be entered any number of times, also by a function that calls itself; leaving
    restores what was there at the matching entry.

    >>> with Context(DEBUG=2):
    ...     SETTINGS.DEBUG
    2
    >>> @Context(FUSE=0)
    ... def fuses():
    ...     return SETTINGS.FUSE
    >>> fuses(), SETTINGS.FUSE
    (0, 1)
    """

    __slots__ = ("_changes",)

    def __init__(self, **changes: object) -> None:
        for name in changes.keys() - DECLARED.keys():
            raise _unknown("Context", name, list(DECLARED))
        self._changes = {name: DECLARED[name].check("Context", value) for name, value in changes.items()}

    def __enter__(self) -> Context:
        outer = _current.get()
        _current.set(_Layer((outer or _root()).values | self._changes, outer))
        return self

    def __exit__(self, *failure: object) -> None:
        layer = _current.get()
        if layer is not None:
            _current.set(layer.outer)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise SettingError(
                "Context",
                f"cannot wrap the generator {function.__name__}",
                rule="A generator runs in the settings of whoever asks it for the next value.",
                hint="`with Context(...)` around the part of its body that needs it",
            )
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_later(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return call_later  # type: ignore[return-value]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return call


def settings_table() -> str:
    """All settings as a Markdown table; `docs/reference/settings.md` holds it."""
    rows = ["| setting | takes | default | what it does |", "| --- | --- | --- | --- |"]
    for setting in DECLARED.values():
        names = ", ".join(f"`{name}`" for name in reversed(setting.variables))
        default = f"`{setting.default}`" if setting.default != "" else "none"
        says = setting.help + (" It has no effect yet, and takes only the default." if setting.notyet else "")
        rows.append(f"| `{setting.name}` ({names}) | {setting.kind.name} | {default} | {says} |")
    return "\n".join(rows)
