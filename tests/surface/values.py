"""Values of a differential test as each side takes and gives them.

Samples hold torch tensors or NumPy arrays, in lists, tuples and dictionaries too.  `as_ours`, `as_torch` and
`as_numpy` convert them; `leaves` lists what a call gave as NumPy arrays and plain values, side by side
comparable, whichever library it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from lazulite import Tensor, dtypes
from lazulite.ir.dtype import DType, by_name

DTYPES: dict[torch.dtype, DType] = {
    getattr(torch, name): getattr(dtypes, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
}


def mapped(convert: Callable[[Any], Any], value: Any) -> Any:
    """The value with every part converted that is no container."""
    if type(value) in (list, tuple):
        return type(value)(mapped(convert, part) for part in value)
    if type(value) is dict:
        return {key: mapped(convert, part) for key, part in value.items()}
    return convert(value)


def _one_of_ours(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return DTYPES.get(value, value)
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.bfloat16:
            return Tensor(value.detach().float().numpy(), dtype=dtypes.bfloat16)
        return Tensor(value.detach().contiguous().numpy().copy())
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return by_name(np.dtype(value).name) if isinstance(value, type) and issubclass(value, np.generic) else value


def _one_of_torch(value: Any) -> Any:
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def _one_of_numpy(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value


def as_ours(value: Any) -> Any:
    return mapped(_one_of_ours, value)


def as_torch(value: Any) -> Any:
    return mapped(_one_of_torch, value)


def as_numpy(value: Any) -> Any:
    return mapped(_one_of_numpy, value)


def tensors_in(value: Any, kind: type) -> Iterator[Any]:
    """The parts of a kind, in order."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part, kind)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part, kind)


def is_complex(value: Any) -> bool:
    """Whether there is a complex number or type among the parts."""
    parts: list[Any] = []
    mapped(parts.append, value)
    return any(
        part.is_complex if isinstance(part, torch.dtype)
        else part.is_complex() if isinstance(part, torch.Tensor)
        else np.iscomplexobj(part)
        for part in parts
    )  # fmt: skip


def leaves(value: Any) -> list[Any]:
    """What a call gave as a flat list of NumPy arrays and plain values."""
    if isinstance(value, torch.Tensor):
        return [(value.float() if value.dtype is torch.bfloat16 else value).numpy(force=True)]
    if isinstance(value, Tensor):
        if value.dtype is dtypes.bfloat16:
            value = value.float()
        return [value.numpy()]
    if isinstance(value, np.ndarray | np.generic):
        return [np.asarray(value)]
    if isinstance(value, torch.dtype):
        return [DTYPES.get(value, value)]
    if isinstance(value, torch.Size):
        return [tuple(value)]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]
