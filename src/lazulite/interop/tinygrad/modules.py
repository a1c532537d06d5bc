"""The modules of tinygrad as tables: for each name where Lazulite has it.

`install` enters them into `sys.modules`.  A name is looked up when it is first used, so a script pays for what it
imports; a name that is not in a table is an ImportError that says so, never a wrong meaning.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_HERE = "lazulite.interop.tinygrad"
_HELPERS = f"{_HERE}.helpers"
_CONTEXT = f"{_HERE}.context"
_TYPES = f"{_HERE}.types"
_NODES = f"{_HERE}.nodes"
_STATE = f"{_HERE}.state"


def _at(home: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), home)


_TOP = (
    _at("lazulite", "Tensor Variable TinyJit UOp function GlobalCounters")
    | _at(_CONTEXT, "Context Device getenv") | _at(_HELPERS, "fetch") | _at(_TYPES, "dtypes")
)  # fmt: skip

MODULES: dict[str, dict[str, str]] = {
    "tinygrad": _TOP,
    "tinygrad.tensor": _at("lazulite", "Tensor") | _at(_TYPES, "dtypes") | _at(_CONTEXT, "Device"),
    "tinygrad.function": _at("lazulite", "function"),
    "tinygrad.device": _at(_CONTEXT, "Device") | _at("lazulite.runtime.buffer", "Buffer"),
    "tinygrad.dtype": _at(
        _TYPES,
        "dtypes AddrSpace DTYPES_DICT Invalid InvalidType ConstType PyConst DTypeLike least_upper_dtype "
        "least_upper_float truncate _to_np_dtype _from_np_dtype _to_torch_dtype _from_torch_dtype to_dtype",
    )
    | _at("lazulite.ir.dtype", "DType"),
    "tinygrad.helpers": _at(
        _HELPERS,
        "OSX WIN dedup prod temp all_same disable_gc fetch get_single_element Timing ceildiv flatten trange tqdm "
        "round_up unwrap argfix colored fully_flatten merge_dicts partition argsort make_tuple get_shape all_int "
        "round_down next_power2 colorize_float time_to_str size_to_str ansistrip ansilen flat_to_grouped get_child "
        "strip_parens to_tuple pluralize",
    )
    | _at(_CONTEXT, "Context ContextVar DEV DEBUG BEAM JIT NOOPT WINO TRAINING CI IMAGE getenv")
    | _at("lazulite", "GlobalCounters"),
    "tinygrad.engine": {},
    "tinygrad.engine.jit": _at("lazulite", "TinyJit") | {"JitError": "lazulite:CaptureError"},
    "tinygrad.uop": _at(_NODES, "Ops GroupOp"),
    "tinygrad.uop.ops": _at("lazulite", "UOp KernelInfo Variable")
    | _at(_NODES, "Ops GroupOp AxisType resolve sym_infer"),
    "tinygrad.nn": {},
    "tinygrad.nn.optim": {},
    "tinygrad.nn.state": _at(_STATE, "get_state_dict load_state_dict")
    | _at(
        "lazulite.nn.state",
        "get_parameters safe_load safe_load_metadata safe_save torch_load gguf_load zip_extract tar_extract TensorIO",
    ),
    "tinygrad.nn.datasets": _at(f"{_HERE}.datasets", "mnist cifar"),
    "tinygrad.nn.onnx": _at("lazulite.formats.onnx", "OnnxRunner"),
}
"""For each module its names and the module of each, as ``module`` or ``module:name``."""

_WHOLE = {"tinygrad.nn": "lazulite.nn", "tinygrad.nn.optim": "lazulite.nn.optim"}
"""Modules whose other names are those of a module of ours."""


class _Adapter(ModuleType):
    """A module that finds its names when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        full = self.__name__
        home = MODULES[full].get(name)
        if home is None and f"{full}.{name}" in MODULES:
            return sys.modules[f"{full}.{name}"]
        if home is None and full in _WHOLE and not name.startswith("_"):
            home = _WHOLE[full]
        if home is None:
            raise AttributeError(f"Lazulite has nothing for {full}.{name}")
        module, _, other = home.partition(":")
        try:
            found = getattr(importlib.import_module(module), other or name)
        except ImportError as error:
            raise AttributeError(f"Lazulite has nothing for {full}.{name}: {error}") from None
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted(MODULES[self.__name__])


def install() -> None:
    """From here on ``import tinygrad`` and its modules mean those of the tables.

    >>> install()
    >>> from tinygrad.helpers import prod
    >>> prod((2, 3))
    6
    """
    for name in MODULES:
        module = sys.modules[name] = _Adapter(name, f"What tinygrad calls {name}, by Lazulite.")
        module.__path__ = []  # a package, in which nothing is searched for on disk
