"""Every name in the tables is there, and every name that scripts import is in a table."""

from __future__ import annotations

import importlib
import sys

import pytest

from lazulite.interop.tinygrad.modules import MODULES, install


@pytest.fixture(autouse=True)
def installed():
    before = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "tinygrad"}
    install()
    yield
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(before)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_name_of_a_module_is_there(module: str) -> None:
    adapter = importlib.import_module(module)

    assert [name for name in MODULES[module] if not hasattr(adapter, name)] == []
    assert sorted(MODULES[module]) == dir(adapter)


NAMES = {
    "tinygrad": "Tensor Device dtypes Variable TinyJit Context nn GlobalCounters UOp function fetch getenv",
    "tinygrad.helpers": "Context DEV getenv GlobalCounters DEBUG OSX WIN dedup prod temp JIT all_same disable_gc fetch "
    "get_single_element ContextVar Timing ceildiv flatten trange tqdm round_up unwrap argfix colored fully_flatten "
    "merge_dicts partition",
    "tinygrad.dtype": "dtypes DType AddrSpace DTYPES_DICT Invalid ConstType DTypeLike least_upper_dtype "
    "least_upper_float truncate _to_np_dtype _to_torch_dtype _from_torch_dtype to_dtype",
    "tinygrad.tensor": "Tensor", "tinygrad.device": "Device Buffer", "tinygrad.engine.jit": "TinyJit JitError",
    "tinygrad.function": "function", "tinygrad.nn": "Linear Conv2d BatchNorm LayerNorm Embedding optim state",
    "tinygrad.nn.optim": "SGD Adam AdamW", "tinygrad.uop": "Ops",
    "tinygrad.nn.state": "get_parameters get_state_dict load_state_dict safe_load safe_save torch_load",
    "tinygrad.nn.datasets": "mnist cifar", "tinygrad.uop.ops": "UOp Ops KernelInfo AxisType GroupOp resolve sym_infer",
}  # fmt: skip


@pytest.mark.parametrize("module", NAMES)
def test_what_scripts_import_is_there(module: str) -> None:
    adapter = importlib.import_module(module)

    assert [name for name in NAMES[module].split() if not hasattr(adapter, name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    import tinygrad

    with pytest.raises(AttributeError, match=r"Lazulite has nothing for tinygrad\.unheard_of"):
        tinygrad.unheard_of  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tinygrad.runtime.ops_amd")
