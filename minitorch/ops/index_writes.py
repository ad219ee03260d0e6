"""Writing at chosen places: index_put, index_copy, masked_scatter, the diagonal.

Each in place (``index_put_``) and as a copy (``index_put``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import wrap
from minitorch.autograd.overlap import refuse_overlap, refuse_repeats
from minitorch.dtypes import type_word
from minitorch.ops import indexing
from minitorch.ops.axes import axis
from minitorch.ops.gathering import masked_fill
from minitorch.ops.inplace import copy_, store


def index_put_(self: Any, indices: tuple, values: Any, accumulate: bool = False) -> Any:
    """Write `values` at the elements that the index tensors choose (or add them there)."""
    refuse_overlap(self._array, values._array, same_allowed=False)
    return store(self, indexing.index_put(self, tuple(indices), values, accumulate))


def index_put(input: Any, indices: tuple, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with `values` at the elements that the index tensors choose (or added)."""
    return indexing.index_put(input, tuple(indices), values, accumulate)


def index_copy_(self: Any, dim: int, index: Any, source: Any) -> Any:
    """Write the slices of `source` at `index` along `dim`."""
    x = self._array
    where = axis(dim, x.ndim)
    at = _check_index_copy(x, where, index._array, source._array)
    refuse_repeats(x)
    refuse_overlap(x, source._array, same_allowed=False)
    if x.ndim == 0:
        return copy_(self, source.reshape(()))
    indexing.setitem(self, (*(slice(None),) * where, wrap(at)), source)
    return self


def _check_index_copy(x: ndarray, where: int, at: ndarray, source: ndarray) -> ndarray:
    if at.dtype != np.int64:
        raise IndexError("index_copy_(): Expected a long tensor for index")
    if at.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {at.ndim})")
    if source.dtype != x.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{type_word(x.dtype)} and (source) {type_word(source.dtype)}"
        )
    expected = list(x.shape)
    if x.ndim:
        given = source.shape[where] if source.ndim > where else 1
        if given != at.size:
            raise IndexError(
                f"index_copy_(): Number of indices ({at.size}) should be equal to source.size(dim) "
                f"({given})"
            )
        expected[where] = at.size
    if source.ndim and list(source.shape) != expected:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {[n for i, n in enumerate(x.shape) if i != where]} at dimension {where} "
            f"and source slice shape: {[n for i, n in enumerate(source.shape) if i != where]} at "
            "dimension 0."
        )
    limit = x.shape[where] if x.ndim else 1
    if at.size and (at.min() < 0 or at.max() >= limit):
        raise IndexError(
            f"index_copy_(): index out of range: not in [0, {limit}) along dimension {where}"
        )
    return at.reshape(-1)


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """Return a copy with the slices of `source` at `index` along `dim`."""
    return index_copy_(input.clone(), dim, index, source)


def masked_scatter_(self: Any, mask: Any, source: Any) -> Any:
    """Write consecutive elements of `source` where `mask` holds."""
    if mask._array.dtype != np.bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{type_word(mask._array.dtype)}"
        )
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            "masked_scatter_: expected self and source to have same dtypes but got "
            f"{type_word(self._array.dtype)} and {type_word(source._array.dtype)}"
        )
    refuse_repeats(self._array)
    where = np.broadcast_to(mask._array, self._array.shape)
    count = int(np.count_nonzero(where))
    if count > source._array.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    # A copy, since the source may be the tensor itself.
    indexing.setitem(self, wrap(where), source.reshape(-1)[:count].clone())
    return self


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Return a copy with consecutive elements of `source` where `mask` holds."""
    return masked_scatter_(input.clone(), mask, source)


def fill_diagonal_(self: Any, fill_value: Any, wrap_around: bool = False) -> Any:
    """Write `fill_value` on the main diagonal."""
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    mask = np.zeros(shape, bool)
    if mask.size:
        np.fill_diagonal(mask, True, wrap_around)
    return store(self, masked_fill(self, wrap(mask), fill_value))
