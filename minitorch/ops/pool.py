"""Pooling in one and two dimensions: maxima and means over sliding or adaptive windows.

Both poolings are linear once the winners are known, so the gradient of each map is its transpose,
and the transpose's gradient is the map again. The array kernels are in `_pool_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minitorch.autograd import is_grad_enabled, record, wrap
from minitorch.ops._pool_kernels import (
    PoolSpec,
    flat_indices,
    gather_array,
    max_array,
    mean_array,
    scatter_array,
    spread_array,
)
from minitorch.ops._typing import Tensor
from minitorch.ops._windows import out_length, pair
from minitorch.ops.generic import linear_pair

Size = int | Sequence[int]


class _Winners(NamedTuple):
    """Who won where: all that the gradient of a maximum depends on."""

    winner: np.ndarray | None
    shape: tuple[int, ...]
    spec: PoolSpec


class _Means(NamedTuple):
    divisor: np.ndarray
    shape: tuple[int, ...]
    spec: PoolSpec


_gather, _scatter = linear_pair(
    lambda x, ctx: gather_array(x, ctx.winner, ctx.spec),
    lambda g, ctx: scatter_array(g, ctx.winner, ctx.shape, ctx.spec),
    "MaxPool2DWithIndicesBackward0",
)
_mean, _spread = linear_pair(
    lambda x, ctx: mean_array(x, ctx.divisor, ctx.spec),
    lambda g, ctx: spread_array(g, ctx.divisor, ctx.shape, ctx.spec),
    "AvgPool2DBackward0",
)


# ------------------------------------------------------------------------------- sliding windows


def _spec(
    x: Tensor,
    kernel: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    dims: int,
) -> PoolSpec:
    """Check the arguments of a pooling of an image ``(..., H, W)`` and lay out its windows."""
    kernel = pair(kernel, "kernel_size", dims)
    stride = kernel if stride is None or stride == () else pair(stride, "stride", dims)
    pad, dilation = pair(padding, "padding", dims), pair(dilation, "dilation", dims)
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0 or min(stride) < 0 or min(dilation) <= 0:
        raise RuntimeError(
            "kernel size, stride and dilation should be greater than zero, but got "
            f"kernel_size={kernel[2 - dims :]}, stride={stride[2 - dims :]}, "
            f"dilation={dilation[2 - dims :]}"
        )
    for p, k, d in zip(pad, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )
    sizes = x.shape[-2:]
    out = tuple(
        out_length(n, k, s, (p, p), d, ceil_mode)
        for n, k, s, p, d in zip(sizes, kernel, stride, pad, dilation, strict=True)
    )
    channels = x.shape[-3]
    if min(out) < 1:
        before = "x".join(str(n) for n in (channels, *sizes))
        after = "x".join(str(max(n, 0)) for n in (channels, *out))
        raise RuntimeError(
            f"Given input size: ({before}). Calculated output size: ({after}). "
            "Output size is too small"
        )
    # With ceil_mode the last window may reach beyond the padding on the right.
    vertical, horizontal = (
        (p, max(p, (o - 1) * s + d * (k - 1) + 1 - n - p))
        for n, k, s, p, d, o in zip(sizes, kernel, stride, pad, dilation, out, strict=True)
    )
    return PoolSpec(kernel, stride, (vertical, horizontal), dilation, (out[0], out[1]))


def _check_dims(x: Tensor, dims: int, name: str) -> None:
    if x.dim() not in (dims + 1, dims + 2) or 0 in x.shape[-(dims + 1) :]:
        raise RuntimeError(
            f"{name}: non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor "
            f"expected for input, but got {list(x.shape)}"
        )


def _max_pool(
    x: Tensor,
    kernel_size: Size,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
    dims: int,
) -> Any:
    _check_dims(x, dims, f"max_pool{dims}d")
    image = x if dims == 2 else x.unsqueeze(-2)
    spec = _spec(image, kernel_size, stride, padding, dilation, ceil_mode, dims)
    track = is_grad_enabled() and x.requires_grad
    best, winner = max_array(image._array, spec, track or return_indices)
    # The maximum reads the winners, so its gradient is that of reading them.
    context = _Winners(winner, tuple(image.shape), spec)
    out = record(best, _gather.rule, (image,), (), context, _gather.name)
    out = out if dims == 2 else out.squeeze(-2)
    if not return_indices or winner is None:
        return out
    indices = wrap(flat_indices(winner, image.shape[-1], spec))
    return out, indices if dims == 2 else indices.squeeze(-2)


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over sliding windows of ``(N, C, L)`` or ``(C, L)``; see `max_pool2d`."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over sliding windows of ``(N, C, H, W)`` or ``(C, H, W)``.

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or pair
        `stride` defaults to `kernel_size`; the padding never wins.
    ceil_mode : bool
        Also keep a last window that only partly fits.
    return_indices : bool
        Also return, as int64, where in its image (flat) each maximum was found; of equal elements
        the first wins, and it alone receives the gradient.
    """
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


def _divisor(
    shape: tuple[int, ...],
    spec: PoolSpec,
    padding: tuple[int, int],
    count_include_pad: bool,
    override: int | None,
) -> np.ndarray:
    """How many elements each window's sum is divided by, ``(out_h, out_w)`` or a scalar."""
    if override is not None:
        if override == 0:
            raise RuntimeError("divisor must be not zero")
        return np.asarray(float(override))
    lengths = []
    for axis in (0, 1):
        size, pad = shape[axis - 2], padding[axis]
        start = np.arange(spec.out[axis]) * spec.stride[axis] - pad
        stop = np.minimum(start + spec.kernel[axis], size + pad)
        if not count_include_pad:
            start, stop = np.maximum(start, 0), np.minimum(stop, size)
        lengths.append(stop - start)
    counts = np.multiply.outer(*lengths).astype(float)
    return counts.flat[0] * np.ones(()) if (counts == counts.flat[0]).all() else counts


def _avg_pool(
    x: Tensor,
    kernel_size: Size,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    override: int | None,
    dims: int,
) -> Tensor:
    _check_dims(x, dims, f"avg_pool{dims}d")
    image = x if dims == 2 else x.unsqueeze(-2)
    spec = _spec(image, kernel_size, stride, padding, 1, ceil_mode, dims)
    pad = pair(padding, "padding", dims)
    divisor = _divisor(image.shape, spec, pad, count_include_pad, override)
    out = _mean(image, _Means(divisor, tuple(image.shape), spec))
    return out if dims == 2 else out.squeeze(-2)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean over sliding windows of ``(N, C, L)`` or ``(C, L)``; see `avg_pool2d`."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean over sliding windows of ``(N, C, H, W)`` or ``(C, H, W)``.

    The sum over a window is divided by its number of elements, padding included unless
    ``count_include_pad=False``, or by `divisor_override`.
    """
    return _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2
    )
