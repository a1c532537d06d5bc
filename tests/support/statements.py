"""A small kernel with intermediates: attention, one row at a time."""

from __future__ import annotations

from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp


def attention(
    heads: int = 2, rows: int = 6, keys: int = 5, size: int = 3, causal: bool = False, batches: int = 1
) -> UOp:
    """Queries p1, keys p2, values p3; scores in s0, their powers in s1."""
    every, outer, h = batches * heads, "", "h"
    if batches > 1:
        outer, h = f"loop b in 0..{batches}\n        ", f"(b*{heads} + h)"
    q, k = f"p1[({h}*{rows} + i)*{size} + c]", f"p2[({h}*{keys} + j)*{size} + c]"
    score = f"sum({q} * {k} for c)"
    return parse(f"""
        kernel
        param p0 float32[{every * rows * size}]
        param p1 float32[{every * rows * size}]
        param p2 float32[{every * keys * size}]
        param p3 float32[{every * keys * size}]
        scratch s0 float32[{keys}] align 64
        scratch s1 float32[{keys}] align 64
        {outer}loop h in 0..{heads}
        loop i in 0..{rows}
        loop d in 0..{size}
        loop c in 0..{size}
        loop m in 0..{keys}
        loop t in 0..{keys}
        loop w in 0..{keys}
        loop j in 0..{keys}
            s0[j] = {f"where(j < i + 1, {score}, -inf)" if causal else score}
        scores = after(s0, j)
        top = max(scores[m] for m)
        loop e in 0..{keys}
            s1[e] = exp(scores[e] - where(-inf < top, top, 0.0))
        powers = after(s1, e)
        p0[({h}*{rows} + i)*{size} + d] = sum(powers[w] * p3[({h}*{keys} + w)*{size} + d] for w) / sum(powers[t] for t)
        """)
