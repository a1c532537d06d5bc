"""Activations as torch.nn.functional calls them: Tensor methods, and what is put together from them.

With `inplace` the input holds the result, too.
"""

from __future__ import annotations

from lazulite.base.errors import ShapeError
from lazulite.tensor.base import DTypeLike
from lazulite.tensor.tensor import Tensor

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def placed(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, written to the input where that is asked for."""
    return input.assign(result) if inplace else result


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.relu`: the value above zero, else zero."""
    return placed(input, input.relu(), inplace)


def relu_(input: Tensor) -> Tensor:
    """`relu` in place."""
    return relu(input, inplace=True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.relu6`: relu, but not above 6."""
    return placed(input, input.relu6(), inplace)


def hardtanh(input: Tensor, min_val: float = -1, max_val: float = 1, inplace: bool = False) -> Tensor:
    """`Tensor.hardtanh`: the value cut at both bounds."""
    return placed(input, input.hardtanh(min_val, max_val), inplace)


def hardtanh_(input: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.hardsigmoid`: x / 6 + 1 / 2, cut to 0 and 1."""
    return placed(input, input.hardsigmoid(), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.hardswish`: x * relu6(x + 3) / 6."""
    return placed(input, input.hardswish(), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`Tensor.leaky_relu`: the value above zero, `negative_slope` times it elsewhere."""
    return placed(input, input.leaky_relu(negative_slope), inplace)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`Tensor.elu`: the value above zero, alpha * (exp(x) - 1) elsewhere."""
    return placed(input, input.elu(alpha), inplace)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` in place."""
    return elu(input, alpha, inplace=True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`Tensor.celu`: the value above zero, alpha * (exp(x / alpha) - 1) elsewhere."""
    return placed(input, input.celu(alpha), inplace)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` in place."""
    return celu(input, alpha, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.selu` with the constants of Klambauer et al. to all digits."""
    return placed(input, input.selu(_SELU_ALPHA, _SELU_SCALE), inplace)


def selu_(input: Tensor) -> Tensor:
    """`selu` in place."""
    return selu(input, inplace=True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """`Tensor.gelu`: x times the normal distribution function, exactly unless `approximate="tanh"`."""
    return input.gelu(approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.silu`: x * sigmoid(x)."""
    return placed(input, input.silu(), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`Tensor.mish`: x * tanh(softplus(x))."""
    return placed(input, input.mish(), inplace)


def sigmoid(input: Tensor) -> Tensor:
    """`Tensor.sigmoid`."""
    return input.sigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """`Tensor.logsigmoid`: log(sigmoid(x))."""
    return input.logsigmoid()


def tanh(input: Tensor) -> Tensor:
    """`Tensor.tanh`."""
    return input.tanh()


def softsign(input: Tensor) -> Tensor:
    """`Tensor.softsign`: x / (1 + |x|)."""
    return input.softsign()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`Tensor.softplus`: log(1 + exp(beta x)) / beta, the value itself where beta x is above the threshold.

    >>> softplus(Tensor([0.0, 4.0]), threshold=2).tolist()
    [0.6931471824645996, 4.0]
    """
    return (input * beta > threshold).where(input, input.softplus(beta))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The element where it is above the threshold, else the value; NaN stays.

    >>> threshold(Tensor([0.1, 0.5]), 0.2, -1.0).tolist()
    [-1.0, 0.5]
    """
    return placed(input, (input <= threshold).where(value, input), inplace)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` in place."""
    return placed(input, (input <= threshold).where(value, input), inplace=True)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`Tensor.hardshrink`: zero between -lambd and lambd."""
    return input.hardshrink(lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Zero between -lambd and lambd, the value moved by lambd towards zero elsewhere.

    >>> softshrink(Tensor([-2.0, 0.3])).tolist()
    [-1.5, 0.0]
    """
    return (input.abs() <= lambd).where(0.0, input - input.sign() * lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> tanhshrink(Tensor([0.0])).tolist()
    [0.0]
    """
    return input - input.tanh()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second (Dauphin et al.).

    >>> glu(Tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    if not input.ndim or input.shape[dim] % 2:
        raise ShapeError("glu", f"an axis of {input.shape} does not split into halves", about={"input": input})
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`Tensor.prelu`: the value above zero, the weight times it elsewhere."""
    return input.prelu(weight)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with a slope drawn between the bounds for each element; with the mean slope outside of training.

    >>> rrelu(Tensor([-2.0, 2.0]), 0.25, 0.75).tolist()
    [-1.0, 2.0]
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = Tensor.uniform(*input.shape, low=lower, high=upper, dtype=input.dtype, device=input.device)
    return placed(input, (input > 0).where(input, input * slope), inplace)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


# --- distributions over an axis ------------------------------------------------------------------


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """`Tensor.softmax`; without `dim`, along the axis that torch chose before it asked for one."""
    return input.softmax(_axis(input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """`Tensor.softmin`: softmax(-x)."""
    return input.softmin(_axis(input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """`Tensor.log_softmax`: log(softmax(x))."""
    return input.log_softmax(_axis(input, dim), dtype)


def _axis(input: Tensor, dim: int | None) -> int:
    return dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A draw from the relaxed categorical distribution of Jang et al.; `hard` gives vectors with a single 1.

    These have the gradient of the relaxed draw.  `eps` is not needed and stands for torch's argument.

    >>> gumbel_softmax(Tensor([[0.0, 100.0]]), hard=True).tolist()
    [[0.0, 1.0]]
    """
    noise = -(-Tensor.rand(*logits.shape, dtype=logits.dtype, device=logits.device).log()).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    axis = dim % max(logits.ndim, 1)
    chosen = soft.argmax(axis, keepdim=True)
    places = Tensor.arange(logits.shape[axis], device=logits.device).reshape((-1, *(1,) * (logits.ndim - axis - 1)))
    return places.eq(chosen).cast(soft.dtype) - soft.detach() + soft
