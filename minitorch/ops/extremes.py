"""Largest, smallest, and order: max, min, amax, argmax, sort, topk, median.

Values are differentiable: the gradient goes to the chosen elements; where a full reduction or
amax has ties, in equal parts, as PyTorch does.
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


def _pair(name: str) -> Any:
    """Return the named pair (values, indices) that prints as PyTorch's ``torch.return_types``."""
    return namedtuple(name, ["values", "indices"])


max_result, min_result, sort_result = _pair("max"), _pair("min"), _pair("sort")
topk_result, median_result, kthvalue_result = _pair("topk"), _pair("median"), _pair("kthvalue")


def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the maximum over `dim` (int, tuple, or all)."""
    return _reduce(input, dim, keepdim, np.maximum, "amax", "AmaxBackward0")


def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the minimum over `dim` (int, tuple, or all)."""
    return _reduce(input, dim, keepdim, np.minimum, "amin", "AminBackward0")


def _reduce(input: Any, dim: Any, keepdim: bool, ufunc: Any, what: str, name: str) -> Any:
    x = input._array
    over = axes(dim, x.ndim)
    for i in over:
        if x.shape[i] == 0:
            raise IndexError(
                f"{what}(): Expected reduction dim {i} to have non-zero size."
                if dim not in (None, ())
                else f"{what}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
    out = np.asarray(ufunc.reduce(x, axis=over, keepdims=keepdim))
    share = None
    if input._requires_grad:
        hit = x == out.reshape(kept_shape(x.shape, over))
        share = (hit / hit.sum(axis=over, keepdims=True)).astype(x.dtype)
    return record(out, evenly_backward, (input,), (), (share, over), name)


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
    return _reduce(input, None, False, ufunc, what, name)


def _along(input: Any, dim: int, keepdim: bool, search: Any, what: str) -> tuple:
    x = input._array
    where = axis(dim, x.ndim)
    if x.ndim and x.shape[where] == 0:
        raise IndexError(f"{what}(): Expected reduction dim {where} to have non-zero size.")
    if x.ndim == 0:
        return input * 1 if x.dtype.kind != "b" else wrap(x.copy()), wrap(np.zeros((), np.int64))
    indices = np.expand_dims(search(x, axis=where), where).astype(np.int64, copy=False)
    return _pick(input, where, indices, keepdim, f"{what.capitalize()}Backward0")


def _pick(input: Any, where: int, indices: ndarray, keepdim: bool, name: str) -> tuple:
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
        raise RuntimeError(f"{what}_cpu: not implemented for 'Bool'")
    if dim is not None:
        dim = axis(dim, x.ndim) if x.ndim else None
    if (x.size if dim is None else x.shape[dim]) == 0:
        raise IndexError(
            f"{what}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    return wrap(np.asarray(search(x, axis=dim, keepdims=keepdim)).astype(np.int64, copy=False))


# -- order ---------------------------------------------------------------------------------------


def _order(x: ndarray, where: int, descending: bool) -> ndarray:
    """Return the stable sorting indices along an axis; NaN counts as the largest."""
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, axis=where, kind="stable").astype(np.int64, copy=False)
    # Sorting the reversed array and reversing the result keeps equal elements in their order.
    back = np.argsort(np.flip(x, where), axis=where, kind="stable")
    return np.ascontiguousarray(np.flip(x.shape[where] - 1 - back, where)).astype(np.int64)


def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return (values, indices) sorted along `dim`; always stable."""
    x = input._array
    if x.ndim == 0:
        axis(dim, 0)
        return sort_result(input * 1, wrap(np.zeros((), np.int64)))
    where = axis(dim, x.ndim)
    indices = _order(x, where, descending)
    return sort_result(take_elements(input, where, indices, "SortBackward0"), wrap(indices))


def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the indices that sort along `dim`."""
    return sort(wrap(input._array), dim, descending).indices


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return (values, indices) of the `k` largest (or smallest) elements along `dim`, in order."""
    x = input._array
    where = axis(dim, x.ndim)
    if not 0 <= k <= (x.shape[where] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if x.ndim == 0:
        return topk_result(input * 1, wrap(np.zeros((), np.int64)))
    indices = _order(x, where, descending=largest)
    cut = np.ascontiguousarray(np.take(indices, range(k), axis=where))
    return topk_result(take_elements(input, where, cut, "TopkBackward0"), wrap(cut))


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return (value, index) of the k-th smallest element (from 1) along `dim`."""
    x = input._array
    where = axis(dim, x.ndim)
    if not 1 <= k <= x.shape[where]:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(where))
    indices = np.take(_order(x, where, False), [k - 1], axis=where)
    return kthvalue_result(*_pick(input, where, indices, keepdim, "KthvalueBackward0"))


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median (the lower of two middle elements): of all, or along `dim` with indices."""
    if dim is None:
        flat = input.reshape(-1)
        return kthvalue(flat, (flat._array.size + 1) // 2, 0).values
    size = input._array.shape[axis(dim, input._array.ndim)]
    return median_result(*kthvalue(input, (size + 1) // 2, dim, keepdim))
