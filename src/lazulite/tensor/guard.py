"""What a method says when it is given an argument that it cannot work with.

`guarded` wraps the public methods of a class.  A call that succeeds pays for one more Python call.  An error of
ours is given the name of the method that the user called, whichever inner one found the fault.  Only where a
call fails with another exception are its arguments held against the annotations, and the first that does not
fit is named.  An exception that no argument explains passes unchanged: that is a fault of this package, and
must not look like one of the user.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from lazulite.base.errors import ArgumentError, DTypeError, LazuliteError, StageError, nearest, point_home
from lazulite.base.origin import find_frame
from lazulite.ir.dtype import DType
from lazulite.tensor.base import Base, plain_scalar

C = TypeVar("C", bound=type)
_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip
_OPERATOR_METHODS = frozenset(
    {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
    | {f"__{prefix}{name}__" for prefix in ("", "r", "i") for name in _OPERATORS}
)
_NAMES = {"__init__": "Tensor", "__getitem__": "getitem", "__setitem__": "setitem"}
"""Special methods by their names in an error."""
_CAUGHT = (
    LazuliteError, TypeError, AttributeError, ValueError, IndexError, KeyError, OverflowError, ZeroDivisionError,
)  # fmt: skip


def guarded(cls: C) -> C:
    """The class with its public methods, inherited ones too, guarded."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base)
    for name, member in found.items():
        if name.startswith("_") and name not in _OPERATOR_METHODS and name not in _NAMES:
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(cls, name, type(member)(_guarded(member.__func__, name)))
        elif isinstance(member, FunctionType):
            setattr(cls, name, _guarded(member, name))
    return cls


def guard_module(space: dict[str, Any]) -> None:
    """The public functions of a module (of a package, of its modules) guarded, in place."""
    home = space["__name__"]
    for name, found in list(space.items()):
        if isinstance(found, FunctionType) and not name.startswith("_") and found.__module__.startswith(home):
            space[name] = _guarded(found, name)


def _guarded(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    caught, tell = _CAUGHT, _tell

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except caught as error:
            tell(error, method, name, args, kwargs)
            raise

    # The wrapper bears the method's name, so that an origin says which method was called, and has its
    # globals, so that it counts as defined in the same module.
    code = call.__code__.replace(co_name=name, co_qualname=method.__qualname__)
    wrapper = FunctionType(code, method.__globals__, name, None, call.__closure__)
    return update_wrapper(wrapper, method)


def _tell(error: Exception, method: Callable[..., Any], name: str, args: Any, kwargs: Any) -> None:
    """Raise what the user can act on; return where the exception may pass, an error of ours under its new name."""
    shown = name.strip("_") if name in _OPERATOR_METHODS else _NAMES.get(name, name)
    if not isinstance(error, LazuliteError):
        if _called_by_user():
            _hold_against_signature(error, method, shown, args, kwargs)
    elif not error.told and not isinstance(error, StageError):
        if name not in _OPERATOR_METHODS or error.function == "Tensor":  # operators go by what they stand for
            error.function = shown
        error.told = _called_by_user()


def _called_by_user() -> bool:
    """Whether the guarded method was called from outside of this package, not by another method of ours."""
    return find_frame(4)[0] is sys._getframe(3)


def _hold_against_signature(error: Exception, method: Callable[..., Any], name: str, args: Any, kwargs: Any) -> None:
    signature = inspect.signature(method)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as mismatch:
        _refuse_call(mismatch, signature, name, kwargs)
    arguments = dict(_flat(signature, bound.arguments))
    for argument, (annotation, value) in arguments.items():
        if not _fits(annotation, value):
            raise DTypeError(
                name, f"{argument} is {_wanted(annotation)}, got {_short(value)}", about=_tensors(arguments),
                hint=_call_text(name, signature),
            ) from error  # fmt: skip
    if isinstance(error, OverflowError):  # what Python itself calls an integer that does not fit
        error.args = (f"{name}: {error}",)
        point_home(error)
        return
    strange = [argument for argument, (_, value) in arguments.items() if not isinstance(value, Base)]
    if strange:
        kind = ArgumentError if isinstance(error, ValueError | IndexError | ArithmeticError) else DTypeError
        given = ", ".join(f"{argument}={_short(arguments[argument][1])}" for argument in strange)
        raise kind(
            name, f"cannot work with {given}", about=_tensors(arguments), rule=f"Python says: {error}",
            hint=_call_text(name, signature),
        ) from error  # fmt: skip


def _refuse_call(mismatch: TypeError, signature: inspect.Signature, name: str, kwargs: Mapping[str, Any]) -> NoReturn:
    unknown = [given for given in kwargs if given not in signature.parameters]
    near = nearest(unknown[0], signature.parameters) if unknown else ""
    raise DTypeError(name, str(mismatch), rule=_call_text(name, signature), hint=near) from None


def _flat(signature: inspect.Signature, bound: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Each argument but `self` and `cls` with its annotation, those of ``*args`` one by one."""
    for name, value in bound.items():
        parameter = signature.parameters[name]
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{i}]", (str(parameter.annotation), item)) for i, item in enumerate(value))
        else:
            yield name, (str(parameter.annotation), value)


# --- annotations ---------------------------------------------------------------------------------


def _integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, Base)


def _integers(value: Any) -> bool:
    return _sequence(value) and all(map(_integer, value))


def _sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _devices(value: Any) -> bool:
    names = value if isinstance(value, list | tuple) else ("" if value is None else value,)
    return all(isinstance(name, str) for name in names)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("an integer", _integer),
    "float": ("a number", lambda value: plain_scalar(value) is not None),
    "Scalar": ("a number", lambda value: plain_scalar(value) is not None),
    "str": ("a text", lambda value: isinstance(value, str)),
    "Self": ("a tensor", lambda value: isinstance(value, Base)),
    "Sequence[int]": ("several integers", _integers),
    "Shape": ("several integers", _integers),
    "Axes": ("an axis, several, or None", lambda value: value is None or _integer(value) or _integers(value)),
    "Sequence[Any]": ("a sequence", _sequence),
    "Sequence[str]": ("several names", _sequence),
    "Sequence[Tensor]": ("several tensors", _sequence),
    "Sizes": ("an integer or several", lambda value: _integer(value) or _integers(value)),
    "DTypeLike": ("a dtype", lambda value: isinstance(value, DType | str)),
    "DeviceLike": ("the name of a device, several names, or None", _devices),
    "list[Any]": ("a list", lambda value: isinstance(value, list | tuple)),
    "None": ("None", lambda value: value is None),
}
"""What an annotation means to a user, and whether a value is that.  Others fit everything."""


def _fits(annotation: str, value: Any) -> bool:
    return any(part not in _KINDS or _KINDS[part][1](value) for part in annotation.split(" | "))


def _wanted(annotation: str) -> str:
    return " or ".join(dict.fromkeys(_KINDS[part][0] for part in annotation.split(" | ")))


# --- words -----------------------------------------------------------------------------------------


def _short(value: Any) -> str:
    """A value in a message: its type, and how it prints where that is short and needs no computing."""
    kind = type(value).__name__
    if isinstance(value, Base):
        return f"a tensor of shape {value.shape}"
    plain = value is None or isinstance(value, bool | int | float | complex | str | bytes | list | tuple | dict)
    return f"{kind} {value!r:.40}" if plain and not _holds_tensor(value) else kind


def _holds_tensor(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(isinstance(item, Base) for item in items)


def _tensors(arguments: Mapping[str, tuple[str, Any]]) -> dict[str, object]:
    return {name: value for name, (_, value) in arguments.items() if isinstance(value, Base)}


def _call_text(name: str, signature: inspect.Signature) -> str:
    """How the function is called: names and defaults."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name not in ("self", "cls")]
    return f"{name}{inspect.Signature(parameters)}"
