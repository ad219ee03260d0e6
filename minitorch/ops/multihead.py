"""Multi-head attention as one function of its inputs and weights.

Queries, keys and values are projected, split into heads that attend independently, joined and
projected once more.
"""

from __future__ import annotations

import math

import numpy as np

from minitorch.autograd import wrap
from minitorch.ops._arguments import is_float
from minitorch.ops._typing import Tensor
from minitorch.ops.attention import scaled_dot_product_attention
from minitorch.ops.dropout import dropout
from minitorch.ops.generic import cast
from minitorch.ops.joining import cat, pad_constant
from minitorch.ops.matmul import linear
from minitorch.ops.softmax import softmax


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Check dimensions; return whether there is a batch dimension."""
    dims = query.dim()
    assert dims in (2, 3), (
        f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor"
    )
    words = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    assert key.dim() == value.dim() == dims, (
        f"For {words} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D "
        f"and {value.dim()}-D tensors respectively"
    )
    if key_padding_mask is not None:
        assert key_padding_mask.dim() == dims - 1, (
            f"For {words} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        assert attn_mask.dim() in (2, 3), (
            f"For {words} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead"
        )
        if dims == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            assert tuple(attn_mask.shape) == expected, (
                f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}"
            )
    return dims == 3


def _additive(mask: Tensor, name: str, dtype: np.dtype) -> Tensor:
    """A mask as numbers to add: boolean True, which forbids, becomes minus infinity."""
    array = mask._array
    if array.dtype != np.bool_:
        assert is_float(array), f"only bool and floating types of {name} are supported"
        return cast(mask, dtype)
    return wrap(np.where(array, -math.inf, 0.0).astype(dtype))


def _project(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    in_weight: Tensor | None,
    in_bias: Tensor | None,
    separate: tuple | None,
) -> tuple:
    """The three input projections, in one product when all three inputs are the same tensor."""
    width = query.shape[-1]
    if separate is not None:
        biases = (None,) * 3 if in_bias is None else in_bias.chunk(3)
        return tuple(
            linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases, strict=True)
        )
    if query is key and key is value:
        return linear(query, in_weight, in_bias).chunk(3, -1)
    assert in_weight is not None, "in_proj_weight is missing"
    weights = in_weight.split(width, 0)
    biases = (None,) * 3 if in_bias is None else in_bias.split(width, 0)
    return tuple(
        linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def _check_attn_mask(
    mask: Tensor | None, batch: int, num_heads: int, length: int, sources: int
) -> None:
    if mask is None:
        return
    shape = (length, sources) if mask.dim() == 2 else (batch * num_heads, length, sources)
    if tuple(mask.shape) != shape:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape!r}, but should be {shape}."
        )


def _joined_mask(
    attn_mask: Tensor | None,
    padding: Tensor | None,
    batch: int,
    num_heads: int,
    dtype: np.dtype,
) -> Tensor | None:
    """Both masks as one that broadcasts to ``(batch, heads, L, S)``, or None."""
    added = padded = None
    if attn_mask is not None:
        added = _additive(attn_mask, "attn_mask", dtype)
        if added.dim() == 3:
            added = added.reshape(batch, num_heads, *added.shape[1:])
    if padding is not None:
        padded = _additive(padding, "key_padding_mask", dtype).unsqueeze(1).unsqueeze(1)
    if added is None or padded is None:
        return padded if added is None else added
    return added + padded


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention with several heads; see :class:`minitorch.nn.MultiheadAttention`.

    Inputs are ``(L, N, E)``, ``(S, N, E)``, ``(S, N, E)``, or without the batch dimension ``N``.
    Masks: boolean True forbids, floating numbers are added; `attn_mask` is ``(L, S)`` or
    ``(N*heads, L, S)``, `key_padding_mask` ``(N, S)``.

    Returns
    -------
    (output, weights)
        ``(L, N, E)``; and ``(N, L, S)``, ``(N, heads, L, S)`` if not averaged, or None.
    """
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward: static_k/static_v not supported")
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if not batched:
        same = query is key and key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if same else (key.unsqueeze(1), value.unsqueeze(1))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    assert width == embed_dim_to_check, (
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
    )
    head_width = width // num_heads
    assert head_width * num_heads == width, (
        f"embed_dim {width} not divisible by num_heads {num_heads}"
    )
    if use_separate_proj_weight:
        assert key.shape[:2] == value.shape[:2], (
            f"key's sequence and batch dims {tuple(key.shape[:2])} do not match value's "
            f"{tuple(value.shape[:2])}"
        )
    else:
        assert key.shape == value.shape, (
            f"key shape {key.shape!r} does not match value shape {value.shape!r}"
        )
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    _check_attn_mask(attn_mask, batch, num_heads, length, k.shape[0])
    extra = 0
    if bias_k is not None and bias_v is not None:
        k, v = cat([k, bias_k.expand(1, batch, width)]), cat([v, bias_v.expand(1, batch, width)])
        extra += 1
    if add_zero_attn:
        zeros = wrap(np.zeros((1, batch, width), q._array.dtype))
        k, v = cat([k, zeros]), cat([v, zeros])
        extra += 1
    sources = k.shape[0]
    if key_padding_mask is not None:
        assert key_padding_mask.shape[0] == batch, (
            f"Expected key_padded_mask.shape[0] to be {batch}, but got {key_padding_mask.shape[0]}"
        )
        assert key_padding_mask.shape[1] == sources - extra, (
            f"Expected key_padded_mask.shape[1] to be {sources - extra}, but got "
            f"{key_padding_mask.shape[1]}"
        )
    mask = _joined_mask(attn_mask, key_padding_mask, batch, num_heads, q._array.dtype)
    if mask is not None and extra:
        mask = pad_constant(mask, (0, extra), 0.0)

    def heads(x: Tensor, count: int) -> Tensor:
        return x.reshape(count, batch, num_heads, head_width).permute(1, 2, 0, 3)

    q, k, v = heads(q, length), heads(k, sources), heads(v, sources)
    rate = dropout_p if training else 0.0
    if need_weights:
        scores = (q * math.sqrt(1.0 / head_width)) @ k.transpose(-2, -1)
        weights = softmax(scores if mask is None else scores + mask, -1)
        if rate > 0.0:
            weights = dropout(weights, rate)
        out = weights @ v
    else:
        weights = None
        out = scaled_dot_product_attention(q, k, v, mask, rate)
    out = out.permute(2, 0, 1, 3).reshape(length, batch, width)
    out = linear(out, out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights
