"""Scaled dot-product attention.

Attention is a softmax-weighted mean of the values; the weights come from the products of queries
and keys. It is spelled out in matrix products and a softmax, whose gradients do the rest.
"""

from __future__ import annotations

import math

import numpy as np

from minitorch.autograd import wrap
from minitorch.ops._typing import Tensor
from minitorch.ops.dropout import dropout
from minitorch.ops.precision import computed_in_float32
from minitorch.ops.softmax import softmax


@computed_in_float32
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key^T * scale + mask) @ value``.

    Parameters
    ----------
    query, key, value : Tensor
        ``(*, L, E)``, ``(*, S, E)``, ``(*, S, V)``; leading dimensions broadcast.
    attn_mask : Tensor, optional
        Broadcasts to ``(*, L, S)``. Boolean: True where attention is allowed; a query that may
        attend nowhere yields zeros. Floating: added to the products.
    dropout_p : float
        Dropout on the attention weights; applied whenever it is positive.
    is_causal : bool
        Query ``i`` attends to keys ``0 ... i`` only.
    scale : float, optional
        ``1/sqrt(E)`` by default.
    enable_gqa : bool
        Several query heads (dimension -3) share each key and value head.

    Returns
    -------
    Tensor
        ``(*, L, V)``.
    """
    if attn_mask is not None and is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key = key.repeat_interleave(repeats, -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    length, width = query.shape[-2:]
    if scale is None:
        scale = 1.0 / math.sqrt(width) if width else 1.0
    # Half of the scale on each factor keeps the products in range in 16-bit floats.
    root = math.sqrt(scale) if scale >= 0 else None
    if root is None:
        scores = (query * scale) @ key.transpose(-2, -1)
    else:
        scores = (query * root) @ (key * root).transpose(-2, -1)
    if is_causal:
        attn_mask = wrap(np.tri(length, key.shape[-2], dtype=np.bool_))
    weights = _weights(scores, attn_mask)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ value


def _weights(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return softmax(scores, -1)
    if mask._array.dtype != np.bool_:
        return softmax(scores + mask.to(scores.dtype), -1)
    blocked = ~mask._array
    weights = softmax(scores.masked_fill(wrap(blocked), -math.inf), -1)
    nowhere = blocked.all(axis=-1, keepdims=True)
    if nowhere.any():
        # A softmax over nothing is nan; PyTorch lets such a query read zeros.
        weights = weights.masked_fill(wrap(nowhere), 0.0)
    return weights
