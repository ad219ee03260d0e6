"""Counting and finding values: unique, bincount, searchsorted. Nothing here is differentiable."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import wrap
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
    where = None if dim is None else axis(dim, x.ndim)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=where)
    results = [wrap(values)]
    if return_inverse:
        results.append(wrap(inverse.reshape(x.shape if where is None else -1)))
    if return_counts:
        results.append(wrap(counts))
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
