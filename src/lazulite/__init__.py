"""Lazulite: a lazy tensor compiler.

Names are imported on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lazulite import fft as fft
    from lazulite import linalg as linalg
    from lazulite import nn as nn
    from lazulite.base.errors import ArgumentError as ArgumentError
    from lazulite.base.errors import AxisError as AxisError
    from lazulite.base.errors import CaptureError as CaptureError
    from lazulite.base.errors import CheckError as CheckError
    from lazulite.base.errors import DeviceError as DeviceError
    from lazulite.base.errors import DTypeError as DTypeError
    from lazulite.base.errors import EffectError as EffectError
    from lazulite.base.errors import FormatError as FormatError
    from lazulite.base.errors import GradientError as GradientError
    from lazulite.base.errors import IndexRangeError as IndexRangeError
    from lazulite.base.errors import LazuliteError as LazuliteError
    from lazulite.base.errors import OutOfMemoryError as OutOfMemoryError
    from lazulite.base.errors import SettingError as SettingError
    from lazulite.base.errors import ShapeError as ShapeError
    from lazulite.base.errors import StageError as StageError
    from lazulite.base.settings import Context as Context
    from lazulite.engine.memory import memory_report as memory_report
    from lazulite.formats.load import load as load
    from lazulite.formats.onnx.export import to_onnx as to_onnx
    from lazulite.ir.calls import KernelInfo as KernelInfo
    from lazulite.ir.dtype import dtypes as dtypes
    from lazulite.ir.size import Variable as Variable
    from lazulite.ir.uop import UOp as UOp
    from lazulite.runtime.counters import GlobalCounters as GlobalCounters
    from lazulite.runtime.profile import profile as profile
    from lazulite.runtime.registry import Device as Device
    from lazulite.tensor.function import checkpoint as checkpoint
    from lazulite.tensor.function import function as function
    from lazulite.tensor.function import no_grad as no_grad
    from lazulite.tensor.jit import TinyJit as TinyJit
    from lazulite.tensor.jit import jit as jit
    from lazulite.tensor.saved import load_captured as load_captured
    from lazulite.tensor.tensor import Tensor as Tensor
    from lazulite.tensor.transforms import grad as grad
    from lazulite.tensor.transforms import hessian as hessian
    from lazulite.tensor.transforms import jacfwd as jacfwd
    from lazulite.tensor.transforms import jacobian as jacobian
    from lazulite.tensor.transforms import jacrev as jacrev
    from lazulite.tensor.transforms import jvp as jvp
    from lazulite.tensor.transforms import value_and_grad as value_and_grad
    from lazulite.tensor.transforms import vjp as vjp
    from lazulite.tensor.vmap import vmap as vmap

__version__ = "0.1.0"

_ERRORS = (
    "ArgumentError", "AxisError", "CaptureError", "CheckError", "DTypeError", "DeviceError", "EffectError",
    "FormatError", "GradientError", "IndexRangeError", "LazuliteError", "OutOfMemoryError", "SettingError",
    "ShapeError", "StageError",
)  # fmt: skip

_TRANSFORMS = ("grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "value_and_grad", "vjp")

_HOMES = (
    {
        "Context": "lazulite.base.settings",
        "Device": "lazulite.runtime.registry",
        "GlobalCounters": "lazulite.runtime.counters",
        "KernelInfo": "lazulite.ir.calls",
        "Tensor": "lazulite.tensor.tensor",
        "TinyJit": "lazulite.tensor.jit",
        "UOp": "lazulite.ir.uop",
        "Variable": "lazulite.ir.size",
        "checkpoint": "lazulite.tensor.function",
        "dtypes": "lazulite.ir.dtype",
        "function": "lazulite.tensor.function",
        "memory_report": "lazulite.engine.memory",
        "jit": "lazulite.tensor.jit",
        "load": "lazulite.formats.load",
        "fft": "lazulite.fft",
        "linalg": "lazulite.linalg",
        "load_captured": "lazulite.tensor.saved",
        "nn": "lazulite.nn",
        "no_grad": "lazulite.tensor.function",
        "profile": "lazulite.runtime.profile",
        "to_onnx": "lazulite.formats.onnx.export",
        "vmap": "lazulite.tensor.vmap",
    }
    | dict.fromkeys(_TRANSFORMS, "lazulite.tensor.transforms")
    | dict.fromkeys(_ERRORS, "lazulite.base.errors")
)
"""Every public name and the module that defines it, or that it is."""

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'lazulite' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_HOMES[name])
    found: object = module if module.__name__ == f"lazulite.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
