"""Attention as torch.nn.functional calls it."""

from __future__ import annotations

import math
from typing import NamedTuple

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.nn.functional.convolution import linear
from lazulite.tensor.tensor import Tensor


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """`Tensor.scaled_dot_product_attention`; here `dropout_p` counts whether in training or not, as in torch.

    >>> q = Tensor([[[1.0, 0.0]]])
    >>> scaled_dot_product_attention(q, q, Tensor([[[5.0, 7.0]]])).tolist()
    [[[5.0, 7.0]]]
    """
    with Tensor.train(dropout_p > 0 or Tensor.training()):
        return query.scaled_dot_product_attention(key, value, attn_mask, dropout_p, is_causal, enable_gqa, scale)


class _Heads(NamedTuple):
    """The three operands of an attention as (batch * heads, positions, width)."""

    query: Tensor
    key: Tensor
    value: Tensor


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention of several heads between projections (Vaswani et al.): (positions, batch, width) in and out.

    Masks of bools say what does *not* count; masks of floats are added.  Gives the result, and the weights of the
    heads (their mean, unless `average_attn_weights` is false) or None.
    """
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ShapeError(
            "multi_head_attention_forward", f"{num_heads} heads of width {embed_dim_to_check} do not fit {query.shape}"
        )
    batched = query.ndim == 3
    if not batched:
        query, key, value = [part.unsqueeze(1) for part in (query, key, value)]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    projected = _projected(query, key, value, in_proj_weight, in_proj_bias, separate)
    length, batch, width = projected[0].shape
    extra = [] if bias_k is None or bias_v is None else [(bias_k, bias_v)]
    k, v = projected[1:]
    for more_k, more_v in extra:
        k, v = [part.cat(more.expand(1, batch, width)) for part, more in ((k, more_k), (v, more_v))]
    heads = _Heads(*[_split(part, num_heads) for part in (projected[0], k, v)])
    heads = heads._replace(key=heads.key if static_k is None else static_k)
    heads = heads._replace(value=heads.value if static_v is None else static_v)
    if add_zero_attn:
        nothing = Tensor.zeros(heads.key.shape[0], 1, heads.key.shape[2], dtype=query.dtype, device=query.device)
        heads = heads._replace(key=heads.key.cat(nothing, dim=1), value=heads.value.cat(nothing, dim=1))
    added = heads.key.shape[1] - (k.shape[0] - len(extra))
    mask = _mask(heads, num_heads, attn_mask, key_padding_mask, added, is_causal)
    if not need_weights:
        wide = [part.reshape((batch, num_heads, *part.shape[1:])) for part in heads]
        mask = None if mask is None else mask.reshape((batch, num_heads, *mask.shape[1:]))
        mixed = scaled_dot_product_attention(wide[0], wide[1], wide[2], mask, dropout_p if training else 0.0)
        mixed, weights = mixed.reshape((*heads.query.shape[:2], -1)), None
    else:
        weights = (heads.query * math.sqrt(num_heads / width)).matmul(heads.key.transpose(1, 2))
        weights = (weights if mask is None else weights + mask).softmax(-1)
        with Tensor.train(training and dropout_p > 0):
            mixed = weights.dropout(dropout_p).matmul(heads.value)
        weights = weights.reshape((batch, num_heads, *weights.shape[1:]))
        weights = weights.mean(1) if average_attn_weights else weights
    joined = mixed.transpose(0, 1).reshape((length, batch, width))
    result = linear(joined, out_proj_weight, out_proj_bias)
    if batched:
        return result, weights
    return result.squeeze(1), None if weights is None else weights.squeeze(0)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None,
    separate: tuple[Tensor | None, ...] | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Query, key and value through their projections, which lie one below another unless they are separate."""
    weights = list(separate) if separate is not None else [None] * 3 if weight is None else list(weight.chunk(3))
    biases = [None] * 3 if bias is None else list(bias.chunk(3))
    results = []
    for part, own, shift in zip((query, key, value), weights, biases, strict=True):
        if own is None:
            raise ArgumentError("multi_head_attention_forward", "a weight for each of query, key and value is needed")
        results.append(linear(part, own, shift))
    return results[0], results[1], results[2]


def _split(x: Tensor, heads: int) -> Tensor:
    """(positions, batch, width) as (batch * heads, positions, width of a head)."""
    return x.reshape((x.shape[0], x.shape[1] * heads, -1)).transpose(0, 1)


def _mask(
    heads: _Heads, num_heads: int, attn_mask: Tensor | None, padding: Tensor | None, added: int, is_causal: bool
) -> Tensor | None:
    """Both masks as one that is added to the scores (batch * heads, queries, keys); keys that were added count."""
    if is_causal and attn_mask is None:
        raise ArgumentError("multi_head_attention_forward", "is_causal is a hint that goes with attn_mask")
    total = None
    scores = (heads.query.shape[0], heads.query.shape[1], heads.key.shape[1])
    if attn_mask is not None:
        total = _additive(attn_mask, heads).pad([(0, 0)] * (attn_mask.ndim - 1) + [(0, added)]).expand(scores)
    if padding is not None:
        rows = _additive(padding, heads).pad(((0, 0), (0, added)))
        rows = rows.reshape((-1, 1, 1, rows.shape[1])).expand(rows.shape[0], num_heads, *scores[1:]).reshape(scores)
        total = rows if total is None else total + rows
    return total


def _additive(mask: Tensor, heads: _Heads) -> Tensor:
    zeros = Tensor.zeros(*mask.shape, dtype=heads.query.dtype, device=mask.device)
    return mask.where(-math.inf, zeros) if mask.dtype.name == "bool" else mask.cast(heads.query.dtype)
