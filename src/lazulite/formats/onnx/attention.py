"""Attention and rotary positions, of the default domain and as exported transformers spell them."""

from __future__ import annotations

import math
from typing import Any

from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.ir.dtype import by_name as dtype_named
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


def _heads(x: Tensor, count: int | None) -> Tensor:
    """(batch, heads, length, size), from (batch, length, heads * size) too."""
    if len(x.shape) == 4 or count is None:
        return x
    batch, length, width = x.shape
    return x.reshape((batch, length, count, width // count)).transpose(1, 2)


def _joined(x: Tensor) -> Tensor:
    """(batch, length, heads * size)."""
    batch, heads, length, size = x.shape
    return x.transpose(1, 2).reshape((batch, length, heads * size))


@onnx_op("Attention", since=23)
def attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, nonpad_kv_seqlen: Tensor | None = None, *, is_causal: int = 0,
    kv_num_heads: int | None = None, left_window_size: int = -1, q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0, right_window_size: int = -1, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int = 0, call: Call,
) -> Any:  # fmt: skip
    """A query without any key gives zeros.  Scores are computed in the type asked for, in float32 at least."""
    flat = len(q.shape) == 3
    query, key, value = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    past = 0 if past_key is None else past_key.shape[2]
    key = key if past_key is None else past_key.cat(key, dim=2)
    value = value if past_value is None else past_value.cat(value, dim=2)
    wide = dtypes.promote(
        q.dtype, dtypes.float32, *([dtype_named(NAMES[softmax_precision])] if softmax_precision else [])
    )
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    shared = query.shape[1] // key.shape[1]
    raw = (query.cast(wide) @ _repeated(key, shared).cast(wide).transpose(-1, -2)) * factor
    capped = (raw / softcap).tanh() * softcap if softcap else raw
    offset: Any = past
    if nonpad_kv_seqlen is not None and past_key is None:
        offset = nonpad_kv_seqlen.cast(dtypes.int32).reshape((-1, 1, 1, 1)) - query.shape[2]
    masked = _visible(capped, attn_mask, nonpad_kv_seqlen, offset, bool(is_causal), left_window_size, right_window_size)
    weights = _weights(masked)
    y = (weights.cast(value.dtype) @ _repeated(value, shared)).cast(q.dtype)
    y = _joined(y) if flat else y
    if call.outputs == 1:
        return y
    shown = (raw, capped, masked, weights)[qk_matmul_output_mode]
    return y, key, value, shown.cast(q.dtype)


def _repeated(x: Tensor, count: int) -> Tensor:
    """Heads that share a key, each with its own."""
    return x if count == 1 else x.repeat_interleave(count, 1)


def _visible(
    scores: Tensor, mask: Tensor | None, lengths: Tensor | None, offset: Any, causal: bool, left: int, right: int
) -> Tensor:
    """The scores with the mask added, -inf where a query does not see a key."""
    queries, keys = scores.shape[-2:]
    if mask is not None:
        missing = keys - mask.shape[-1]
        behind = [(0, 0)] * (len(mask.shape) - 1) + [(0, missing)]
        if mask.dtype is dtypes.bool:
            scores = mask.pad(behind).where(scores, -math.inf) if missing else mask.where(scores, -math.inf)
        else:
            scores = scores + (mask.pad(behind, value=-math.inf) if missing else mask).cast(scores.dtype)
    column = Tensor.arange(keys, device=scores.device)
    row = Tensor.arange(queries, device=scores.device).reshape((queries, 1)) + offset
    tests = [column <= row] if causal else []
    tests += [column < lengths.cast(dtypes.int32).reshape((-1, 1, 1, 1))] if lengths is not None else []
    tests += [column >= row - left] if left >= 0 else []
    tests += [column <= row + right] if right >= 0 else []
    for seen in tests:
        scores = seen.where(scores, -math.inf)
    return scores


def _weights(scores: Tensor) -> Tensor:
    """Softmax along the keys; zeros where no key is seen."""
    top = scores.max(-1, keepdim=True)
    grown = (scores - top.eq(-math.inf).where(0, top)).exp()
    total = grown.sum(-1, keepdim=True)
    return grown / total.eq(0).where(1, total)


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor | None = None, *, interleaved: int = 0,
    num_heads: int | None = None, rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    """Pairs of elements turned by an angle for their position; the pairs are neighbours or lie half a head apart."""
    heads = _heads(x, num_heads)
    if position_ids is not None:
        cos, sin = cos[position_ids], sin[position_ids]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    width = rotary_embedding_dim or heads.shape[-1]
    turned, rest = heads[..., :width], heads[..., width:]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        y = (a * cos - b * sin).stack(a * sin + b * cos, dim=-1).reshape(turned.shape)
    else:
        a, b = turned[..., : width // 2], turned[..., width // 2 :]
        y = (a * cos - b * sin).cat(a * sin + b * cos, dim=-1)
    y = y if width == heads.shape[-1] else y.cat(rest, dim=-1)
    return _joined(y) if len(x.shape) == 3 else y


@onnx_op("MultiHeadAttention", domain="com.microsoft")
def multi_head_attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None, *, num_heads: int, mask_filter_value: float = -10000.0,
    scale: float | None = None, unidirectional: int = 0, call: Call,
) -> Any:  # fmt: skip
    """Of three-dimensional queries, keys and values; a padding mask has one number for each key."""
    if bias is not None:
        width, inner = q.shape[-1], k.shape[-1]
        q, k, v = q + bias[:width], k + bias[width : width + inner], v + bias[width + inner :]
    mask = attention_bias
    if key_padding_mask is not None:
        batch, keys = key_padding_mask.shape
        own = key_padding_mask.eq(0).where(mask_filter_value, 0.0).reshape((batch, 1, 1, keys))
        mask = own if mask is None else mask + own
    return attention(
        q, k, v, mask, is_causal=unidirectional, kv_num_heads=num_heads, q_num_heads=num_heads, scale=scale, call=call
    )
