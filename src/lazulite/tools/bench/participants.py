"""Who takes part: Lazulite and the libraries that are installed, each at its defaults.

A `Participant` turns a workload and its inputs into a call without arguments that returns when the
results are there.  Its library is imported when it is made; one that is not installed does not take part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from lazulite.base.settings import Context
from lazulite.base.terminal import say
from lazulite.ir.dtype import dtypes
from lazulite.tensor.jit import jit
from lazulite.tensor.tensor import Tensor
from lazulite.tools.bench.words import Words
from lazulite.tools.bench.words_jax import JaxWords
from lazulite.tools.bench.words_numpy import NumPyWords
from lazulite.tools.bench.words_tensor import TensorWords
from lazulite.tools.bench.words_torch import ExportedTorchWords, TorchWords, TracedTorchWords
from lazulite.tools.bench.workload import Workload, as_list

Call = Callable[[], Any]
OURS = "lazulite"


class Participant(ABC):
    """A library; `threads` is how many it may use."""

    name: str
    words: Words

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @abstractmethod
    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        """The call that is timed; what is done here is not."""

    def fetch(self, results: Any) -> list[Any]:
        """The results of a call as NumPy arrays."""
        return [self.words.array(result) for result in results]

    def tensors(self, workload: Workload, inputs: Sequence[Any]) -> list[Any]:
        pairs = zip(workload.inputs, inputs, strict=True)
        return [self.words.tensor(array, each.dtype) for each, array in pairs]

    @classmethod
    def package(cls) -> str:
        return cls.name.partition(".")[0]


class Lazulite(Participant):
    """Builds the graph and realizes it at every call, as a program without a loop of its own does."""

    name = OURS

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.words = TensorWords(Tensor, dtypes)

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        tensors = [tensor.realize() for tensor in self.tensors(workload, inputs)]
        if workload.captured:
            return self.captured(workload, tensors)
        call = self.call(workload, tensors)
        return Context(**workload.settings)(call) if workload.settings else call

    def captured(self, workload: Workload, tensors: Sequence[Tensor]) -> Call:
        """The workload captured by `jit`; settings matter while it is."""
        formula, words = workload.formula, self.words
        function = jit(Context(**workload.settings)(lambda *x: formula(words, *x)))
        return lambda: as_list(function(*tensors))

    def call(self, workload: Workload, tensors: Sequence[Tensor]) -> Call:
        def run() -> list[Tensor]:
            results: list[Tensor] = workload.results(self.words, *tensors)
            results[0].realize(*results[1:])
            return results

        return run


class LazuliteCaptured(Lazulite):
    """The whole workload captured by `jit`: calls replay it, as those of a program that runs for long do."""

    def call(self, workload: Workload, tensors: Sequence[Tensor]) -> Call:
        return self.captured(workload, tensors)


class NumPy(Participant):
    name = "numpy"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.words = NumPyWords()

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        tensors, formula = self.tensors(workload, inputs), workload.meaning or workload.formula
        return lambda: as_list(formula(self.words, *tensors))


class Torch(Participant):
    """Eager calls that keep nothing for gradients."""

    name = "torch"
    words: TorchWords
    spelling: type[TorchWords] = TorchWords

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.words = self.spelling()
        self.words.torch.set_num_threads(threads)
        self.words.torch.set_grad_enabled(False)

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        tensors = self.tensors(workload, inputs)
        return lambda: workload.results(self.words, *tensors)


class TorchCompiled(Torch):
    """The same, compiled for these shapes."""

    name = "torch.compile"
    spelling = TracedTorchWords

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        torch, words, tensors = self.words.torch, self.words, self.tensors(workload, inputs)
        torch.compiler.reset()
        compiled = torch.compile(lambda *x: workload.results(words, *x), dynamic=False)
        return lambda: compiled(*tensors)


class Onnx(Torch):
    """ONNX Runtime, with a file that torch exports; weights are part of the model."""

    name = "onnxruntime"
    spelling = ExportedTorchWords

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import_module("onnx")
        self.runtime = import_module("onnxruntime")

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        torch, words, count = self.words.torch, self.words, len(inputs) - workload.weights
        given, weights = (part := self.tensors(workload, inputs))[:count], part[count:]

        class Module(torch.nn.Module):  # type: ignore[misc,name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.weights = torch.nn.ParameterList([torch.nn.Parameter(weight, False) for weight in weights])

            def forward(self, *x: Any) -> Any:
                return workload.results(words, *x, *self.weights)

        file, names = BytesIO(), [f"x{number}" for number in range(count)]
        torch.onnx.export(Module(), tuple(given), file, input_names=names, dynamo=False, verbose=False)
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.threads, 3
        session = self.runtime.InferenceSession(file.getvalue(), options, ["CPUExecutionProvider"])
        feeds = {name: tensor.numpy() for name, tensor in zip(names, given, strict=True)}
        return lambda: session.run(None, feeds)

    def fetch(self, results: Any) -> list[Any]:
        return list(results)


class Jax(Participant):
    """Calls of its NumPy, each compiled by itself."""

    name = "jax"
    words: JaxWords

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.words = JaxWords()

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        function, tensors = self.function(workload), self.tensors(workload, inputs)
        return lambda: self.words.jax.block_until_ready(function(*tensors))

    def function(self, workload: Workload) -> Callable[..., Any]:
        def plain(*x: Any) -> list[Any]:
            return workload.results(self.words, *x)

        return self.words.jax.jit(plain) if workload.captured else plain


class JaxCompiled(Jax):
    """The whole workload compiled at once."""

    name = "jax.jit"

    def function(self, workload: Workload) -> Callable[..., Any]:
        return self.words.jax.jit(super().function(workload))  # type: ignore[no-any-return]


class Tinygrad(Participant):
    """Captured by its TinyJit."""

    name = "tinygrad"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.library = import_module("tinygrad")
        self.words = TensorWords(self.library.Tensor, self.library.dtypes)

    def prepare(self, workload: Workload, inputs: Sequence[Any]) -> Call:
        tensors = [tensor.realize() for tensor in self.tensors(workload, inputs)]
        device = self.library.Device[self.library.Device.DEFAULT]

        def compute(*x: Any) -> list[Any]:
            results = workload.results(self.words, *x)
            results[0].realize(*results[1:])
            return results

        captured = self.library.TinyJit(compute)

        def call() -> Any:
            results = captured(*tensors)
            device.synchronize()
            return results

        return call


EAGER: tuple[type[Participant], ...] = (Lazulite, NumPy, Torch, Jax)
COMPILED: tuple[type[Participant], ...] = (LazuliteCaptured, Torch, TorchCompiled, JaxCompiled, Onnx, Tinygrad, NumPy)
_SLOW = (TorchCompiled, Onnx, Tinygrad)
"""Those that take long to compile, without which a quick look does unless they are asked for."""


def participants(suite: str, quick: bool, peers: Sequence[str] = ()) -> list[type[Participant]]:
    """Lazulite and those that are installed; with `peers` only these."""
    found: list[type[Participant]] = []
    for kind in COMPILED if suite == "kernels" else EAGER:
        if kind.name not in (OURS, *peers) if peers else quick and kind in _SLOW:
            continue
        if find_spec(kind.package()) is None:
            say(f"bench: without {kind.name}: it is not installed")
        else:
            found.append(kind)
    return found
