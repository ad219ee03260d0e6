"""Counting and finding values: unique, bincount, searchsorted. Nothing here is differentiable."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.dtypes import type_word
from minitorch.ops import generic
from minitorch.ops.axes import axis


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements in order, with inverse indices and counts if asked for."""
    x = input._array
    where = None if dim is None else _unique_axis(x, dim)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=where)
    results = [wrap(values)]
    if return_inverse:
        results.append(wrap(inverse.reshape(x.shape if where is None else -1)))
    if return_counts:
        results.append(wrap(counts))
    return results[0] if len(results) == 1 else tuple(results)


def _unique_axis(x: np.ndarray, dim: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    where = axis(dim, x.ndim)
    if x.size == 0 and x.shape[where] != 0:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return where


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements (or slices along `dim`) without immediate repeats, in their order."""
    x = input._array
    where = 0 if dim is None else _unique_axis(x, dim)
    rows = np.moveaxis(x.reshape(-1) if dim is None else x, where, 0)
    fresh = np.ones(rows.shape[0], bool)
    if rows.shape[0]:
        fresh[1:] = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    results = [wrap(np.moveaxis(rows[fresh], 0, where))]
    if return_inverse:
        inverse = np.cumsum(fresh) - 1
        results.append(wrap(inverse.reshape(x.shape) if dim is None else inverse))
    if return_counts:
        results.append(wrap(np.diff(np.flatnonzero(np.append(fresh, True)))))
    return results[0] if len(results) == 1 else tuple(results)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Return how often each non-negative integer occurs, or the sum of its weights."""
    x = input._array
    if x.ndim != 1 or x.dtype.kind not in "iu" or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    return wrap(np.bincount(x, None if weights is None else weights._array, minlength))


def searchsorted(sorted_sequence: Any, values: Any, *, right: bool = False) -> Any:
    """Return where `values` would be inserted into a sorted 1-d tensor."""
    array = values._array if hasattr(values, "_array") else np.asarray(values)
    places = np.searchsorted(sorted_sequence._array, array, "right" if right else "left")
    return wrap(np.asarray(places).astype(np.int64))


def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Any:
    """Return which bucket, between sorted `boundaries`, each element falls into."""
    return searchsorted(boundaries, input, right=right)


def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Return how many elements fall into each of `bins` equal parts of [min, max].

    With ``min == max`` the range is that of the data. Elements outside it are not counted.
    """
    x = input._array
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{type_word(x.dtype)}'")
    if bins <= 0:
        raise RuntimeError(f"torch.histc(): bins must be > 0, but got {bins}")
    if max < min:
        raise RuntimeError("torch.histc(): max must be larger than min")
    low, high = float(min), float(max)
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not np.isfinite([low, high]).all():
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    inside = x[(x >= low) & (x <= high)].astype(np.float64)
    return wrap(np.histogram(inside, bins, (low, high))[0].astype(x.dtype))


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """Return where `elements` occur among `test_elements`; either may be a number."""
    found = np.isin(generic.raw(elements), generic.raw(test_elements), invert=invert)
    return wrap(np.asarray(found))
