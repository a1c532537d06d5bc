"""Rotary position embeddings: elements of a head turned in pairs, by angles that grow with the position.

The definition is that of RoFormer (Su et al. 2021, https://arxiv.org/abs/2104.09864).
"""

from __future__ import annotations

from lazulite.llm.stretching import Rope
from lazulite.tensor.tensor import Tensor


def angles(rope: Rope, positions: int, factors: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The cosines and sines of the angles: (positions, width / 2) each, computed in float64.

    `factors` of a file stand in for those of the embedding.

    >>> cosines, sines = angles(Rope(10000.0, 4), 3)
    >>> cosines.shape, sines[0].tolist()
    ((3, 2), [0.0, 0.0])
    """
    pairs = Tensor.arange(rope.width // 2, dtype="float64")
    speeds = rope.base ** (pairs * (-2.0 / rope.width))
    if factors is not None:
        speeds = speeds / factors.cast("float64")
    elif rope.factors:
        speeds = speeds / Tensor(list(rope.factors), dtype="float64")
    turns = Tensor.arange(positions, dtype="float64").unsqueeze(1) * speeds
    return (turns.cos() * rope.magnitude).float(), (turns.sin() * rope.magnitude).float()


def turned(x: Tensor, cosines: Tensor, sines: Tensor, adjacent: bool) -> Tensor:
    """The heads (.., positions, head_width) with their first elements turned; the rest stays as it is.

    Pairs are neighbours where `adjacent`, else an element and the one half of the turned part further on.

    >>> x = Tensor([[[1.0, 2.0, 3.0, 4.0]]])
    >>> turned(x, Tensor([[0.0]]), Tensor([[1.0]]), adjacent=True).tolist()
    [[[-2.0, 1.0, 3.0, 4.0]]]
    """
    width = 2 * cosines.shape[-1]
    part, rest = x[..., :width], x[..., width:]
    if adjacent:
        pairs = part.reshape(*part.shape[:-1], width // 2, 2)
        first, second = pairs[..., 0], pairs[..., 1]
    else:
        first, second = part[..., : width // 2], part[..., width // 2 :]
    left, right = first * cosines - second * sines, second * cosines + first * sines
    moved = Tensor.stack(left, right, dim=-1).flatten(-2) if adjacent else left.cat(right, dim=-1)
    return moved.cat(rest, dim=-1) if rest.shape[-1] else moved
