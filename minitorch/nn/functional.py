"""Neural-network functions without state: ``import minitorch.nn.functional as F``.

The functions live with their gradients in ``minitorch/ops``; this file gathers them under PyTorch's
names and adds a few that are spelled out in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.ops import joining, pointwise
from minitorch.ops._typing import Tensor
from minitorch.ops.activation import (
    celu,
    elu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu6,
    selu,
    silu,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from minitorch.ops.adaptive_pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
)
from minitorch.ops.attention import scaled_dot_product_attention
from minitorch.ops.bilinear import bilinear
from minitorch.ops.conv import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from minitorch.ops.dropout import dropout, dropout1d, dropout2d
from minitorch.ops.embedding import embedding, one_hot
from minitorch.ops.matmul import linear
from minitorch.ops.multihead import multi_head_attention_forward
from minitorch.ops.nll import cross_entropy, nll_loss
from minitorch.ops.norm import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from minitorch.ops.pointwise import gelu, softplus
from minitorch.ops.pool import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from minitorch.ops.precision import computed_in_float32
from minitorch.ops.regression_loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from minitorch.ops.shape import broadcast_tensors
from minitorch.ops.softmax import log_softmax, softmax, softmin

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "elu_",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``."""
    return input.relu_() if inplace else pointwise.relu(input)


def relu_(input: Tensor) -> Tensor:
    """``relu`` in place."""
    return input.relu_()


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``leaky_relu`` in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``elu`` in place."""
    return elu(input, alpha, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``hardtanh`` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return pointwise.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return pointwise.tanh(input)


def _border_index(mode: str, size: int, before: int, after: int, dim: int) -> np.ndarray:
    """Which element of a dimension each element of the padded one repeats."""
    positions = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(positions, 0, size - 1)
    if mode == "circular":
        if max(before, after) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        return positions % size
    if max(before, after) >= size:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but "
            f"got: padding ({before}, {after}) at dimension {dim} of input of size {size}"
        )
    positions = np.abs(positions)
    return np.where(positions >= size, 2 * (size - 1) - positions, positions)


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pad the last dimensions: ``pad`` lists (before, after), last dimension first.

    Parameters
    ----------
    mode : {"constant", "reflect", "replicate", "circular"}
        What to pad with: `value` (0 by default), the mirror image, the border, or the other end.
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.dim():
        raise RuntimeError("Padding length too large")
    if mode == "constant":
        return joining.pad_constant(input, pad, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    out = input
    for k in range(len(pad) // 2):
        before, after = pad[2 * k], pad[2 * k + 1]
        if before or after:
            dim = input.dim() - 1 - k
            index = _border_index(mode, input.shape[dim], before, after, dim)
            out = out.index_select(dim, wrap(index))
    return out


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None
) -> Tensor:
    """Divide by the `p`-norm along `dim`, but at least by `eps`."""
    if out is not None:
        raise NotImplementedError("normalize: out= is not supported")
    return _normalize(input, p, dim, eps)


@computed_in_float32
def _normalize(input: Tensor, p: float, dim: int, eps: float) -> Tensor:
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)


@computed_in_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between `x1` and `x2` along `dim`; norms count as at least `eps`.

    The two are broadcast together first.
    """
    x1, x2 = broadcast_tensors(x1, x2)
    first = x1 / x1.norm(2, dim, keepdim=True).clamp(min=eps)
    second = x2 / x2.norm(2, dim, keepdim=True).clamp(min=eps)
    return (first * second).sum(dim)


@computed_in_float32
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The `p`-norm of ``x1 - x2 + eps`` along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)
