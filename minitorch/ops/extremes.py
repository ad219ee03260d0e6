"""Largest and smallest: max, min, amax, argmax and their relatives. Order is in `order.py`.

Values are differentiable: the gradient goes to the chosen elements; where a full reduction or
amax has ties, in equal parts, as PyTorch does. NaN counts as larger and as smaller than anything.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import Node, TensorBase, record, wrap
from minitorch.ops import generic, selection
from minitorch.ops.axes import axes, axis, kept_shape
from minitorch.ops.gathering import take_elements


def named_pair(name: str) -> Any:
    """Return the named pair (values, indices) that prints as PyTorch's ``torch.return_types``."""
    return namedtuple(name, ["values", "indices"])


max_result, min_result = named_pair("max"), named_pair("min")
aminmax_result: Any = namedtuple("aminmax", ["min", "max"])  # type: ignore[name-match]


def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the maximum over `dim` (int, tuple, or all)."""
    return _reduce(input, dim, keepdim, np.maximum, "amax", "AmaxBackward0")


def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the minimum over `dim` (int, tuple, or all)."""
    return _reduce(input, dim, keepdim, np.minimum, "amin", "AminBackward0")


def _reduce(input: Any, dim: Any, keepdim: bool, ufunc: Any, what: str, name: str) -> Any:
    x = input._array
    over = axes(dim, x.ndim)
    if dim in (None, ()) and x.size == 0:
        raise RuntimeError(
            f"{what}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    for i in over:
        if x.shape[i] == 0:
            raise IndexError(f"{what}(): Expected reduction dim {i} to have non-zero size.")
    out = np.asarray(ufunc.reduce(x, axis=over, keepdims=keepdim))
    share = None
    if input._requires_grad:
        hit = x == out.reshape(kept_shape(x.shape, over))
        count = hit.sum(axis=over, keepdims=True)
        # Nothing equals NaN: a NaN extreme has no gradient but NaN.
        share = (hit / np.where(count, count, np.nan)).astype(x.dtype)
    return record(out, evenly_backward, (input,), (), (share, over), name)


def share_evenly(input: Any, out: ndarray, name: str) -> Any:
    """Record the 0-d result `out`, whose gradient goes in equal parts to all elements equal to it.

    If it is NaN, to all that are NaN.
    """
    x = input._array
    share = None
    if input._requires_grad:
        hit = np.isnan(x) if np.isnan(out) else x == out
        share = (hit / (np.count_nonzero(hit) or 1)).astype(x.dtype)
    return record(out, evenly_backward, (input,), (), (share, tuple(range(x.ndim))), name)


def evenly_backward(node: Node, grad: Any) -> tuple:
    share, over = node.ctx
    return (grad.reshape(kept_shape(share.shape, over)) * generic.like(share, grad),)


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the maximum of all, or (values, indices) along `dim`, or of two tensors."""
    if isinstance(dim, TensorBase):
        return selection.maximum(input, dim)
    if dim is None:
        return _all(input, np.maximum, "max", "MaxBackward1")
    return max_result(*_along(input, dim, keepdim, np.argmax, "max"))


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the minimum of all, or (values, indices) along `dim`, or of two tensors."""
    if isinstance(dim, TensorBase):
        return selection.minimum(input, dim)
    if dim is None:
        return _all(input, np.minimum, "min", "MinBackward1")
    return min_result(*_along(input, dim, keepdim, np.argmin, "min"))


def _all(input: Any, ufunc: Any, what: str, name: str) -> Any:
    if input._array.size == 0:
        raise RuntimeError(
            f"{what}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    return share_evenly(input, np.asarray(ufunc.reduce(input._array, axis=None)), name)


def _along(input: Any, dim: int, keepdim: bool, search: Any, what: str) -> tuple:
    x = input._array
    where = axis(dim, x.ndim)
    if x.ndim and x.shape[where] == 0:
        raise IndexError(f"{what}(): Expected reduction dim {where} to have non-zero size.")
    if x.ndim == 0:
        return input * 1 if x.dtype.kind != "b" else wrap(x.copy()), wrap(np.zeros((), np.int64))
    indices = np.expand_dims(search(x, axis=where), where).astype(np.int64, copy=False)
    return pick(input, where, indices, keepdim, f"{what.capitalize()}Backward0")


def pick(input: Any, where: int, indices: ndarray, keepdim: bool, name: str) -> tuple:
    """Return (values, indices) of one chosen element per slice along `where`."""
    values = take_elements(input, where, indices, name)
    if keepdim:
        return values, wrap(indices)
    return values.squeeze(where), wrap(indices.squeeze(where))


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the maximum: in the flattened tensor, or along `dim`."""
    return _arg(input, dim, keepdim, np.argmax, "argmax")


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the minimum: in the flattened tensor, or along `dim`."""
    return _arg(input, dim, keepdim, np.argmin, "argmin")


def _arg(input: Any, dim: int | None, keepdim: bool, search: Any, what: str) -> Any:
    x = input._array
    if x.dtype.kind == "b":
        raise RuntimeError(f"{what}(): does not support bool input")
    if dim is not None:
        where = axis(dim, x.ndim)
        dim = where if x.ndim else None
    if dim is None and x.size == 0:
        raise IndexError(
            f"{what}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    if dim is not None and x.shape[dim] == 0:
        raise IndexError(f"{what}(): Expected reduction dim {dim} to have non-zero size.")
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    return wrap(np.asarray(search(x, axis=dim, keepdims=keepdim)).astype(np.int64, copy=False))


def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return (min, max) of all, or along `dim`."""
    x = input._array
    if dim is None and x.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity."
        )
    over = () if dim is None else dim
    return aminmax_result(amin(input, over, keepdim), amax(input, over, keepdim))
