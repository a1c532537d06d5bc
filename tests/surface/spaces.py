"""The lists of names that the surface is measured by, and where each name lives here.

A `Space` is one namespace of ours with the reference of the same names; a `Measure` is one denominator: a list of
names, the expression that makes it, and the spaces in which a name may count.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lazulite import Tensor

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Space:
    """A namespace of ours and the one of the reference."""

    name: str
    home: str
    """A module, or ``Tensor``."""
    references: tuple[Any, ...]
    oracle: str = "torch"

    def has(self, name: str) -> bool:
        return _find(self.home, name) is not None

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return _find(self.home, name)(*args, **kwargs)

    def call_reference(self, name: str, *args: Any, **kwargs: Any) -> Any:
        found = [getattr(reference, name) for reference in self.references if hasattr(reference, name)]
        return found[0](*args, **kwargs)


def _find(home: str, name: str) -> Any:
    if home == "Tensor":
        return getattr(Tensor, name, None)
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError:
        return None
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


SPACES = {
    space.name: space
    for space in (
        Space("tensor", "Tensor", (torch.Tensor, torch, torch.linalg, torch.nn.functional)),
        Space("functional", "lazulite.nn.functional", (torch.nn.functional,)),
        Space("nn", "lazulite.nn", (torch.nn,)),
        Space("numpy", "lazulite.interop.numpy", (np, np.linalg, np.fft), oracle="numpy"),
    )
}


# --- denominators ----------------------------------------------------------------------------------

PLUMBING = frozenset(
    """
    as_subclass ccol_indices coalesce col_indices const_data_ptr crow_indices cuda data_ptr dense_dim dequantize
    dim_order get_device hash_tensor index indices int_repr ipu is_coalesced is_distributed is_inference
    is_pinned is_set_to is_shared module_load mtia pin_memory q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme record_stream register_hook
    register_post_accumulate_grad_hook reinforce resize_as_sparse_ retain_grad row_indices set_ share_memory_
    slice_inverse smm sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm storage
    storage_type to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
    to_sparse_csc to_sparse_csr untyped_storage values xpu
    """.split()
)
"""Methods of torch.Tensor about sparse, quantised and nested storage, addresses, devices of one vendor, hooks."""
REMOVED = frozenset("eig lstsq lu_solve solve symeig resize resize_as".split())
"""Methods of torch.Tensor that raise that they are gone, or warn that they will be."""


def tinygrad_names() -> list[str]:
    return (HERE / "tinygrad.txt").read_text(encoding="utf-8").split()


def tensor_names() -> list[str]:
    public = [n for n in dir(torch.Tensor) if not n.startswith("_") and callable(getattr(torch.Tensor, n))]
    return [n for n in public if n not in PLUMBING | REMOVED]


def functional_names() -> list[str]:
    F = torch.nn.functional
    helpers = {"Optional", "boolean_dispatch"}
    return [
        n for n in dir(F) if n[0].islower() and inspect.isroutine(getattr(F, n))
        and "torch_function" not in n and n not in helpers and getattr(F, n).__module__ != "typing"
    ]  # fmt: skip


def module_names() -> list[str]:
    nn = torch.nn
    return [n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module)]


def numpy_names() -> list[str]:
    routine = (np.ufunc, type(np.sum), type(np.array), type(np.flip))
    names = []
    for prefix, space in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        found = [n for n in dir(space) if not n.startswith("_")]
        names += [
            prefix + n for n in found if inspect.isroutine(getattr(space, n)) or isinstance(getattr(space, n), routine)
        ]
    return names


@dataclass(frozen=True)
class Measure:
    """One list of names, and how many of them count."""

    key: str
    title: str
    expression: str
    names: Callable[[], list[str]]
    spaces: tuple[str, ...]
    target: int
    """Percent."""


MEASURES = (
    Measure(
        "tinygrad", "tinygrad `Tensor`",
        "`tests/surface/tinygrad.txt`: the public names of `Tensor` in tinygrad 0.14.0",
        tinygrad_names, ("tensor",), 99,
    ),
    Measure(
        "torch_tensor", "`torch.Tensor`",
        '`[n for n in dir(torch.Tensor) if not n.startswith("_") and callable(getattr(torch.Tensor, n))]` without the'
        " names in `PLUMBING` and `REMOVED` of `tests/surface/spaces.py`",
        tensor_names, ("tensor",), 75,
    ),
    Measure(
        "torch_functional", "`torch.nn.functional`",
        '`[n for n in dir(F) if n[0].islower() and inspect.isroutine(getattr(F, n)) and "torch_function" not in n]`'
        " without `boolean_dispatch`",
        functional_names, ("functional",), 80,
    ),
    Measure(
        "torch_nn", "`torch.nn`",
        "`[n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module)]`",
        module_names, ("nn",), 60,
    ),
    Measure(
        "numpy", "NumPy",
        '`[n for n in dir(space) if not n.startswith("_")]` for `numpy`, `numpy.linalg` and `numpy.fft` where the'
        " value is a routine or a ufunc; a name counts as a function of the NumPy namespace in `interop` or as an"
        " attribute of `Tensor`",
        numpy_names, ("numpy", "tensor"), 60,
    ),
)  # fmt: skip
