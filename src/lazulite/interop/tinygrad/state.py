"""tinygrad's spelling of the state of models; the functions for files are those of `nn.state`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lazulite.nn import state
from lazulite.tensor.tensor import Tensor


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
