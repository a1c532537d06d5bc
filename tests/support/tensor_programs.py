"""Random programs over tensors: drawn once as data, then run as often as there are ways to run them.

`programs()` draws a `Program` while following it with NumPy (`support.models`).  `run` executes its steps
through the Tensor API and gives the tensors of its outputs, lazy ones.  A table says for each action how
it is drawn, what it means and how it is spelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lazulite import Tensor
from lazulite.ir.dtype import DType, dtypes
from support.models import (
    MANTISSA,
    Model,
    approximate,
    array_type,
    converted,
    elementwise,
    epsilon,
    fitted,
    moved,
    product,
    slack,
    total,
)

FLOATS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
INTEGERS = (dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.uint32, dtypes.int16, dtypes.uint64)
SMALL = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
LARGE = (1, 3, 16, 64, 65, 96, 127, 130, 200)
Sizes = tuple[int, ...]
Draw = Callable[..., Any]
Test = Callable[[Model], bool]
Meaning = Callable[..., Model]
Spelling = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """An action on earlier values of the program; it makes a value, or changes the first one."""

    action: str
    operands: tuple[int, ...]
    arg: Any


@dataclass
class Program:
    """Leaves, steps, and which values are looked at in the end."""

    leaves: list[Model]
    steps: list[Step] = field(default_factory=list)
    values: list[Model] = field(default_factory=list)
    """What each value should be at the end."""
    outputs: list[int] = field(default_factory=list)
    realized: list[int] = field(default_factory=list)
    """After which steps the newest value is computed, where a run honours that."""
    origin: tuple[Any, ...] = ()
    """The arguments of `program_of`, which make it again."""

    def __repr__(self) -> str:
        lines = [f"program_of{self.origin}", *[f"  v{n} = leaf {leaf}" for n, leaf in enumerate(self.leaves)]]
        number = len(self.leaves)
        for step in self.steps:
            target = f"v{number} =" if not ACTIONS[step.action].writes else "write"
            number += not ACTIONS[step.action].writes
            arg = "" if step.arg is None else f" by {step.arg}"
            lines.append(f"  {target} {step.action} {' '.join([f'v{o}' for o in step.operands])}{arg}")
        return "\n".join([*lines, f"  outputs {self.outputs}, realized after {self.realized}"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # what Hypothesis prints
        printer.text(repr(self))


# --- drawing -----------------------------------------------------------------------------------


@st.composite
def programs(
    draw: Draw, actions: Sequence[str], types: Sequence[DType], sizes: Sizes = SMALL, steps: int = 10
) -> Program:
    """A program of these actions on tensors of these types.

    Its choices hang on one seed, so that small tensors and short programs are no likelier than others;
    what shrinks is the number of steps.
    """
    count = draw(st.integers(1, steps))
    return program_of(draw(st.integers(0, 1 << 32)), count, actions, types, sizes)


def largest(sizes: Sizes) -> int:
    """How many elements a value may have."""
    return max(sizes) ** 2 + 111


def program_of(seed: int, steps: int, actions: Sequence[str], types: Sequence[DType], sizes: Sizes = SMALL) -> Program:
    """The first steps of the program that a seed stands for."""
    random = Random(seed)
    dtype, shape = random.choice(types), _shape(random, sizes)
    program = Program([_leaf(random, dtype, shape), _leaf(random, dtype, _beside(random, shape))])
    program.values = list(program.leaves)
    for _ in range(20 * steps):  # an action may find nothing to work on
        if len(program.steps) == steps:
            break
        drawn = ACTIONS[random.choice(actions)].drawn(random, program.values)
        if drawn is not None:
            _append(program, Step(*drawn), largest(sizes))
    count = len(program.values)
    program.outputs = sorted({count - 1, *random.choices(range(count), k=random.randint(0, 2))})
    program.realized = random.choices(range(steps), k=random.randint(0, 3))
    program.origin = (seed, steps, actions, types, sizes)
    return program


def _append(program: Program, step: Step, limit: int) -> None:
    action = ACTIONS[step.action]
    with np.errstate(all="ignore"):
        result = action.model(*[program.values[o] for o in step.operands], step.arg)
    if result.array.size > limit:
        return
    if action.writes:
        program.values[step.operands[0]] = result
    else:
        program.values.append(result)
    program.steps.append(step)


def _shape(random: Random, sizes: Sizes) -> tuple[int, ...]:
    shape = random.choices(sizes, k=random.choice([0, 1, 2, 2, 2, 3, 3]))
    while np.prod(shape) > largest(sizes):
        shape.pop()
    return tuple(shape)


def _beside(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another one."""
    cut = random.randint(0, len(shape))
    return tuple([random.choice([size, size, 1]) for size in shape[cut:]])


def _leaf(random: Random, dtype: DType, shape: tuple[int, ...]) -> Model:
    numbers = np.random.default_rng(random.randint(0, 999))
    if dtype is dtypes.bool:
        return Model(dtype, np.asarray(numbers.integers(0, 2, shape) == 1), owner=True)
    if not dtype.is_float:
        low = -9 if np.iinfo(array_type(dtype)).min < 0 else 0
        array = numbers.integers(low, 10, shape)
        wide = np.array(random.choice([0, 0, 100, 2**31 - 1])).astype(array_type(dtype))
        return Model(dtype, (array.astype(array_type(dtype)) + wide).astype(array_type(dtype)), owner=True)
    array = np.asarray(numbers.normal(0, 2, shape))
    if array.size > 3 and random.randint(0, 4) == 0:
        array.reshape(-1)[:4] = random.sample([np.inf, -np.inf, np.nan, -0.0], 4)
    return Model(dtype, fitted(dtype, array), owner=True)


# --- running -----------------------------------------------------------------------------------


def run(program: Program, device: str = "CPU", halfway: bool = False) -> list[Tensor]:
    """The outputs as the Tensor API gives them; `halfway` computes some values before the end."""
    return follow(program, [tensor_of(leaf, device) for leaf in program.leaves], halfway)


def follow(program: Program, leaves: Sequence[Tensor], halfway: bool = False) -> list[Tensor]:
    """The outputs of the steps on these leaves, which the steps may write to."""
    tensors = list(leaves)
    for number, step in enumerate(program.steps):
        operands = [tensors[o] for o in step.operands]
        result = ACTIONS[step.action].tensor(*operands, step.arg)
        if not ACTIONS[step.action].writes:  # a result of its own, also where nothing was to be done
            tensors.append(result.contiguous() if any(result is t for t in tensors) else result)
        if halfway and number in program.realized:
            tensors[-1].realize()
    return [tensors[o] for o in program.outputs]


def tensor_of(model: Model, device: str) -> Tensor:
    return Tensor(np.array(model.array), device=device).cast(model.dtype)


# --- actions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """How one kind of step is drawn, what it means, how it is spelled."""

    drawn: Callable[[Random, list[Model]], tuple[str, tuple[int, ...], Any] | None]
    model: Callable[..., Model]
    tensor: Callable[..., Any]
    writes: bool = False


ACTIONS: dict[str, Action] = {}


def _pick(random: Random, values: list[Model], wanted: Callable[[Model], bool] = lambda m: True) -> int | None:
    """A value, with a liking for new ones."""
    fitting = [number for number, model in enumerate(values) if wanted(model)]
    if not fitting:
        return None
    return int(random.choice([*fitting, fitting[-1], fitting[-1]]))


def _broadcast(values: list[Model], number: int) -> list[int]:
    """The values of the same type that broadcast with this one."""
    return [
        other
        for other, model in enumerate(values)
        if model.dtype is values[number].dtype and _common(model.shape, values[number].shape) is not None
    ]


def _common(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that these broadcast to, if there is one."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _unary(name: str, wanted: Test, model: Meaning, tensor: Spelling) -> None:
    def drawn(random: Random, values: list[Model]) -> Any:
        x = _pick(random, values, wanted)
        return None if x is None else (name, (x,), None)

    ACTIONS[name] = Action(drawn, lambda x, _: model(x), lambda t, _: tensor(t))


def _binary(name: str, wanted: Test, model: Meaning, tensor: Spelling) -> None:
    def drawn(random: Random, values: list[Model]) -> Any:
        x = _pick(random, values, wanted)
        if x is None:
            return None
        fitting = [y for y in _broadcast(values, x) if wanted(values[y])]
        return name, (x, random.choice(fitting)), None

    ACTIONS[name] = Action(drawn, lambda x, y, _: model(x, y), lambda t, u, _: tensor(t, u))


def _is_number(m: Model) -> bool:
    return m.dtype is not dtypes.bool


def _is_exact(m: Model) -> bool:
    return m.exact


def _is_exact_number(m: Model) -> bool:
    return m.exact and _is_number(m)


def _is_exact_float(m: Model) -> bool:
    return m.exact and m.dtype.is_float


def _is_integer(m: Model) -> bool:
    return m.dtype.is_int


def _compared(function: Callable[..., Any]) -> Callable[..., Model]:
    return lambda x, y: Model(dtypes.bool, function(x.array, y.array), None, True)


_unary("neg", _is_number, lambda x: elementwise(np.negative, x), lambda t: -t)
_unary("abs", _is_number, lambda x: elementwise(np.abs, x), lambda t: t.abs())
_unary("relu", _is_number, lambda x: elementwise(lambda a: np.maximum(a, a.dtype.type(0)), x), lambda t: t.relu())
_unary("sqrt", _is_exact_float, lambda x: elementwise(np.sqrt, x), lambda t: t.sqrt())
_unary("floor", _is_exact_float, lambda x: elementwise(np.floor, x), lambda t: t.floor())
_unary("round", _is_exact_float, lambda x: elementwise(np.round, x), lambda t: t.round())
_unary("exp", _is_exact_float, lambda x: approximate(np.exp, x, 2), lambda t: t.exp())
_unary("exp2", _is_exact_float, lambda x: approximate(np.exp2, x, 2), lambda t: t.exp2())
_unary("log", _is_exact_float, lambda x: approximate(np.log, x, 2), lambda t: t.log())
_unary("sin", _is_exact_float, lambda x: approximate(np.sin, x, 2), lambda t: t.sin())
_unary("tanh", _is_exact_float, lambda x: approximate(np.tanh, x, 8), lambda t: t.tanh())
_binary("add", _is_number, lambda x, y: elementwise(np.add, x, y), lambda t, u: t + u)
_binary("sub", _is_number, lambda x, y: elementwise(np.subtract, x, y), lambda t, u: t - u)
_binary("mul", _is_number, product, lambda t, u: t * u)
_binary("div", _is_exact_float, lambda x, y: elementwise(np.divide, x, y), lambda t, u: t / u)
_binary("max", _is_number, lambda x, y: elementwise(np.maximum, x, y), lambda t, u: t.maximum(u))
_binary("min", _is_number, lambda x, y: elementwise(np.minimum, x, y), lambda t, u: t.minimum(u))
_binary("lt", _is_exact_number, _compared(np.less), lambda t, u: t < u)
_binary("ge", _is_exact_number, _compared(np.greater_equal), lambda t, u: t >= u)
_binary("eq", _is_exact_number, _compared(np.equal), lambda t, u: t == u)
_binary("xor", _is_integer, lambda x, y: elementwise(np.bitwise_xor, x, y), lambda t, u: t ^ u)
_binary("and", _is_integer, lambda x, y: elementwise(np.bitwise_and, x, y), lambda t, u: t & u)
_binary("floordiv", _is_integer, lambda x, y: elementwise(np.floor_divide, x, y), lambda t, u: t // u)
_binary("mod", _is_integer, lambda x, y: elementwise(np.mod, x, y), lambda t, u: t % u)


def _draw_scalar(random: Random, values: list[Model]) -> Any:
    x = _pick(random, values, _is_number)
    if x is None:
        return None
    choices = [0, 1, 2, 3, 5, 7] + ([-1, 0.5, -2.5, 0.1] if values[x].dtype.is_float else [])
    return "scalar", (x,), (random.choice(["+", "*", "-", "r-", "max"]), random.choice(choices))


def _scalar_model(x: Model, arg: Any) -> Model:
    sign, number = arg
    other = Model(x.dtype, fitted(x.dtype, number))
    functions: dict[str, Any] = {"+": np.add, "-": np.subtract, "r-": lambda a, b: b - a, "max": np.maximum}
    return product(x, other) if sign == "*" else elementwise(functions[sign], x, other)


def _scalar_tensor(t: Tensor, arg: Any) -> Tensor:
    sign, number = arg
    spelled: dict[str, Any] = {
        "+": lambda: t + number, "*": lambda: t * number, "-": lambda: t - number, "r-": lambda: number - t,
        "max": lambda: t.maximum(number),
    }  # fmt: skip
    return spelled[sign]()  # type: ignore[no-any-return]


ACTIONS["scalar"] = Action(_draw_scalar, _scalar_model, _scalar_tensor)


def _draw_where(random: Random, values: list[Model]) -> Any:
    x = _pick(random, values, _is_number)
    gates = [n for n, m in enumerate(values) if m.dtype is dtypes.bool]
    if x is None or not gates:
        return None
    y, gate = random.choice(_broadcast(values, x)), random.choice(gates)
    fits = _common(*[values[n].shape for n in (x, y, gate)]) is not None
    return ("where", (gate, x, y), None) if fits else None


def _where_model(gate: Model, x: Model, y: Model, _: Any) -> Model:
    array = np.where(gate.array, x.array, y.array)
    errors = [np.zeros(m.shape) if m.error is None else m.error for m in (x, y)]
    error = None if x.exact and y.exact else np.broadcast_to(np.where(gate.array, *errors), array.shape)
    return Model(x.dtype, array.astype(array_type(x.dtype)), error, gate.settled and x.settled and y.settled)


ACTIONS["where"] = Action(_draw_where, _where_model, lambda g, t, u, _: g.where(t, u))


def _draw_cast(random: Random, values: list[Model]) -> Any:
    x = _pick(random, values, _is_exact)
    return None if x is None else ("cast", (x,), random.choice([*FLOATS, *INTEGERS, dtypes.bool]))


def _cast_model(x: Model, dtype: DType) -> Model:
    return Model(dtype, converted(dtype, x.array), None, x.settled)


ACTIONS["cast"] = Action(_draw_cast, _cast_model, lambda t, dtype: t.cast(dtype))


# --- movement ----------------------------------------------------------------------------------


def _movement(name: str, drawn: Callable[[Random, Model], Any], model: Spelling, tensor: Spelling) -> None:
    def draws(random: Random, values: list[Model]) -> Any:
        x = _pick(random, values)
        arg = None if x is None else drawn(random, values[x])
        return None if arg is None else (name, (x,), arg)

    ACTIONS[name] = Action(draws, lambda x, arg: moved(lambda a: model(a, arg), x), tensor)


def _some_axes(random: Random, x: Model) -> tuple[int, ...] | None:
    count = len(x.shape)
    return tuple(random.sample(range(count), random.randint(1, count))) if count else None


def _new_shape(random: Random, x: Model) -> tuple[int, ...]:
    rest, shape = x.array.size, []
    if not rest:
        return random.choice([(0,), (2, 0), (0, 3, 1)])
    while rest > 1 and len(shape) < 4:
        shape.append(random.choice([d for d in range(1, rest + 1) if rest % d == 0]))
        rest //= shape[-1]
    return (*shape, rest)


def _slices(random: Random, x: Model) -> tuple[slice, ...] | None:
    parts = []
    for size in x.shape:
        low = random.randint(0, max(size - 1, 0))
        high = random.randint(min(low + 1, size), size) if random.random() < 0.97 else low
        part = slice(low, high, random.choice([1, 1, 2, 3]))
        parts.append(random.choice([slice(None), part, slice(None, None, -1), slice(None, None, -2)]))
    return tuple(parts) or None


def _widths(random: Random, x: Model) -> Any:
    return [(random.randint(0, 2), random.randint(0, 2)) for _ in x.shape] or None


def _wider(random: Random, x: Model) -> tuple[int, ...]:
    sizes = [random.choice([1, 3, 8]) if size == 1 else size for size in x.shape]
    return (*random.choice([[], [2], [3]]), *sizes)


_movement("reshape", _new_shape, np.reshape, lambda t, shape: t.reshape(shape))
_movement("permute", lambda random, x: tuple(random.sample(range(len(x.shape)), len(x.shape))) or None,
          np.transpose, lambda t, order: t.permute(order))  # fmt: skip
_movement("flip", _some_axes, np.flip, lambda t, axes: t.flip(axes))
_movement("slice", _slices, lambda a, parts: a[parts], lambda t, parts: t[parts])
_movement("pad", _widths, np.pad, lambda t, widths: t.pad(widths))
_movement("expand", _wider, np.broadcast_to, lambda t, shape: t.expand(shape))


def _draw_cat(random: Random, values: list[Model]) -> Any:
    x = _pick(random, values, lambda m: m.shape != ())
    if x is None:
        return None
    axis = random.randint(0, len(values[x].shape) - 1)

    def fits(m: Model) -> bool:
        others = [s for n, s in enumerate(m.shape) if n != axis]
        mine = [s for n, s in enumerate(values[x].shape) if n != axis]
        return m.dtype is values[x].dtype and len(m.shape) == len(values[x].shape) and others == mine

    return "cat", (x, random.choice([n for n, m in enumerate(values) if fits(m)])), axis


ACTIONS["cat"] = Action(
    _draw_cat,
    lambda x, y, axis: moved(lambda a, b: np.concatenate([a, b], axis), x, y),
    lambda t, u, axis: t.cat(u, dim=axis),
)


# --- reductions --------------------------------------------------------------------------------


def _reduction(name: str, wanted: Test, model: Meaning, tensor: Spelling) -> None:
    def drawn(random: Random, values: list[Model]) -> Any:
        x = _pick(random, values, lambda m: wanted(m) and m.array.size > 0)
        if x is None:
            return None
        return name, (x,), (_some_axes(random, values[x]) if random.random() < 0.5 else None, random.random() < 0.5)

    ACTIONS[name] = Action(drawn, model, tensor)


def sum_type(dtype: DType) -> DType:
    """The type of a sum: integers have at least 32 bits."""
    if dtype.is_float or dtype.itemsize >= 4:
        return dtype
    return dtypes.uint32 if dtype in (dtypes.uint8, dtypes.uint16) else dtypes.int32


def _mean_model(x: Model, arg: Any) -> Model:
    axes, keep = arg
    sum_ = total(x, axes, keep, x.dtype)
    count = x.array.size // max(sum_.array.size, 1)
    wide = np.mean(x.array.astype(np.float64), axes, keepdims=keep)
    inner = dtypes.float32 if MANTISSA[x.dtype] < 23 else x.dtype
    spread = np.mean(np.abs(x.array.astype(np.float64)), axes, keepdims=keep)
    error = 4 * epsilon(inner) * (np.log2(count) + 2) * spread
    if x.error is not None:
        error = error + np.mean(np.broadcast_to(x.error, x.shape), axes, keepdims=keep)
    array = fitted(x.dtype, wide)
    return Model(x.dtype, array, error + slack(x.dtype, array), False)


def _extremum(function: Callable[..., Any]) -> Callable[..., Model]:
    def model(x: Model, arg: Any) -> Model:
        axes, keep = arg
        array = function(x.array, axis=axes, keepdims=keep).astype(array_type(x.dtype))
        error = None if x.error is None else np.max(np.broadcast_to(x.error, x.shape), axis=axes, keepdims=keep)
        return Model(x.dtype, array, error, x.settled)

    return model


_reduction("sum", lambda m: True, lambda x, arg: total(x, *arg, sum_type(x.dtype)), lambda t, arg: t.sum(*arg))
_reduction("mean", lambda m: m.dtype.is_float, _mean_model, lambda t, arg: t.mean(*arg))
_reduction("amax", _is_number, _extremum(np.max), lambda t, arg: t.max(*arg))
_reduction("amin", _is_number, _extremum(np.min), lambda t, arg: t.min(*arg))


def _softmax_model(x: Model, _: Any) -> Model:
    wide = x.array.astype(np.float64)
    shifted = wide - np.max(wide, -1, keepdims=True)
    powers = np.exp(shifted)
    array = powers / np.sum(powers, -1, keepdims=True)
    relative = epsilon(x.dtype) * (np.abs(shifted) + np.log2(x.shape[-1]) + 16) * 4
    return Model(x.dtype, fitted(x.dtype, array), array * relative + slack(x.dtype, array), False)


def _layernorm_model(x: Model, _: Any) -> Model:
    wide = x.array.astype(np.float64)
    centred = wide - np.mean(wide, -1, keepdims=True)
    array = centred / np.sqrt(np.mean(centred**2, -1, keepdims=True) + 1e-5)
    size = np.max(np.abs(wide), -1, keepdims=True) * epsilon(x.dtype) * (np.log2(x.shape[-1]) + 16) * 8
    deviation = np.sqrt(np.mean(centred**2, -1, keepdims=True) + 1e-5)
    error = size / deviation * (1 + np.abs(array)) + 16 * epsilon(x.dtype) * np.abs(array)
    return Model(x.dtype, fitted(x.dtype, array), error + slack(x.dtype, array), False)


def _is_row(m: Model) -> bool:
    wide = m.dtype in (dtypes.float32, dtypes.float64)
    return m.exact and wide and m.array.size > 0 and m.shape != () and bool(np.isfinite(m.array).all())


def _matmul_model(x: Model, y: Model, _: Any) -> Model:
    array = np.matmul(x.array.astype(np.float64), y.array.astype(np.float64)) if x.dtype.is_float else None
    if array is None:
        return Model(x.dtype, np.matmul(x.array, y.array))
    spread = np.matmul(np.abs(x.array.astype(np.float64)), np.abs(y.array.astype(np.float64)))
    inner = dtypes.float32 if MANTISSA[x.dtype] < 23 else x.dtype
    error = 4 * epsilon(inner) * (np.log2(max(x.shape[-1], 1)) + 2) * spread
    return Model(x.dtype, fitted(x.dtype, array), error + slack(x.dtype, array), False)


def _draw_matmul(random: Random, values: list[Model]) -> Any:
    def wide(m: Model) -> bool:
        return m.exact and len(m.shape) == 2 and m.dtype in (dtypes.float32, dtypes.float64, dtypes.int32)

    x = _pick(random, values, wide)
    if x is None:
        return None
    fitting = [n for n, m in enumerate(values) if wide(m) and m.dtype is values[x].dtype
               and m.shape[0] == values[x].shape[1]]  # fmt: skip
    return ("matmul", (x, random.choice(fitting)), None) if fitting else None


ACTIONS["matmul"] = Action(_draw_matmul, _matmul_model, lambda t, u, _: t @ u)
_unary("softmax", _is_row, lambda x: _softmax_model(x, None), lambda t: t.softmax(-1))
_unary("layernorm", _is_row, lambda x: _layernorm_model(x, None), lambda t: t.layernorm())


# --- writes ------------------------------------------------------------------------------------


def _draw_write(random: Random, values: list[Model]) -> Any:
    """A value that owns its memory (a clone) or a leaf, a place in it, and what is written there."""
    x = _pick(random, values, lambda m: m.owner and m.shape != ())
    if x is None:
        return None
    parts = _slices(random, values[x])
    place = values[x].array[parts]
    fitting = [n for n, m in enumerate(values) if m.dtype is values[x].dtype and _spreads(m.shape, place.shape)]
    source = random.choice([*fitting, x])
    return "write", (x, source), (parts, "=" if source not in fitting else random.choice(["=", "+"]))


def _spreads(shape: tuple[int, ...], wider: tuple[int, ...]) -> bool:
    return _common(shape, wider) == wider


def _write_model(x: Model, y: Model, arg: Any) -> Model:
    parts, sign = arg
    place = moved(lambda a: a[parts], x)
    value = _written(place, y, sign)
    array = x.array.copy()
    array[parts] = value.array
    error = None if x.error is None and value.error is None else np.zeros(x.shape) + (0 if x.error is None else x.error)
    if error is not None:
        error[parts] = 0 if value.error is None else value.error
    return Model(x.dtype, array, error, x.settled and value.settled, owner=True)


def _written(place: Model, y: Model, sign: str) -> Model:
    if not _spreads(y.shape, place.shape):
        return elementwise(np.subtract, place, place) if place.dtype is not dtypes.bool else place
    if sign == "=" or place.dtype is dtypes.bool:
        return moved(lambda a: np.broadcast_to(a, place.shape), y)
    return elementwise(np.add, place, y)


def _write_tensor(t: Tensor, u: Tensor, arg: Any) -> None:
    parts, sign = arg
    place = t[parts]
    if not _spreads(u.shape, place.shape):
        t[parts] = place - place if t.dtype is not dtypes.bool else place
    elif sign == "=" or t.dtype is dtypes.bool:
        t[parts] = u
    else:
        t[parts] += u


ACTIONS["write"] = Action(_draw_write, _write_model, _write_tensor, writes=True)
_unary("clone", lambda m: True, lambda x: Model(x.dtype, x.array, x.error, x.settled, owner=True), lambda t: t.clone())


def _there_and_back(t: Tensor) -> Tensor:
    """Through the memory of another device, doubled on the way so that it computes there."""
    there = t.to("PYTHON" if t.device == "CPU" else "CPU")
    return (there if t.dtype is dtypes.bool else there + there).to(t.device)


_unary(
    "travel",
    lambda m: True,
    lambda x: Model(x.dtype, x.array) if x.dtype is dtypes.bool else elementwise(np.add, x, x),
    _there_and_back,
)
