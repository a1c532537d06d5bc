"""The tensors of a model, by name, and the files that hold them.

A model is any object: tensors are found in attributes, lists, tuples and dictionaries, however
nested, and are named by the path to them, as in ``layers.0.weight``.  The functions for files are those
of `nn.files`, imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lazulite.base.errors import ShapeError
from lazulite.tensor.tensor import Tensor

if TYPE_CHECKING:
    from lazulite.nn.files import (
        TensorIO,
        gguf_load,
        safe_load,
        safe_load_metadata,
        safe_save,
        tar_extract,
        torch_load,
        zip_extract,
    )

__all__ = [
    "TensorIO", "get_parameters", "get_state_dict", "gguf_load", "load_state_dict", "safe_load", "safe_load_metadata",
    "safe_save", "tar_extract", "torch_load", "zip_extract",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lazulite.nn import files

    return getattr(files, name)


def get_state_dict(obj: Any, prefix: str = "") -> dict[str, Tensor]:
    """Every tensor of the object with its path, in order of definition.

    >>> list(get_state_dict({"w": Tensor([1.0]), "layers": [Tensor([2.0])]}))
    ['w', 'layers.0']
    """
    found: dict[str, Tensor] = {}
    pending, entered = [(prefix.strip("."), obj)], set[int]()
    while pending:
        path, part = pending.pop()
        if isinstance(part, Tensor):
            found[path] = part
        elif id(part) not in entered:
            entered.add(id(part))
            inner = [(f"{path}.{name}" if path else name, each) for name, each in parts_of(part)]
            pending += reversed(inner)
    return found


def parts_of(part: Any) -> Iterator[tuple[str, Any]]:
    """What an object consists of, with names."""
    if hasattr(part, "_asdict"):
        part = part._asdict()
    if isinstance(part, Mapping):
        yield from ((str(name), each) for name, each in part.items())
    elif isinstance(part, list | tuple):
        yield from ((str(number), each) for number, each in enumerate(part))
    elif hasattr(part, "__dict__") and not isinstance(part, type):
        yield from vars(part).items()


def get_parameters(obj: Any) -> list[Tensor]:
    """Every tensor of the object, in order of definition.

    >>> len(get_parameters([Tensor([1.0]), (Tensor([2.0]),)]))
    2
    """
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any, state_dict: Mapping[str, Tensor], strict: bool = True, verbose: bool = False, realize: bool = True
) -> list[Tensor]:
    """Write the named values into the tensors of the model; the tensors written.

    Values are cast to the tensor's type and moved to its device.  KeyError where a name is missing, or with
    `strict` where one is too many; ShapeError where shapes differ.  Nothing is written before all is checked.

    >>> w = Tensor([1.0])
    >>> written = load_state_dict({"w": w}, {"w": Tensor([5.0])}); w.tolist()
    [5.0]
    """
    own = get_state_dict(model)
    missing, extra = [name for name in own if name not in state_dict], [name for name in state_dict if name not in own]
    if strict and (missing or extra):
        raise KeyError(f"load_state_dict: missing {missing}, unexpected {extra}")
    pairs = {name: (tensor, state_dict[name]) for name, tensor in own.items() if name in state_dict}
    for name, (tensor, value) in pairs.items():
        if tensor.shape != value.shape:
            raise ShapeError(
                "load_state_dict", f"{name} has shape {tensor.shape}, the value {value.shape}",
                about={"tensor": tensor, "value": value},
            )  # fmt: skip
        if verbose:
            print(f"{name} {tensor.shape} {tensor.dtype.name}")
    written = [t.assign(value.detach().to(t.device).cast(t.dtype)) for t, value in pairs.values()]
    if realize and written:
        written[0].realize(*written[1:])
    return written
