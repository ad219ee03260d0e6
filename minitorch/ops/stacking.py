"""Joining tensors of too few dimensions, and giving them more: hstack, vstack, atleast_2d, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.lib.stride_tricks import sliding_window_view

from minitorch.autograd.graph import Node
from minitorch.autograd.inplace import record_view
from minitorch.ops.axes import axis
from minitorch.ops.generic import linear_pair
from minitorch.ops.joining import cat

# -- more dimensions -----------------------------------------------------------------------------


def _lifted(shaped: Callable[[tuple[int, ...]], tuple[int, ...]], tensors: tuple) -> Any:
    """Reshape each tensor; one tensor gives a tensor, several (or a sequence) a tuple."""
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return tensors[0].view(shaped(tensors[0]._array.shape))
    several = tensors[0] if len(tensors) == 1 else tensors
    return tuple([each.view(shaped(each._array.shape)) for each in several])


def atleast_1d(*tensors: Any) -> Any:
    """Return views with at least one dimension."""
    return _lifted(lambda shape: shape or (1,), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return views with at least two dimensions; a vector becomes a row."""
    return _lifted(lambda shape: (1,) * (2 - len(shape)) + shape, tensors)


def _three(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) > 2:
        return shape
    return {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]


def atleast_3d(*tensors: Any) -> Any:
    """Return views with at least three dimensions; a matrix gets a last one of length 1."""
    return _lifted(_three, tensors)


# -- join ----------------------------------------------------------------------------------------


def hstack(tensors: Sequence[Any]) -> Any:
    """Join along the second dimension (the first, for vectors)."""
    lifted = atleast_1d(list(tensors))
    return cat(lifted, 0 if lifted and lifted[0]._array.ndim == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Any:
    """Join along the first dimension, vectors counting as rows."""
    return cat(atleast_2d(list(tensors)), 0)


def dstack(tensors: Sequence[Any]) -> Any:
    """Join along the third dimension."""
    return cat(atleast_3d(list(tensors)), 2)


def column_stack(tensors: Sequence[Any]) -> Any:
    """Join along the second dimension, vectors counting as columns."""
    return cat([each if each._array.ndim > 1 else each.reshape(-1, 1) for each in tensors], 1)


row_stack = vstack


# -- windows -------------------------------------------------------------------------------------


def _windows_array(x: ndarray, ctx: tuple) -> ndarray:
    _, where, size, step = ctx
    windows = sliding_window_view(x, size, where, writeable=x.flags.writeable)
    return windows[(slice(None),) * where + (slice(None, None, step),)]


def _overlap_add_array(grad: ndarray, ctx: tuple) -> ndarray:
    """Add the windows up where they came from: one pass per position inside a window."""
    shape, where, size, step = ctx
    out = np.zeros(shape, grad.dtype)
    lead = (slice(None),) * where
    count = grad.shape[where]
    for k in range(size):
        out[(*lead, slice(k, k + (count - 1) * step + 1, step))] += grad[..., k]
    return out


_windows, _overlap_add = linear_pair(
    _windows_array, _overlap_add_array, "UnfoldBackward0", "UnfoldBackwardBackward0"
)


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """Return a view of all windows of `size` elements, `step` apart, along `dimension`.

    The windows' elements are the last dimension. Where windows overlap, writing to one writes to
    its neighbours.
    """
    x = input._array
    where = axis(dimension, x.ndim)
    length = x.shape[where] if x.ndim else 1
    if not 0 <= size <= length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {where} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if x.ndim == 0:
        return input.reshape(1)[:size]
    ctx = (x.shape, where, size, step)
    args = (where, size, step)
    return record_view(_windows_array(x, ctx), unfold_backward, input, ctx, unfold, args)


def unfold_backward(node: Node, grad: Any) -> tuple:
    return (_overlap_add(grad, node.ctx),)
