"""Running sums, products and extremes along one dimension, and differences of neighbours.

Every output depends on all inputs before it, so every gradient runs the other way: a running sum
from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import Node, record, wrap
from minitorch.dtypes import as_dtype
from minitorch.ops import generic
from minitorch.ops._arguments import widen
from minitorch.ops.axes import axis
from minitorch.ops.casting import cast
from minitorch.ops.extremes import named_pair
from minitorch.ops.gathering import take_elements
from minitorch.ops.generic import linear_pair
from minitorch.ops.joining import cat, narrow
from minitorch.ops.precision import computed_in_float32

cummax_result, cummin_result = named_pair("cummax"), named_pair("cummin")


def _accumulation_type(input: Any, dtype: Any) -> Any:
    """Return `input` in the type that the running result shall have; integers run in int64."""
    if dtype is not None:
        return cast(input, as_dtype(dtype).numpy)
    if input._array.dtype.kind in "biu":
        return cast(input, np.dtype(np.int64))
    return input


# -- sums ----------------------------------------------------------------------------------------


def _running(x: ndarray, ctx: int) -> ndarray:
    return np.add.accumulate(widen(x), axis=ctx).astype(x.dtype, copy=False)


def _running_from_end(x: ndarray, ctx: int) -> ndarray:
    return np.flip(_running(np.flip(x, ctx), ctx), ctx)


_cumsum, _cumsum_from_end = linear_pair(_running, _running_from_end, "CumsumBackward0")


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the running sum along `dim`."""
    input = _accumulation_type(input, dtype)
    where = axis(dim, input._array.ndim)
    return input * 1 if input._array.ndim == 0 else _cumsum(input, where)


# -- products ------------------------------------------------------------------------------------


@computed_in_float32
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the running product along `dim`."""
    input = _accumulation_type(input, dtype)
    x = input._array
    where = axis(dim, x.ndim)
    if x.ndim == 0:
        return input * 1
    out = np.multiply.accumulate(x, axis=where)
    return record(out, cumprod_backward, (input,), (input, out), where)


def cumprod_backward(node: Node, grad: Any) -> tuple:
    """Gradient of the running product, without a division, so that zeros are no exception.

    With P the product of what comes before, ``dx[k] = P[k] * S[k]`` where the S obey
    ``S[k] = grad[k] + x[k+1] * S[k+1]``. Such a recurrence is a chain of maps ``s -> b + a*s``,
    which compose: doubling the distance each time, all S are found in log2(n) whole-array steps.
    """
    x, out = node.saved
    where = node.ctx
    n = x.shape[where]
    if n == 0:
        return (grad,)
    order = (*[i for i in range(len(x.shape)) if i != where], where)
    x, out, b = (generic.permute(each, order) for each in (x, out, grad))
    one, zero = (generic.like(np.full_like(generic.raw(x[..., :1]), v), x) for v in (1, 0))
    a = generic.concatenate([x[..., 1:], zero], -1)
    step = 1
    while step < n:
        reach = n - step
        b = generic.concatenate(
            [b[..., :reach] + a[..., :reach] * b[..., step:], b[..., reach:]], -1
        )
        a = generic.concatenate([a[..., :reach] * a[..., step:], a[..., reach:]], -1)
        step *= 2
    before = generic.concatenate([one, out[..., :-1]], -1)
    return (generic.permute(before * b, tuple(np.argsort(order).tolist())),)


# -- extremes ------------------------------------------------------------------------------------


def cummax(input: Any, dim: int) -> Any:
    """Return (values, indices) of the largest element so far; of equal ones the latest."""
    return cummax_result(*_running_extreme(input, dim, np.maximum, "CummaxBackward0"))


def cummin(input: Any, dim: int) -> Any:
    """Return (values, indices) of the smallest element so far; of equal ones the latest."""
    return cummin_result(*_running_extreme(input, dim, np.minimum, "CumminBackward0"))


def _running_extreme(input: Any, dim: int, ufunc: Any, name: str) -> tuple:
    x = input._array
    where = axis(dim, x.ndim)
    if x.ndim == 0:
        return input.clone(), wrap(np.zeros((), np.int64))
    hit = x == ufunc.accumulate(x, axis=where)
    if x.dtype.kind in "fV":
        hit |= np.isnan(x)  # NaN wins, and the latest NaN wins again
    steps = np.arange(x.shape[where]).reshape(-1, *(1,) * (x.ndim - 1 - where))
    indices = np.maximum.accumulate(np.where(hit, steps, 0), axis=where)
    return take_elements(input, where, indices, name), wrap(indices)


# -- differences ---------------------------------------------------------------------------------


def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return the differences of neighbours along `dim`, taken `n` times."""
    where = axis(dim, input._array.ndim)
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    parts = [each for each in (prepend, input, append) if each is not None]
    out = cat(parts, where) if len(parts) > 1 else input
    for _ in range(n):
        rest = max(out._array.shape[where] - 1, 0)
        first, start = narrow(out, where, 0, rest), min(1, out._array.shape[where])
        after = narrow(out, where, start, rest)
        out = after.logical_xor(first) if out._array.dtype.kind == "b" else after - first
    return out.clone() if out is input else out
