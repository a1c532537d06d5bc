"""Attention of several heads and the layers built on it (Vaswani et al.), with PyTorch's arguments and names.

Sequences are (length, batch, width), with `batch_first` (batch, length, width), or without a batch.  Masks of bools
say what does not count, masks of floats are added.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.nn import functional as F
from lazulite.nn.containers import ModuleList
from lazulite.nn.layers import LayerNorm, Linear
from lazulite.nn.module import Module
from lazulite.nn.state import get_state_dict
from lazulite.tensor.tensor import Tensor

Mask = Tensor | None
Activation = str | Callable[[Tensor], Tensor]


class MultiheadAttention(Module):
    """`nn.functional.multi_head_attention_forward` with its weights: (result, weights or None).

    >>> x = Tensor.ones(5, 2, 8)
    >>> out, weights = MultiheadAttention(8, 2)(x, x, x); out.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
    ) -> None:  # fmt: skip
        if num_heads < 1 or embed_dim % num_heads:
            raise ShapeError("MultiheadAttention", f"{num_heads} heads do not divide the width {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.add_zero_attn, self.batch_first = add_zero_attn, batch_first
        widths = (embed_dim, embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim)
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if len(set(widths)) == 1:
            bound = math.sqrt(6 / (4 * embed_dim))
            self.in_proj_weight = Tensor.uniform(3 * embed_dim, embed_dim, low=-bound, high=bound)
        else:
            parts = [Tensor.glorot_uniform(embed_dim, width) for width in widths]
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = parts
        self.in_proj_bias = Tensor.zeros(3 * embed_dim) if bias else None
        self.bias_k = Tensor.randn(1, 1, embed_dim) * embed_dim**-0.5 if add_bias_kv else None
        self.bias_v = Tensor.randn(1, 1, embed_dim) * embed_dim**-0.5 if add_bias_kv else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if self.out_proj.bias is not None:
            self.out_proj.bias = Tensor.zeros(embed_dim)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Mask = None, need_weights: bool = True,
        attn_mask: Mask = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        turn = self.batch_first and query.ndim == 3
        if turn:
            query, key, value = [part.transpose(0, 1) for part in (query, key, value)]
        result, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=Tensor.training(), key_padding_mask=key_padding_mask, need_weights=need_weights,
            attn_mask=attn_mask, use_separate_proj_weight=self.in_proj_weight is None,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (result.transpose(0, 1) if turn else result), weights


def _activation(name: Activation) -> Callable[[Tensor], Tensor]:
    if callable(name):
        return name
    if name not in ("relu", "gelu"):
        raise ArgumentError("Transformer", f"activation is 'relu', 'gelu' or a function, not {name!r}")
    return F.relu if name == "relu" else F.gelu


class _Layer(Module):
    """What encoder and decoder layers share: attention, a network of two linear layers, norms and dropout."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward, bias), Linear(dim_feedforward, d_model, bias)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout, self.norm_first, self.activation = dropout, norm_first, _activation(activation)

    def _network(self, x: Tensor) -> Tensor:
        inner = self.activation(self.linear1(x)).dropout(self.dropout)
        return self.linear2(inner).dropout(self.dropout)

    def _added(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """A part beside which its input goes on, normalised before or after."""
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def _attended(self, x: Tensor, memory: Tensor | None, attention: MultiheadAttention, **masks: Any) -> Tensor:
        source = x if memory is None else memory
        mixed: Tensor = attention(x, source, source, need_weights=False, **masks)[0]
        return mixed.dropout(self.dropout)


class TransformerEncoderLayer(_Layer):
    """Attention to itself, then a network of two linear layers.

    >>> TransformerEncoderLayer(8, 2, 16)(Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        masks = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
        x = self._added(src, self.norm1, lambda x: self._attended(x, None, self.self_attn, **masks))
        return self._added(x, self.norm2, self._network)


class TransformerDecoderLayer(_Layer):
    """Attention to itself, then to what an encoder gave, then a network of two linear layers.

    >>> TransformerDecoderLayer(8, 2, 16)(Tensor.ones(5, 2, 8), Tensor.ones(3, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        )
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        own = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}
        other = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
        x = self._added(tgt, self.norm1, lambda x: self._attended(x, None, self.self_attn, **own))
        x = self._added(x, self.norm2, lambda x: self._attended(x, memory, self.multihead_attn, **other))
        return self._added(x, self.norm3, self._network)


class TransformerEncoder(Module):
    """Several layers like the one given, one after the other, and a norm at the end if there is one.

    >>> TransformerEncoder(TransformerEncoderLayer(8, 2, 16), 2)(Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Any = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        self.layers, self.norm = ModuleList(_copies(encoder_layer, num_layers)), norm

    def forward(
        self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Several layers like the one given, one after the other, and a norm at the end if there is one.

    >>> TransformerDecoder(TransformerDecoderLayer(8, 2, 16), 2)(Tensor.ones(5, 2, 8), Tensor.ones(3, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Any = None) -> None:
        self.layers, self.norm = ModuleList(_copies(decoder_layer, num_layers)), norm

    def forward(self, tgt: Tensor, memory: Tensor, *masks: Any, **named: Any) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named)
        return tgt if self.norm is None else self.norm(tgt)


def _copies(layer: Module, count: int) -> list[Any]:
    """Layers with the same weights to begin with, in memory of their own."""
    return [copy.deepcopy(layer, {id(t): t.clone() for t in get_state_dict(layer).values()}) for _ in range(count)]


class Transformer(Module):
    """An encoder and a decoder that attends to what it gives.

    >>> model = Transformer(8, 2, 1, 1, 16)
    >>> model(Tensor.ones(5, 2, 8), Tensor.ones(3, 2, 8)).shape
    (3, 2, 8)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
        custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        facts: tuple[Any, ...] = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
        )  # fmt: skip
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*facts), num_encoder_layers, LayerNorm(d_model, layer_norm_eps, bias=bias)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*facts), num_decoder_layers, LayerNorm(d_model, layer_norm_eps, bias=bias)
        )

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Mask = None, tgt_mask: Mask = None, memory_mask: Mask = None,
        src_key_padding_mask: Mask = None, tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(  # type: ignore[no-any-return]
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )

    @staticmethod
    def generate_square_subsequent_mask(size: int) -> Tensor:
        """-inf above the diagonal, 0 elsewhere.

        >>> Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return Tensor.full((size, size), -math.inf).triu(1)
