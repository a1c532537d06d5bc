"""Several modules, or parameters, as one: in a row, a list, a dictionary.  Names of tensors are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lazulite.nn.module import Module


class Sequential(Module):
    """Layers and functions applied one after the other.

    >>> from lazulite import Tensor
    >>> Sequential(Tensor.abs, Tensor.neg)(Tensor([-2.0])).tolist()
    [-2.0]
    """

    def __init__(self, *layers: Any) -> None:
        named = layers[0] if len(layers) == 1 and isinstance(layers[0], Mapping) else None
        self._names = [*named] if named is not None else [str(number) for number in range(len(layers))]
        self.layers: list[Callable[..., Any]] = [*named.values()] if named is not None else list(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def append(self, layer: Callable[..., Any]) -> Sequential:
        """One more layer at the end."""
        self._names.append(str(len(self.layers)))
        self.layers.append(layer)
        return self

    def _asdict(self) -> dict[str, Any]:
        names = self._names if len(self._names) == len(self.layers) else map(str, range(len(self.layers)))
        return dict(zip(names, self.layers, strict=True))

    def __getitem__(self, number: Any) -> Any:
        return Sequential(*self.layers[number]) if isinstance(number, slice) else self.layers[number]

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class ModuleList(Module):
    """Modules in a list, which is not called.

    >>> from lazulite import Tensor
    >>> len(ModuleList([Tensor.abs, Tensor.neg]))
    2
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        self.items = list(modules)

    def append(self, module: Any) -> ModuleList:
        """One more at the end."""
        self.items.append(module)
        return self

    def extend(self, modules: Iterable[Any]) -> ModuleList:
        """Several more at the end."""
        self.items.extend(modules)
        return self

    def insert(self, place: int, module: Any) -> None:
        """One more before a place."""
        self.items.insert(place, module)

    def _asdict(self) -> dict[str, Any]:
        return {str(number): item for number, item in enumerate(self.items)}

    def __getitem__(self, number: Any) -> Any:
        return type(self)(self.items[number]) if isinstance(number, slice) else self.items[number]

    def __setitem__(self, number: int, item: Any) -> None:
        self.items[number] = item

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


class ParameterList(ModuleList):
    """Parameters in a list.

    >>> from lazulite import Tensor
    >>> [name for name, _ in ParameterList([Tensor([1.0]), Tensor([2.0])]).named_parameters()]
    ['0', '1']
    """


class ModuleDict(Module):
    """Modules by name, which are not called together.

    >>> from lazulite import Tensor
    >>> ModuleDict({"size": Tensor.abs})["size"](Tensor([-1.0])).tolist()
    [1.0]
    """

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        self.items_by_name = dict(modules)

    def _asdict(self) -> dict[str, Any]:
        return self.items_by_name

    def __getitem__(self, name: str) -> Any:
        return self.items_by_name[name]

    def __setitem__(self, name: str, item: Any) -> None:
        self.items_by_name[name] = item

    def __delitem__(self, name: str) -> None:
        del self.items_by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self.items_by_name

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self.items_by_name.keys()

    def values(self) -> Iterable[Any]:
        """What the names stand for."""
        return self.items_by_name.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Both."""
        return self.items_by_name.items()

    def update(self, modules: Mapping[str, Any]) -> None:
        """More modules, or others for the same names."""
        self.items_by_name.update(modules)


class ParameterDict(ModuleDict):
    """Parameters by name.

    >>> from lazulite import Tensor
    >>> [name for name, _ in ParameterDict({"left": Tensor([1.0])}).named_parameters()]
    ['left']
    """
