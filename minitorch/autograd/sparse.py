"""``SparseGradient``: a gradient of which only some entries are there, as rules hand it on.

The gradient of a table look-up is zero but for the rows that were read. With ``sparse=True`` the
rule says which rows, and what their gradients are. Plain NumPy, no autograd: such a gradient goes
to a leaf and no further. :class:`minitorch.sparse.SparseTensor` is what a user sees of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray


class SparseGradient:
    """Coordinates and values; a coordinate that comes twice stands for the sum.

    Parameters
    ----------
    indices : ndarray of int64, (sparse dims, entries)
        Where each entry belongs, along the first axes of ``shape``.
    values : ndarray, (entries, *remaining axes)
    shape : tuple of int
        Of the dense array.
    coalesced : bool
        Whether the coordinates are sorted and none comes twice.
    """

    __slots__ = ("coalesced", "indices", "shape", "values")
    __array_ufunc__ = None  # ``dense + sparse`` is decided here, not by NumPy

    def __init__(
        self, indices: ndarray, values: ndarray, shape: tuple[int, ...], coalesced: bool = False
    ) -> None:
        self.indices, self.values, self.shape = indices, values, tuple(shape)
        self.coalesced = coalesced

    @property
    def dtype(self) -> np.dtype:
        """Of the values."""
        return self.values.dtype

    def copy(self) -> SparseGradient:
        """Return one that shares no memory with this."""
        return SparseGradient(self.indices.copy(), self.values.copy(), self.shape, self.coalesced)

    def astype(self, dtype: Any, copy: bool = True) -> SparseGradient:
        """Return one with values of another dtype."""
        values = self.values.astype(dtype, copy=copy)
        return SparseGradient(self.indices, values, self.shape, self.coalesced)

    def coalesce(self) -> SparseGradient:
        """Return the same gradient with sorted coordinates, each of which comes once."""
        if self.coalesced:
            return self
        axes = self.shape[: self.indices.shape[0]]
        if not self.values.shape[0]:
            return SparseGradient(self.indices, self.values, self.shape, True)
        flat = np.ravel_multi_index(tuple(self.indices), axes)
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        values = self.values[order]
        # Sums of half-precision rows are rounded once, at their end.
        wide = values if values.dtype.itemsize > 2 else values.astype(np.float32)
        sums = np.add.reduceat(wide, starts, axis=0).astype(values.dtype, copy=False)
        indices = np.stack(np.unravel_index(ordered[starts], axes)).astype(np.int64, copy=False)
        return SparseGradient(indices, sums, self.shape, True)

    def to_dense(self) -> ndarray:
        """Return the dense array."""
        dense = np.zeros(self.shape, self.values.dtype)
        self.add_to(dense)
        return dense

    def add_to(self, dense: ndarray, factor: float = 1.0) -> None:
        """Add ``factor`` times this to ``dense``, in place."""
        once = self.coalesce()
        where = tuple(once.indices)
        if factor == 1.0:
            dense[where] += once.values
        else:
            dense[where] += (once.values * factor).astype(dense.dtype, copy=False)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SparseGradient):
            return SparseGradient(
                np.concatenate([self.indices, other.indices], axis=1),
                np.concatenate([self.values, other.values]),
                self.shape,
            )
        if isinstance(other, ndarray):
            dense = other.astype(np.result_type(other, self.values))
            self.add_to(dense)
            return dense
        return NotImplemented

    __radd__ = __add__
