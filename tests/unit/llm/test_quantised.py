"""Weights in a quantised type multiply and are picked from as their floats are, and no floats are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazulite import Tensor
from lazulite.engine.handles import live_handles
from lazulite.formats.quants import QUANTS
from lazulite.llm.model import Model
from lazulite.llm.quantised import Blocks, Packed, Quantised, quantised
from lazulite.llm.steps import CHUNK, Stepper
from support.language_models import tiny, weights

KINDS = {kind.name: kind for kind in QUANTS.values() if kind.name in ("Q4_0", "Q4_1", "Q8_0", "Q5_0", "Q4_K", "Q6_K")}


def some_bytes(name: str, *axes: int) -> np.ndarray[Any, Any]:
    """Blocks of floats of usual size, as the format's own package quantises or as random bytes would have them."""
    kind = KINDS[name]
    random = np.random.default_rng(0)
    data = random.integers(0, 256, (*axes[:-1], axes[-1] // kind.elements, kind.nbytes), dtype=np.uint8)
    for begin in {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q8_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,)}[name]:
        scales = random.uniform(0.001, 0.01, data.shape[:-1]).astype(np.float16)
        data[..., begin : begin + 2] = scales[..., np.newaxis].view(np.uint8)
    return data.reshape(*axes[:-1], -1)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("name", KINDS)
def test_products_are_those_of_the_floats(name: str, rows: int) -> None:
    """Few rows and many: the error is that of a sum of float32, or of a row in 16 bits."""
    data = Tensor(some_bytes(name, 48, 512))
    x = np.random.default_rng(1).normal(size=(1, rows, 512)).astype(np.float32)
    matrix = KINDS[name].dequantize(data, (48, 512)).numpy().astype(np.float64)

    found = quantised(KINDS[name], data, (48, 512)).times(Tensor(x)).numpy()

    assert (np.abs(found - x @ matrix.T) <= 2e-5 * (np.abs(x) @ np.abs(matrix).T)).all()


@pytest.mark.parametrize("axes", [(7, 512), (64, 512), (5, 3, 256)])
@pytest.mark.parametrize("name", KINDS)
def test_rows_and_matrices_are_picked_as_floats(name: str, axes: tuple[int, ...]) -> None:
    """From packed matrices, too, which keep no bytes beside the packed form."""
    data = Tensor(some_bytes(name, *axes))
    numbers = [[4, 0], [1, 4]]
    floats = KINDS[name].dequantize(data, axes).numpy()
    weight = quantised(KINDS[name], data, axes)

    assert isinstance(weight, Packed if len(axes) == 2 else Blocks)
    assert (floats[np.array(numbers)] == weight[Tensor(numbers)].numpy()).all()


def test_steps_of_a_quantised_model_keep_no_floats() -> None:
    """Captured steps hold what is packed: a matrix of floats is several times larger."""
    given = dict[str, Tensor | Quantised](weights())
    for name, shape in (("ffn_up", (48, 32)), ("ffn_gate", (48, 32)), ("attn_q", (32, 32))):
        given[f"blk.0.{name}.weight"] = quantised(KINDS["Q4_0"], Tensor(some_bytes("Q4_0", *shape)), shape)
    given["token_embd.weight"] = quantised(KINDS["Q4_0"], Tensor(some_bytes("Q4_0", 9000, 32)), (9000, 32))
    stepper = Stepper(Model(tiny().config, given, 64 + CHUNK), 1, 64)
    Tensor.realize(*[each for each in given.values() if isinstance(each, Tensor)])
    before = _held()
    for _ in range(3):
        scores = stepper.prompt(0, 0, list(range(20)))
        stepper.single(0, 20, 3)

    assert scores.shape == (9000,) and np.isfinite(scores).all()
    assert _held() - before < 4 * 32 * 48


def _held() -> int:
    """Bytes that tensors have in memory."""
    storages = {id(handle.storage): handle.storage for handle in live_handles() if handle.storage is not None}
    return sum(storage.nbytes for storage in storages.values() if storage.buffer is not None)
