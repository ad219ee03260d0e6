"""Order: sort, topk, kthvalue, median, quantile. NaN counts as the largest, except for medians.

Values are differentiable: the gradient goes to the chosen elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import TensorBase, wrap
from minitorch.dtypes import type_word
from minitorch.ops.axes import axis
from minitorch.ops.extremes import named_pair, pick, share_evenly
from minitorch.ops.gathering import take_elements

sort_result, topk_result = named_pair("sort"), named_pair("topk")
kthvalue_result, median_result = named_pair("kthvalue"), named_pair("median")
nanmedian_result = named_pair("nanmedian")


def check_size(x: ndarray, where: int, what: str) -> None:
    """Raise if there is nothing to choose from along an axis."""
    if x.ndim and x.shape[where] == 0:
        raise IndexError(f"{what}(): Expected reduction dim {where} to have non-zero size.")


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
    check_size(x, where, "kthvalue")
    if not 1 <= k <= (x.shape[where] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {where}")
    if x.ndim == 0:
        return kthvalue_result(input * 1, wrap(np.zeros((), np.int64)))
    indices = np.take(_order(x, where, False), [k - 1], axis=where)
    return kthvalue_result(*pick(input, where, indices, keepdim, "KthvalueBackward0"))


def msort(input: Any) -> Any:
    """Return the values sorted along the first dimension."""
    return sort(input, 0).values


# -- medians -------------------------------------------------------------------------------------


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median (the lower of two middle elements): of all, or along `dim` with indices.

    Where an element is NaN the median is NaN; of nothing at all it is NaN too.
    """
    return _median(input, dim, keepdim, ignore_nan=False)


def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN (see :func:`median`)."""
    return _median(input, dim, keepdim, ignore_nan=True)


def _median(input: Any, dim: int | None, keepdim: bool, ignore_nan: bool) -> Any:
    x = input._array
    name = "Nanmedian" if ignore_nan else "Median"
    if x.dtype.kind == "b":
        raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'")
    if dim is None:
        if x.size == 0:
            return wrap(_of_nothing(x.dtype))
        chosen = _median_index(x.reshape(-1), 0, ignore_nan)
        return share_evenly(input, x.reshape(-1)[chosen].reshape(()), f"{name}Backward0")
    where = axis(dim, x.ndim)
    check_size(x, where, "median")
    result = nanmedian_result if ignore_nan else median_result
    if x.ndim == 0:
        return result(input * 1, wrap(np.zeros((), np.int64)))
    return result(
        *pick(input, where, _median_index(x, where, ignore_nan), keepdim, f"{name}Backward1")
    )


def _of_nothing(dtype: np.dtype) -> ndarray:
    """Return NaN, or what PyTorch gives for integers: the smallest of all."""
    if dtype.kind in "iu":
        return np.array(np.iinfo(dtype).min, dtype)
    return np.array(np.nan, dtype)


def _median_index(x: ndarray, where: int, ignore_nan: bool) -> ndarray:
    """Return the median's index along an axis, which is kept with length 1."""
    order = _order(x, where, False)
    nan = np.isnan(x) if x.dtype.kind in "fV" else np.zeros(x.shape, bool)
    count = x.shape[where] - nan.sum(axis=where, keepdims=True)
    middle = np.maximum(count - 1, 0) // 2
    chosen = np.take_along_axis(order, middle, where)
    if ignore_nan:
        return chosen
    first_nan = nan.argmax(axis=where, keepdims=True)
    return np.where(nan.any(axis=where, keepdims=True), first_nan, chosen)


# -- quantiles -----------------------------------------------------------------------------------


def quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Any:
    """Return the `q`-quantiles of all elements, or along `dim`.

    Parameters
    ----------
    q : float or Tensor
        In [0, 1]; a 1-d tensor puts one result per entry into a new first dimension.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What to take where the quantile lies between two elements.

    Raises
    ------
    RuntimeError
        If the input is empty, not float32 or float64, or `q` is outside [0, 1].
    """
    _check_quantile(input, q, interpolation)
    several = isinstance(q, TensorBase) and q._array.ndim == 1
    levels = np.atleast_1d(q._array if isinstance(q, TensorBase) else np.float64(q))
    x = input.reshape(-1) if dim is None else input
    where = axis(dim or 0, x._array.ndim)
    if x._array.ndim == 0:
        x = x.reshape(1)
    ordered = sort(x.movedim(where, -1)).values
    array = ordered._array
    # NaN is sorted to the end; a slice that has one takes it.
    spoilt = np.isnan(array[..., -1:])
    rank = np.where(spoilt, 1.0, levels) * (array.shape[-1] - 1)
    low, high = np.floor(rank), np.ceil(rank)
    if interpolation == "nearest":
        low = high = np.rint(rank)
    last = array.ndim - 1
    lower, upper = (take_elements(ordered, last, r.astype(np.int64)) for r in (low, high))
    if interpolation in ("lower", "nearest"):
        out = lower
    elif interpolation == "higher":
        out = upper
    else:
        share = 0.5 * (low != high) if interpolation == "midpoint" else rank - low
        out = lower + (upper - lower) * wrap(share.astype(array.dtype))
    out = out.movedim(-1, 0)
    if keepdim:
        shape = [1] * input._array.ndim
        if dim is not None:
            shape = list(input._array.shape)
            shape[where] = 1
        out = out.reshape(-1, *shape)
    return out if several else out[0]


def _check_quantile(input: Any, q: Any, interpolation: str) -> None:
    x = input._array
    if x.size == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if x.dtype not in (np.float32, np.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    levels = q._array if isinstance(q, TensorBase) else np.float64(q)
    if isinstance(q, TensorBase):
        if levels.ndim > 1:
            raise RuntimeError("quantile() q must be a scalar or 1D tensor")
        if levels.dtype != x.dtype:
            raise RuntimeError(
                "quantile() q tensor must be same dtype as the input tensor, but got "
                f"{type_word(levels.dtype)}"
            )
    if not np.all((levels >= 0) & (levels <= 1)):
        raise RuntimeError("quantile() q must be in the range [0, 1]")
