"""Softmax and its logarithm along one dimension.

Both subtract the maximum first, so that no exponential overflows, and both keep their result: their
gradients need nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd import Node, record
from minitorch.ops._arguments import (
    check_float,
    implicit_dim,
    quiet,
    widen,
    wrap_dim,
)
from minitorch.ops._typing import Tensor


@quiet
def softmax_array(x: np.ndarray, axis: int) -> np.ndarray:
    """Softmax of an array in its own dtype (16-bit floats are computed in float32)."""
    wide = widen(x)
    out = wide - _peak(wide, axis)
    np.exp(out, out=out)
    out /= out.sum(axis=axis, keepdims=True)
    return out.astype(x.dtype, copy=False)


@quiet
def log_softmax_array(x: np.ndarray, axis: int) -> np.ndarray:
    """Logarithm of the softmax of an array, without forming the softmax's small numbers."""
    wide = widen(x)
    out = wide - _peak(wide, axis)
    out -= np.log(np.exp(out).sum(axis=axis, keepdims=True))
    return out.astype(x.dtype, copy=False)


def _peak(x: np.ndarray, axis: int) -> np.ndarray:
    # The initial value only matters for an empty axis, where there is nothing to subtract from.
    return x.max(axis=axis, keepdims=True, initial=-np.inf)


@quiet
def softmax_backward(node: Node, grad: Any) -> tuple:
    (y,), axis = node.saved, node.ctx
    if type(grad) is not np.ndarray:
        return (y * (grad - (grad * y).sum(axis, keepdim=True)),)
    wide, y = widen(grad), widen(y)
    out = wide * y
    out -= y * out.sum(axis=axis, keepdims=True)
    return (out.astype(grad.dtype, copy=False),)


@quiet
def log_softmax_backward(node: Node, grad: Any) -> tuple:
    (y,), axis = node.saved, node.ctx
    if type(grad) is not np.ndarray:
        return (grad - y.exp() * grad.sum(axis, keepdim=True),)
    wide, out = widen(grad), np.asarray(np.exp(widen(y)))  # 0-d: NumPy makes a scalar
    out *= wide.sum(axis=axis, keepdims=True)
    return (np.subtract(wide, out, out=out).astype(grad.dtype, copy=False),)


def _apply(x: Tensor, dim: int | None, dtype: Any, name: str, kernel: Any, rule: Any) -> Tensor:
    dim = wrap_dim(implicit_dim(name, x.dim(), dim), x.dim())
    if dtype is not None:
        x = x.to(dtype)
    array = check_float(x, name)
    out = kernel(array.reshape(1) if array.ndim == 0 else array, dim).reshape(array.shape)
    # A 0-d input is a single class: the rule then sums over nothing.
    return record(out, rule, (x,), (out,), dim if array.ndim else ())


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Exponentials along `dim`, scaled to sum to one.

    Parameters
    ----------
    dtype : dtype, optional
        Convert `input` first, for instance to avoid overflow in float16.
    """
    return _apply(input, dim, dtype, "softmax", softmax_array, softmax_backward)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Logarithm of `softmax`, accurate also where the softmax underflows."""
    return _apply(input, dim, dtype, "log_softmax", log_softmax_array, log_softmax_backward)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax(-input, dim)``."""
    return softmax(-input, implicit_dim("softmin", input.dim(), dim), dtype=dtype)
