"""Who takes part: Lazulite and the libraries that are installed, each at its defaults.

A `Participant` turns a workload and its inputs into a call without arguments that returns when the
result is there, and a result into a NumPy array.  Its library is imported when it is made; one that is
not installed does not take part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy

from lazulite.base.terminal import say
from lazulite.tensor.tensor import Tensor
from lazulite.tools.bench.workloads import Formula, Workload

Call = Callable[[], Any]
OURS = "lazulite"


class Participant(ABC):
    """A library; `threads` is how many it may use."""

    name: str
    library: Any

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @abstractmethod
    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        """The call that is timed; what is done here is not."""

    def fetch(self, result: Any) -> Any:
        """The result as a NumPy array."""
        return numpy.asarray(result)

    def formula(self, workload: Workload, usual: Formula) -> Formula:
        """How this library is asked."""
        return workload.own.get(self.package(), usual)

    @classmethod
    def package(cls) -> str:
        return cls.name.partition(".")[0]


class Lazulite(Participant):
    """Builds the graph and realizes it at every call, as a program without a loop of its own does."""

    name = OURS

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        formula, tensors = self.formula(workload, workload.methods), [Tensor(array).realize() for array in inputs]
        return lambda: formula(None, *tensors).realize()

    def fetch(self, result: Any) -> Any:
        return result.numpy()


class NumPy(Participant):
    name = "numpy"
    library = numpy

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        formula = self.formula(workload, workload.arrays)
        return lambda: formula(numpy, *inputs)


class Torch(Participant):
    """Eager calls that keep nothing for gradients."""

    name = "torch"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.library = import_module("torch")
        self.library.set_num_threads(threads)
        self.library.set_grad_enabled(False)

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        torch, formula = self.library, self.formula(workload, workload.methods)
        tensors = [torch.from_numpy(array) for array in inputs]
        return lambda: formula(torch, *tensors)

    def fetch(self, result: Any) -> Any:
        return result.numpy()


class TorchCompiled(Torch):
    """The same, compiled for these shapes."""

    name = "torch.compile"

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        torch, formula = self.library, self.formula(workload, workload.methods)
        tensors = [torch.from_numpy(array) for array in inputs]
        compiled = torch.compile(lambda *x: formula(torch, *x), dynamic=False)
        return lambda: compiled(*tensors)


class Jax(Participant):
    """Calls of its NumPy, each compiled by itself."""

    name = "jax"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.library = import_module("jax")
        self.numpy = import_module("jax.numpy")

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        function, tensors = self.function(workload), [self.numpy.asarray(array) for array in inputs]
        return lambda: function(*tensors).block_until_ready()

    def function(self, workload: Workload) -> Callable[..., Any]:
        own = workload.own.get("jax")
        formula, library = (workload.arrays, self.numpy) if own is None else (own, self.library)
        return lambda *x: formula(library, *x)


class JaxCompiled(Jax):
    """The whole workload compiled at once."""

    name = "jax.jit"

    def function(self, workload: Workload) -> Callable[..., Any]:
        return self.library.jit(super().function(workload))  # type: ignore[no-any-return]


EAGER: tuple[type[Participant], ...] = (Lazulite, NumPy, Torch, Jax)
COMPILED: tuple[type[Participant], ...] = (Lazulite, Torch, TorchCompiled, JaxCompiled)


def participants(suite: str, quick: bool) -> list[type[Participant]]:
    """Those that are installed; a quick look does without a compiler that takes half a minute."""
    found: list[type[Participant]] = []
    for kind in COMPILED if suite == "kernels" else EAGER:
        if kind is TorchCompiled and quick:
            continue
        if find_spec(kind.package()) is None:
            say(f"bench: without {kind.name}: it is not installed")
        else:
            found.append(kind)
    return found
