"""Exported movement, reductions, and the reading and writing of places."""

from __future__ import annotations

import pytest

from lazulite import Tensor, dtypes
from support.onnx_export import agrees, operators

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference implementation


def random(*shape: int) -> Tensor:
    return Tensor.randn(*shape).realize()


def test_elements_are_moved() -> None:
    agrees(lambda x: (x.flip(0), x.T, x[1:, ::2], x.pad(((1, 2), (0, 1))), x.reshape(2, 6).expand(3, 2, 6),
                      x.repeat(2, 3), x.roll(1, 0), x[:, -1], x[None], x.cat(x, dim=1)), random(3, 4))  # fmt: skip


def test_values_without_elements_keep_their_shapes() -> None:
    agrees(lambda x: (x[:0], x[:0].reshape(4, 0), x[:0].sum(0)), random(3, 4))


def test_movements_that_undo_each_other_are_left_out() -> None:
    assert {"Add": 1} == operators(agrees(lambda x: x.T.T + x.reshape(12).reshape(3, 4), random(3, 4)))


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", "uint8", "int16", "uint32"])
def test_reductions_agree(kind: str) -> None:
    x = (random(3, 4) * 5).abs().cast(kind).realize()
    agrees(lambda x: (x.sum(), x.max(1), x.min(0), x.prod(1), x.argmax(1), x.sum(0, keepdim=True)), x, within=1e-5)


def test_reductions_of_bools_agree() -> None:
    agrees(lambda x: (x.any(), x.all(1), x.any(0), x.sum(), x.max(0), x.min(1)), Tensor([[True, False], [True, True]]))


def test_statistics_agree() -> None:
    agrees(lambda x: (x.mean(1), x.var(), x.std(0), x.logsumexp(1), x.softmax(0), x.cumsum(1), x.cummax(1)[0]),
           random(3, 4), within=1e-5)  # fmt: skip


def test_positions_outside_read_zero_and_negative_ones_count_from_the_end() -> None:
    positions = Tensor([1, -1, 2, 9, -9]).realize()
    agrees(lambda x, i: (x[i], x[:, i], x[i, i], x[i, 0], x.gather(0, i.reshape(5, 1))), random(4, 4), positions)


def test_positions_that_are_known_are_not_guarded() -> None:
    table = Tensor([2, 0], dtype=dtypes.int32)

    assert {"Gather": 1} == operators(agrees(lambda x: x[table], random(3)))


def test_writes_replace_their_region() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x = x * 1
        x[1:3] = 5
        x[:, 0] = x[:, 1]
        x[::2, 1:3] = y
        x.flip(0)[0].assign(x[1])
        return x

    agrees(function, random(5, 4), random(3, 2))


def test_an_argument_that_the_function_writes_to_stays_what_it_was() -> None:
    def function(x: Tensor) -> Tensor:
        before = x + 0
        x[0] = 7.0
        return before + x

    x = random(3)
    before = x.tolist()
    agrees(lambda x: function(x * 1), x)

    assert before == x.tolist()
