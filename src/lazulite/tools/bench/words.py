"""The words that workloads are spelled with, so that each workload is written once for all libraries.

Beside these words a workload uses only what tensors of every library have: arithmetic operators, `@`,
`reshape`, and slices.  Each library has a class that says each word in its own way (`words_numpy`, whose
float64 results are the reference, `words_tensor`, `words_torch`, `words_jax`); a library that cannot say
one raises `Lacks`, and its row in the report gives the reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any


class Lacks(Exception):
    """A library has no word for something; the text says what."""


class Fails(Lacks):
    """A library raised something else; the text is what it said."""


class Words(ABC):
    """What workloads ask of a library; images are (batch, channels, height, width)."""

    @abstractmethod
    def tensor(self, array: Any, dtype: str) -> Any:
        """A tensor of a NumPy array; one of bfloat16 comes as float32."""

    @abstractmethod
    def array(self, tensor: Any) -> Any:
        """A NumPy array of a tensor; bfloat16 goes as float32."""

    # --- elements -----------------------------------------------------------------------------------

    @abstractmethod
    def exp(self, x: Any) -> Any: ...

    @abstractmethod
    def relu(self, x: Any) -> Any: ...

    @abstractmethod
    def silu(self, x: Any) -> Any: ...

    @abstractmethod
    def gelu(self, x: Any) -> Any:
        """The approximation by tanh."""

    # --- rows ---------------------------------------------------------------------------------------

    @abstractmethod
    def softmax(self, x: Any) -> Any:
        """Over the last axis."""

    @abstractmethod
    def layer_norm(self, x: Any) -> Any:
        """The last axis with mean 0 and variance 1; 1e-5 is added to the variance."""

    @abstractmethod
    def total(self, x: Any) -> Any:
        """The sum of all elements."""

    @abstractmethod
    def mean(self, x: Any, axes: tuple[int, ...]) -> Any: ...

    @abstractmethod
    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        """The mean over the rows of scores."""

    # --- networks -----------------------------------------------------------------------------------

    @abstractmethod
    def conv2d(self, x: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any: ...

    @abstractmethod
    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any: ...

    @abstractmethod
    def batch_norm(self, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
        """With given statistics; 1e-5 is added to the variance."""

    @abstractmethod
    def batch_norm_in_training(self, x: Any, weight: Any, bias: Any) -> Any:
        """With the statistics of the batch itself; 1e-5 is added to the variance."""

    @abstractmethod
    def attention(self, queries: Any, keys: Any, values: Any, causal: bool) -> Any:
        """Scaled by the root of the last axis; with `causal` query i sees keys up to i."""

    # --- places -------------------------------------------------------------------------------------

    @abstractmethod
    def permute(self, x: Any, *order: int) -> Any: ...

    @abstractmethod
    def joined(self, first: Any, second: Any) -> Any:
        """One behind the other along the second axis."""

    @abstractmethod
    def rows(self, table: Any, places: Any) -> Any:
        """The row of the table for each place."""

    @abstractmethod
    def gather(self, x: Any, places: Any) -> Any:
        """result[i, j] = x[i, places[i, j]]"""

    @abstractmethod
    def scatter_add(self, x: Any, places: Any, source: Any) -> Any:
        """x with source[i, j] added at [i, places[i, j]]."""

    @abstractmethod
    def sort(self, x: Any) -> Any:
        """The last axis in ascending order."""

    # --- training -----------------------------------------------------------------------------------

    @abstractmethod
    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """The loss of these weights, and its derivative by each."""
