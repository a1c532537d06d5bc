"""What a function can reach: the tensors, numbers and other values in objects, closures and globals.

`survey(roots)` walks containers (lists, tuples, dictionaries, dataclasses), the attributes of objects, and
what functions refer to: their closures, defaults and those globals that their code names.  It finds
tensors in a fixed order with readable paths, numbers apart from everything else, and a key that two
surveys share if they differ only in their tensors' contents and in numbers.

`Survey.unchanged` tells quickly whether every container still holds the very same objects; `changes` tells
which places hold something else.  Code of this package, of the standard library and of installed packages
is not walked: its values are compared by identity.
"""

from __future__ import annotations

import dataclasses
import operator
import os
import sys
import sysconfig
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from lazulite.engine.marks import Itself, is_number, mark
from lazulite.ir.size import Size

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MODELS = ("lazulite.nn", "lazulite.llm")
"""Parts of this package whose objects hold tensors on behalf of the user."""
_FOREIGN = ("site-packages", "dist-packages")
_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_CHANGING = (bytearray, memoryview, set)
"""Types whose values change without being another object."""
_UNCHANGING = frozenset({bool, int, str, bytes, type(None), type(...), range})
"""Types whose values never change, and are compared by value where they are keys, or no numbers."""
MISSING = object()
"""In the place of a value where there is none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A container, what it held, and how to see and change what it holds."""

    path: str
    names: Callable[[], Iterable[Any]]
    """The places in it: keys, numbers, or names of attributes or globals."""
    current: Callable[[], Iterable[Any]]
    """What is in these places."""
    put: Callable[[Any, Any], object]
    """Called with a place and a value."""
    places: tuple[Any, ...]
    held: tuple[Any, ...]
    brackets: bool
    """Whether a place is written in brackets behind the path."""
    grows: bool
    """Whether a value can be put into a place that is not there yet."""

    def path_of(self, place: Any) -> str:
        """How a place is written."""
        if self.brackets:
            return f"{self.path}[{place!r}]"
        return ".".join([part for part in (self.path, place) if part])


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A place that holds something else than before; `value` is `MISSING` where it is gone."""

    part: int
    place: Any
    value: Any
    path: str
    can_be_put: bool


@dataclasses.dataclass(slots=True)
class _Scope:
    """Globals, or the names in a module or class, and those of them that some code uses."""

    path: str
    values: Mapping[str, Any]
    put: Callable[[str, Any], object]
    names: dict[str, Any] = dataclasses.field(default_factory=dict)


class Survey:
    """What was found; see the module."""

    def __init__(self, tensor: type, beside: Survey | None = None) -> None:
        self.tensor = tensor
        self.tensors: list[Any] = []
        self.paths: list[str] = []
        self.numbers: list[Any] = []
        self.sizes: list[Size] = []
        """Bound variables, and what was computed with them."""
        self.facts: list[tuple[str, Hashable]] = []
        """Everything that is neither a tensor nor a number, with its path."""
        self.parts: list[Part] = []
        self.opaque = ""
        """The path of a value that may change without a trace, if there is one."""
        self._entered: dict[int, int] = {} if beside is None else dict(beside._entered)
        self._kept: list[object] = []
        self._scopes: dict[int, _Scope] = {}
        self._closures: list[tuple[Part, CellType]] = []
        self._cells: list[tuple[CellType, Any]] = []
        """Variables of closures, which are looked at directly; and the other parts."""
        self._containers: list[Part] = []
        self._pending: list[tuple[str, Any]] = []

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Equal for surveys that differ in tensors and numbers at most."""
        return tuple([fact for _, fact in self.facts])

    def unchanged(self) -> bool:
        """Whether every container holds the objects that it held."""
        try:
            for cell, value in self._cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # it is empty now
            return False
        for part in self._containers:
            current = tuple(part.current())
            if len(current) != len(part.held) or not all(map(operator.is_, current, part.held)):
                return False
        return True

    def changes(self) -> Iterator[Change]:
        """The places that hold another object than they did."""
        for number, part in enumerate(self.parts):
            before = dict(zip(part.places, part.held, strict=True))
            now = dict(zip(part.names(), part.current(), strict=True))
            for place in before | now:
                value = now.get(place, MISSING)
                if value is not before.get(place, MISSING):
                    yield Change(number, place, value, part.path_of(place), part.grows or place in before)

    # --- walking --------------------------------------------------------------------------------

    def walk(self, roots: Iterable[tuple[str, Any]]) -> Survey:
        """Add what the roots lead to."""
        self._pending = list(roots)[::-1]
        while self._pending:
            path, value = self._pending.pop()
            self._visit(path, value)
        for scope in [scope for scope in self._scopes.values() if scope.names]:
            self._watch_some(scope.path, tuple(scope.names), partial(_named, scope.values), scope.put)
        cells = {id(part) for part, _ in self._closures}
        self._cells = [(cell, part.held[0]) for part, cell in self._closures]
        self._containers = [part for part in self.parts if id(part) not in cells]
        return self

    def _visit(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, self.tensor):
            self.tensors.append(value)
            self.paths.append(path)
            self._note(path, kind)
        elif kind is Size:
            self.sizes.append(value)
            self._note(path, kind)
        elif kind is int or kind is float or is_number(value):
            self.numbers.append(value)
            self._note(path, kind)
        elif kind in _UNCHANGING or isinstance(value, Enum):
            self._note(path, mark(value))
        elif id(value) in self._entered:
            self._note(path, ("again", self._entered[id(value)]))
        else:
            self._entered[id(value)] = len(self._entered)
            self._kept.append(value)
            self._enter(path, value)

    def _enter(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, dict | list | tuple):
            self._container(path, value)
        elif isinstance(value, FunctionType):
            self._function(path, value)
        elif isinstance(value, MethodType):
            self._note(path, MethodType)
            self._push([(path, value.__func__), (f"{path}.__self__", value.__self__)])
        elif isinstance(value, partial):
            self._note(path, partial)
            self._push([(path, value.func), (f"{path}.args", value.args), (f"{path}.keywords", value.keywords)])
        elif isinstance(value, CellType):
            self._note(path, CellType)
            part = self._watch_some(path, ("",), partial(_contents, value), partial(_fill, value))
            if part.held[0] is not MISSING:
                self._closures.append((part, value))
            self._push([(path, part.held[0])])
        elif isinstance(value, ModuleType | type | BuiltinFunctionType) or _is_inner(kind):
            self._note(path, Itself(value))
            self._push([(path, inner) for inner in [getattr(value, "__wrapped__", None)] if inner is not None])
        elif isinstance(value, _CHANGING) or (not isinstance(value, Hashable) and not hasattr(value, "__dict__")):
            self.opaque = self.opaque or path
            self._note(path, Itself(value))
        else:
            self._object(path, value)

    def _container(self, path: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, tuple):
            names: Iterable[Any] = getattr(value, "_fields", range(len(value)))
            self._note(path, (kind, len(value)))
            self._push((f"{path}[{name!r}]", each) for name, each in zip(names, value, strict=True))
            return
        if isinstance(value, dict):
            self._note(path, (kind, tuple([mark(key) if type(key) in _UNCHANGING else type(key) for key in value])))
            self._push((f"a key of {path}", key) for key in value if type(key) not in _UNCHANGING)
            part = self._watch(path, value.keys, value.values, value.__setitem__, brackets=True)
        else:
            self._note(path, (kind, len(value)))
            part = self._watch(
                path, lambda: range(len(value)), value.copy, value.__setitem__, brackets=True, grows=False
            )
        self._push_held(part)

    def _object(self, path: str, value: Any) -> None:
        kind = type(value)
        state = getattr(value, "__dict__", None)
        if _is_frozen(kind):  # as a tuple: nobody assigns to it
            names = tuple([each.name for each in dataclasses.fields(value)])
            self._note(path, (kind, names))
            self._push([(f"{path}.{name}", getattr(value, name)) for name in names])
            self._methods_of(path, kind)
            return
        if isinstance(state, dict):
            self._note(path, (kind, tuple(state)))
            if _is_foreign(kind):
                simple = tuple([name for name, each in state.items() if isinstance(each, self.tensor | int | float)])
                self._push_held(self._watch_some(path, simple, partial(_named, state), state.__setitem__))
                return
            self._push_held(self._watch(path, state.keys, state.values, state.__setitem__))
        slots = _slots(kind)
        if slots:
            self._note(path, (kind, slots))
            self._push_held(self._watch_some(path, slots, partial(_attributes, value), partial(setattr, value)))
        if not slots and not isinstance(state, dict):
            self._note(path, (kind, value) if _is_foreign(kind) and _has_hash(value) else Itself(value))
            return
        self._methods_of(path, kind)

    def _methods_of(self, path: str, kind: type) -> None:
        for cls in kind.__mro__:
            if not _is_inner(cls) and not _is_foreign(cls):
                self._push((path, method) for method in _methods(cls))

    def _function(self, path: str, function: FunctionType) -> None:
        self._note(path, function)
        if hasattr(function, "__wrapped__"):
            self._push([(path, function.__wrapped__)])
        if _is_closed(function.__code__.co_filename):
            return
        self._push(
            (path, value) for value in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        )
        free = function.__code__.co_freevars
        self._push(zip(free, function.__closure__ or (), strict=True))
        namespace, used = function.__globals__, _used_names(function.__code__)
        for name, value in self._names(id(namespace), _Scope("", namespace, namespace.__setitem__), used):
            self._push([(name, value)])
            if isinstance(value, ModuleType | type) and not _is_closed_module(value):
                scope = _Scope(name, vars(value), partial(setattr, value))
                self._push((f"{name}.{inner}", each) for inner, each in self._names(id(value), scope, used))

    def _names(self, key: int, scope: _Scope, used: Iterable[str]) -> list[tuple[str, Any]]:
        """Watch those names of a scope that are used; the ones that were not watched before, with their values."""
        scope = self._scopes.setdefault(key, scope)
        added = [(name, scope.values[name]) for name in used if name in scope.values and name not in scope.names]
        scope.names.update(added)
        return added

    def _watch(
        self, path: str, names: Callable[[], Iterable[Any]], current: Callable[[], Iterable[Any]],
        put: Callable[[Any, Any], object], *, brackets: bool = False, grows: bool = True,
    ) -> Part:  # fmt: skip
        part = Part(path, names, current, put, tuple(names()), tuple(current()), brackets, grows)
        self.parts.append(part)
        return part

    def _watch_some(
        self, path: str, places: tuple[str, ...], current: Callable[[tuple[str, ...]], Iterable[Any]],
        put: Callable[[Any, Any], object],
    ) -> Part:  # fmt: skip
        """Watch those places of a container only."""
        return self._watch(path, lambda: places, partial(current, places), put)

    def _push_held(self, part: Part) -> None:
        """Walk what a container holds."""
        self._push((part.path_of(place), value) for place, value in zip(part.places, part.held, strict=True))

    def _note(self, path: str, fact: Any) -> None:
        self.facts.append((path, fact))

    def _push(self, values: Iterable[tuple[str, Any]]) -> None:
        self._pending += list(values)[::-1]


def survey(tensor: type, roots: Iterable[tuple[str, Any]], beside: Survey | None = None) -> Survey:
    """What named values lead to, without what is in the survey `beside`; `tensor` is the class of tensors."""
    return Survey(tensor, beside).walk(roots)


# --- containers --------------------------------------------------------------------------------


def _named(namespace: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    return [namespace.get(name, MISSING) for name in names]


def _attributes(value: Any, names: tuple[str, ...]) -> list[Any]:
    return [getattr(value, name, MISSING) for name in names]


def _contents(cell: CellType, places: tuple[str, ...] = ()) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not assigned yet
        return [MISSING]


def _fill(cell: CellType, place: str, value: Any) -> None:
    cell.cell_contents = value


# --- what is walked ----------------------------------------------------------------------------


def _has_hash(value: object) -> bool:
    """Whether a value says that it can be hashed, and can be."""
    try:
        hash(value)
    except Exception:
        return False
    return True


def _is_closed(file: str) -> bool:
    """Whether code of this file is not walked."""
    return file.startswith((_PACKAGE, _LIBRARY)) or any(part in file for part in _FOREIGN)


def _file_of(module: str) -> str:
    return str(getattr(sys.modules.get(module), "__file__", None) or "")


def _is_closed_module(value: ModuleType | type) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    if name == "__main__":  # the program itself, whoever runs it: a debugger or a test runner is a file of the library
        return False
    return name.partition(".")[0] in sys.stdlib_module_names or _is_closed(_file_of(name))


def _is_inner(kind: type) -> bool:
    """Whether objects of a class are machinery of this package, as devices and nodes are."""
    module = str(kind.__module__)
    return module.startswith("lazulite.") and not module.startswith(_MODELS)


def _is_foreign(kind: type) -> bool:
    """Whether a class is somebody else's, so that only what its objects hold directly is looked at."""
    return not str(kind.__module__).startswith(_MODELS) and _is_closed_module(kind)


def _is_frozen(kind: type) -> bool:
    """Whether objects of a class are dataclasses whose fields never change."""
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and not _is_foreign(kind)


def _slots(kind: type) -> tuple[str, ...]:
    found: list[str] = []
    for cls in kind.__mro__:
        slots = vars(cls).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return tuple([name for name in found if name not in ("__dict__", "__weakref__")])


def _methods(cls: type) -> Iterator[FunctionType]:
    for value in vars(cls).values():
        function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        if isinstance(function, FunctionType):
            yield function


def _used_names(code: CodeType) -> dict[str, None]:
    """The names of globals and attributes in the code and in the code within it."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _used_names(constant)
    return found
