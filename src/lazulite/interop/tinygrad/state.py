"""tinygrad's spelling of the state of models and of the files that hold it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from lazulite.formats import safetensors
from lazulite.formats import torch as checkpoints
from lazulite.nn import state
from lazulite.tensor.tensor import Tensor

Path = str | PathLike[str]


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
    """Every tensor of a model by its path."""
    return state.get_state_dict(obj, prefix)


def load_state_dict(
    model: Any, state_dict: Mapping[str, Tensor], strict: bool = True, verbose: bool = True, consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:  # fmt: skip
    """Give the tensors of a model the named values; `consume` empties the dictionary."""
    own = state.get_state_dict(model)
    written = state.load_state_dict(model, state_dict, strict=strict, realize=realize)
    if consume and isinstance(state_dict, dict):
        for name in own:
            state_dict.pop(name, None)
    return written


def safe_load(fn: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    return safetensors.read(fn)


def safe_load_metadata(fn: Path) -> dict[str, str]:
    """What a safetensors file says of itself."""
    return safetensors.read_metadata(fn)


def safe_save(tensors: dict[str, Tensor], fn: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file."""
    safetensors.write(tensors, fn, metadata)


def torch_load(fn: Path) -> Any:
    """What a PyTorch checkpoint holds."""
    return checkpoints.read(fn)
