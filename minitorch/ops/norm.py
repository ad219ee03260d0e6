"""Normalisation: batch, layer, group, instance and root-mean-square norm.

Batch and layer norm are fused: one node each, whose gradient is an affine function of the input
with coefficients per channel or per row. The others are built from them or from elementary ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitorch.autograd import Node, bump_version, record
from minitorch.dtypes import finfo
from minitorch.ops._arguments import check_float, quiet, widen
from minitorch.ops._composed import composed_gradients
from minitorch.ops._typing import Tensor
from minitorch.ops.precision import computed_in_float32, in_float32

# ---------------------------------------------------------------------------------- batch norm


def _channel_sums(a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """Sum ``a`` (or ``a*b``) of shape ``(N, C, L)`` per channel, the last step in float64."""
    parts = a.sum(axis=2) if b is None else np.einsum("ncl,ncl->nc", a, b)
    return parts.sum(axis=0, dtype=np.float64)


def _per_channel(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return values.astype(dtype, copy=False)[:, None]


def _batch_statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = x.shape[0] * x.shape[2]
    mean = _channel_sums(x) / count
    centered = x - _per_channel(mean, x.dtype)
    return mean, _channel_sums(centered, centered) / count


def _composed_batch_norm(eps: float) -> Callable:
    def composition(x: Tensor, weight: Tensor | None, *_: Any) -> Tensor:
        axes = (0, *range(2, x.dim()))
        centered = x - x.mean(axes, keepdim=True)
        out = centered * ((centered * centered).mean(axes, keepdim=True) + eps) ** -0.5
        return out if weight is None else out * weight.reshape(-1, *(1,) * (x.dim() - 2))

    return composition


@quiet
def native_batch_norm_backward(node: Node, grad: Any) -> tuple:
    x, weight = node.saved
    mean, inverse, eps = node.ctx
    need_x, need_weight, need_bias = node.needs_input_grad
    if type(grad) is not np.ndarray:
        found = composed_gradients(
            _composed_batch_norm(eps), (x, weight), grad, (need_x, need_weight)
        )
        return (*found, grad.sum((0, *range(2, grad.dim()))) if need_bias else None)
    shape, dtype = x.shape, x.dtype
    grad, x = (widen(a).reshape(*shape[:2], math.prod(shape[2:])) for a in (grad, x))
    centered = x - _per_channel(mean, x.dtype)
    sum_grad, sum_product = _channel_sums(grad), _channel_sums(grad, centered) * inverse
    out = None
    if need_x:
        count = x.shape[0] * x.shape[2]
        scale = inverse if weight is None else inverse * weight
        out = np.multiply(
            centered, _per_channel(-scale * inverse * sum_product / count, x.dtype), out=centered
        )
        out += grad * _per_channel(scale, x.dtype)
        out -= _per_channel(scale * sum_grad / count, x.dtype)
        out = out.reshape(shape).astype(dtype, copy=False)
    return (
        out,
        sum_product.astype(weight.dtype) if need_weight else None,
        sum_grad.astype(dtype if weight is None else weight.dtype) if need_bias else None,
    )


def _check_channels(name: str, values: Tensor | None, channels: int) -> None:
    if values is not None and values.numel() != channels:
        raise RuntimeError(f"{name} should contain {channels} elements not {values.numel()}")


def _blend(running: Tensor, batch: np.ndarray, momentum: float) -> None:
    array = running._array
    array[...] = (1 - momentum) * array + momentum * batch
    bump_version(running)


@quiet
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of ``(N, C, *)`` to mean 0 and variance 1, then scale and shift.

    Parameters
    ----------
    running_mean, running_var : Tensor or None
        ``(C,)``. Used when `training` is false; otherwise the batch's own mean and (biased)
        variance are used, and these are moved towards them by `momentum`. The running variance is
        fed with the *unbiased* variance.
    weight, bias : Tensor or None
        ``(C,)``, scale and shift.

    Raises
    ------
    ValueError
        When training on a single value per channel.
    """
    channels = input.shape[1]
    for name, values in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        _check_channels(name, values, channels)
    if not training:
        return _normalize_with(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // max(channels, 1)
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape!r}"
        )
    shape = input.shape
    x = widen(check_float(input, "batch_norm")).reshape(*shape[:2], math.prod(shape[2:]))
    mean, var = _batch_statistics(x)
    inverse = 1 / np.sqrt(var + eps)
    scale = inverse if weight is None else inverse * weight._array
    shift = -mean * scale if bias is None else bias._array - mean * scale
    out = x * _per_channel(scale, x.dtype)
    out += _per_channel(shift, x.dtype)
    if count:
        if running_mean is not None:
            _blend(running_mean, mean, momentum)
        if running_var is not None:
            _blend(running_var, var * (count / (count - 1)), momentum)
    out = out.reshape(shape).astype(input._array.dtype, copy=False)
    return record(
        out,
        native_batch_norm_backward,
        (input, weight, bias),
        (input, weight),
        (mean, inverse, eps),
    )


def _normalize_with(
    x: Tensor,
    mean: Tensor | None,
    var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    if mean is None or var is None:
        name = "running_mean" if mean is None else "running_var"
        raise RuntimeError(f"{name} must be defined in evaluation mode")
    return in_float32(_apply_statistics, x, mean, var, weight, bias, eps).to(x.dtype)


def _apply_statistics(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    shape = (-1, *(1,) * (x.dim() - 2))
    scale = (var + eps) ** -0.5
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return x * scale.reshape(shape) + shift.reshape(shape)


# ---------------------------------------------------------------------------------- layer norm


def _composed_layer_norm(dims: int, eps: float) -> Callable:
    def composition(x: Tensor, weight: Tensor | None) -> Tensor:
        axes = tuple(range(-dims, 0))
        centered = x - x.mean(axes, keepdim=True)
        out = centered * ((centered * centered).mean(axes, keepdim=True) + eps) ** -0.5
        return out if weight is None else out * weight

    return composition


@quiet
def native_layer_norm_backward(node: Node, grad: Any) -> tuple:
    x, weight = node.saved
    mean, inverse, dims, eps = node.ctx
    need_x, need_weight, need_bias = node.needs_input_grad
    if type(grad) is not np.ndarray:
        found = composed_gradients(
            _composed_layer_norm(dims, eps), (x, weight), grad, (need_x, need_weight)
        )
        lead = tuple(range(grad.dim() - dims))
        if need_bias:
            return (*found, grad.sum(lead) if lead else grad)
        return (*found, None)
    shape, dtype = x.shape, x.dtype
    inner = shape[len(shape) - dims :]
    rows, width = math.prod(shape[: len(shape) - dims]), math.prod(inner)
    grad, x = (widen(a).reshape(rows, width) for a in (grad, x))
    hat = x - mean
    hat *= inverse
    grad_weight = None
    if need_weight:
        grad_weight = np.einsum("rd,rd->d", grad, hat).reshape(inner).astype(weight.dtype)
    grad_bias = grad.sum(axis=0).reshape(inner).astype(dtype) if need_bias else None
    out = None
    if need_x:
        scaled = grad if weight is None else grad * widen(weight).reshape(width)
        along = np.einsum("rd,rd->r", scaled, hat)[:, None] / width
        out = scaled - np.multiply(hat, along, out=hat)
        out -= scaled.mean(axis=1, keepdims=True)
        out *= inverse
        out = out.reshape(shape).astype(dtype, copy=False)
    return out, grad_weight, grad_bias


@quiet
def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions, whose sizes are `normalized_shape`, then scale and shift.

    `weight` and `bias` have the shape `normalized_shape`.
    """
    inner = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    check_float(input, "LayerNormKernelImpl")
    _check_layer_norm(input, inner, weight, bias)
    shape = input.shape
    rows, width = math.prod(shape[: len(shape) - len(inner)]), math.prod(inner)
    x = widen(input._array).reshape(rows, width)
    mean = x.mean(axis=1, keepdims=True) if width else np.zeros((rows, 1), x.dtype)
    out = x - mean
    inverse = np.einsum("rd,rd->r", out, out)[:, None] / max(width, 1)
    inverse += eps
    np.sqrt(inverse, out=inverse)
    np.reciprocal(inverse, out=inverse)
    out *= inverse
    if weight is not None:
        out *= weight._array.reshape(width)
    if bias is not None:
        out += bias._array.reshape(width)
    out = out.reshape(shape).astype(input._array.dtype, copy=False)
    return record(
        out,
        native_layer_norm_backward,
        (input, weight, bias),
        (input, weight),
        (mean, inverse, len(inner), eps),
    )


def _check_layer_norm(
    x: Tensor, inner: tuple[int, ...], weight: Tensor | None, bias: Tensor | None
) -> None:
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None and tuple(values.shape) != inner:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
                f"shape {list(values.shape)} and normalized_shape = {list(inner)}"
            )
    if not inner or tuple(x.shape[-len(inner) :]) != inner:
        raise RuntimeError(
            f"Given normalized_shape={list(inner)}, expected input with shape "
            f"[*, {', '.join(map(str, inner))}], but got input of size{list(x.shape)}"
        )


# ------------------------------------------------------------------------------ built from these


@computed_in_float32
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each of `num_groups` groups of channels of every sample of ``(N, C, *)``."""
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {list(shape)} and num_groups={num_groups}"
        )
    check_float(input, "GroupNormKernelImpl")
    width = math.prod(shape[1:]) // num_groups
    rows = input.reshape(shape[0], num_groups, width)
    out = layer_norm(rows, (width,), eps=eps).reshape(shape)
    affine = (-1, *(1,) * (len(shape) - 2))
    if weight is not None:
        out = out * weight.reshape(affine)
    return out if bias is None else out + bias.reshape(affine)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise every channel of every sample of ``(N, C, *)`` on its own.

    With ``use_input_stats=False`` the running statistics are used, as `batch_norm` does.
    """
    if not use_input_stats:
        return _normalize_with(input, running_mean, running_var, weight, bias, eps)
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape!r}"
        )
    check_float(input, "batch_norm")
    if running_mean is not None and running_var is not None:
        samples = widen(input._array).reshape(*input.shape[:2], math.prod(input.shape[2:]))
        _blend(running_mean, samples.mean(axis=2).mean(axis=0), momentum)
        _blend(running_var, samples.var(axis=2, ddof=1).mean(axis=0), momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the last dimensions, then scale by `weight`."""
    inner = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    check_float(input, "rms_norm")
    _check_layer_norm(input, inner, weight, None)
    if eps is None:
        eps = float(finfo(input.dtype).eps)
    return _rms_norm(input, weight, tuple(range(-len(inner), 0)), eps)


@computed_in_float32
def _rms_norm(x: Tensor, weight: Tensor | None, axes: tuple[int, ...], eps: float) -> Tensor:
    out = x * ((x * x).mean(axes, keepdim=True) + eps) ** -0.5
    return out if weight is None else out * weight
