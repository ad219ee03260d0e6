"""Sparse tensors in coordinate (COO) format: as much of PyTorch's as gradients need.

``nn.Embedding(..., sparse=True)`` leaves such a tensor in ``weight.grad``: the rows that were read
and their gradients. It costs memory, and on the wire bytes, by the rows of the batch and not by the
rows of the table. ``optim.SGD`` takes it as it is.

An operation that does not know sparse tensors raises, naming ``to_dense()``.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

import numpy as np

from minitorch.autograd import wrap
from minitorch.autograd.graph import set_sparse_type
from minitorch.autograd.sparse import SparseGradient
from minitorch.dtypes import from_numpy_dtype
from minitorch.tensor import Size, Tensor

__all__ = ["SparseTensor", "sparse_coo_tensor"]


class SparseTensor(Tensor):
    """A tensor of which some entries are stored, and the others are zero.

    Made by :func:`sparse_coo_tensor`, and by backward. It has no history and requires no grad.
    """

    __slots__ = ("_coo",)

    is_sparse = True
    layout = "torch.sparse_coo"

    def __new__(cls, coo: SparseGradient) -> Any:
        self = object.__new__(cls)
        self._coo = coo
        self._node = self._grad = self._alias = self._writes = self._extra = None
        self._output_nr = 0
        self._requires_grad = False
        return self

    @property
    def _array(self) -> NoReturn:  # type: ignore[override]
        raise NotImplementedError(
            "This operation is not defined for sparse tensors. Make it dense first: "
            "tensor.to_dense()."
        )

    # -- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The lengths of the axes, as if it were dense."""
        return Size(self._coo.shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of one axis."""
        return self.shape if dim is None else self._coo.shape[dim]

    def dim(self) -> int:
        """Return the number of axes."""
        return len(self._coo.shape)

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """Return the number of elements, as if it were dense."""
        return self.shape.numel()

    @property
    def dtype(self) -> Any:
        """The element type of the values."""
        return from_numpy_dtype(self._coo.values.dtype)

    def is_floating_point(self) -> bool:
        """Return whether the element type is floating."""
        return self._coo.values.dtype.kind in "fV"

    def sparse_dim(self) -> int:
        """Return how many leading axes have coordinates."""
        return self._coo.indices.shape[0]

    def dense_dim(self) -> int:
        """Return how many axes each stored value has."""
        return self._coo.values.ndim - 1

    def is_coalesced(self) -> bool:
        """Whether the coordinates are sorted and none comes twice."""
        return self._coo.coalesced

    def _nnz(self) -> int:
        return self._coo.values.shape[0]

    def _indices(self) -> Tensor:
        return wrap(self._coo.indices)

    def _values(self) -> Tensor:
        return wrap(self._coo.values)

    def indices(self) -> Tensor:
        """Return the coordinates, ``(sparse_dim, entries)`` of int64; shares memory.

        Raises
        ------
        RuntimeError
            If it is not coalesced.
        """
        self._require_coalesced("indices")
        return self._indices()

    def values(self) -> Tensor:
        """Return the stored values, ``(entries, *dense axes)``; shares memory.

        Raises
        ------
        RuntimeError
            If it is not coalesced.
        """
        self._require_coalesced("values")
        return self._values()

    def _require_coalesced(self, what: str) -> None:
        if not self._coo.coalesced:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first"
            )

    # -- others made of it -----------------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """Return the same tensor with sorted coordinates, each of which comes once."""
        return self if self._coo.coalesced else SparseTensor(self._coo.coalesce())

    def to_dense(self, dtype: Any = None, **_unused: Any) -> Tensor:
        """Return the dense tensor."""
        dense = wrap(self._coo.to_dense())
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, *_unused: Any) -> SparseTensor:
        """Return this."""
        return self

    def clone(self, **_unused: Any) -> SparseTensor:
        """Return a copy that shares no memory."""
        return SparseTensor(self._coo.copy())

    def detach(self) -> SparseTensor:
        """Return another tensor with the same memory."""
        return SparseTensor(self._coo)

    def detach_(self) -> SparseTensor:
        """Return this: it has no history."""
        return self

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Accept False only: nothing is recorded for sparse tensors."""
        if requires_grad:
            raise NotImplementedError("sparse tensors cannot require grad; use to_dense()")
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return it with values of another dtype; the device is the CPU."""
        values = self._values().to(*args, **kwargs)._array
        coo = self._coo
        if values is coo.values:
            return self
        return SparseTensor(SparseGradient(coo.indices, values, coo.shape, coo.coalesced))

    # -- arithmetic ------------------------------------------------------------------------------

    def _scaled(self, factor: Any) -> SparseGradient:
        coo = self._coo
        factor = factor.item() if isinstance(factor, Tensor) else factor
        values = (coo.values * factor).astype(coo.values.dtype, copy=False)
        return SparseGradient(coo.indices, values, coo.shape, coo.coalesced)

    def __mul__(self, factor: Any) -> SparseTensor:
        return SparseTensor(self._scaled(factor))

    __rmul__ = mul = __mul__

    def __truediv__(self, divisor: Any) -> SparseTensor:
        return SparseTensor(self._scaled(1.0 / divisor))

    div = __truediv__

    def __neg__(self) -> SparseTensor:
        return SparseTensor(self._scaled(-1))

    def mul_(self, factor: Any) -> SparseTensor:
        """Multiply in place by a number."""
        self._coo = self._scaled(factor)
        return self

    def div_(self, divisor: Any) -> SparseTensor:
        """Divide in place by a number."""
        self._coo = self._scaled(1.0 / divisor)
        return self

    __imul__, __itruediv__ = mul_, div_

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SparseTensor):
            if self._coo.shape != other._coo.shape:
                raise RuntimeError(
                    f"add: expected 'self' and 'other' to have same size, but self has size "
                    f"{list(self._coo.shape)} while other has size {list(other._coo.shape)}"
                )
            return SparseTensor(self._coo + other._coo)
        if isinstance(other, Tensor):
            return wrap(other._array + self._coo)
        return NotImplemented

    __radd__ = add = __add__

    def zero_(self) -> SparseTensor:
        """Drop all entries."""
        coo = self._coo
        self._coo = SparseGradient(coo.indices[:, :0], coo.values[:0], coo.shape, True)
        return self

    # -- being an object -------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"tensor(indices={self._indices()!r},\n       values={self._values()!r},\n       "
            f"size={tuple(self._coo.shape)}, nnz={self._nnz()}, layout=torch.sparse_coo)"
        )

    def __reduce_ex__(self, protocol: Any) -> tuple:
        coo = self._coo
        return _rebuild, (coo.indices, coo.values, coo.shape, coo.coalesced)

    def __copy__(self) -> SparseTensor:
        return self.detach()

    def __deepcopy__(self, memo: dict) -> SparseTensor:
        return SparseTensor(copy.deepcopy(self._coo.copy(), memo))


def _rebuild(
    indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...], coalesced: bool
) -> SparseTensor:
    return SparseTensor(SparseGradient(indices, values, shape, coalesced))


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Make a sparse tensor from coordinates and values.

    Parameters
    ----------
    indices : array_like of int, (sparse dims, entries)
        A coordinate may come several times; its values then add up.
    values : array_like, (entries, *dense axes)
    size : sequence of int, optional
        The lengths of all axes; by default as small as the coordinates allow.
    dtype : dtype, optional
        Of the values.

    Raises
    ------
    RuntimeError
        If numbers of entries or axes do not fit, or a coordinate is outside of ``size``.

    Examples
    --------
    >>> import minitorch
    >>> minitorch.sparse_coo_tensor([[0, 2]], [1.0, 5.0], (4,)).to_dense()
    tensor([1., 0., 5., 0.])
    """
    from minitorch.creation import as_tensor

    if requires_grad:
        raise NotImplementedError("sparse tensors cannot require grad; use to_dense()")
    where = np.array(as_tensor(indices)._array, dtype=np.int64)
    held = as_tensor(values, dtype=dtype)._array.copy()
    if where.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    if held.ndim < 1 or held.shape[0] != where.shape[1]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {where.shape[1]}, "
            f"nnz from values: {held.shape[0] if held.ndim else 'none'}"
        )
    if size is None:
        size = (*(where.max(axis=1, initial=-1) + 1).tolist(), *held.shape[1:])
    shape = tuple(int(n) for n in size)
    sparse_dims = where.shape[0]
    if len(shape) != sparse_dims + held.ndim - 1 or shape[sparse_dims:] != held.shape[1:]:
        raise RuntimeError(
            f"size {list(shape)} does not fit {sparse_dims} coordinates per entry and values of "
            f"size {list(held.shape[1:])}"
        )
    outside = (where < 0) | (where >= np.reshape(shape[:sparse_dims], (-1, 1)))
    if outside.any():
        axis = int(outside.any(axis=1).argmax())
        raise RuntimeError(
            f"size is inconsistent with indices: for dim {axis}, size is {shape[axis]} but found "
            f"index {int(where[axis][outside[axis]][0])}"
        )
    return SparseTensor(SparseGradient(where, held, shape, bool(is_coalesced)))


set_sparse_type(SparseTensor)
