"""``Tensor``: a NumPy array that remembers how it was made.

The graph's fields come from ``autograd`` (:class:`TensorBase`), the ops from ``ops``
(:class:`Methods`). ``_gradients.py``, ``_conversions.py`` and ``_interop.py`` add what makes it
PyTorch's Tensor; here it is put together, with what it says about itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch import autograd, dtypes
from minitorch._conversions import Conversions
from minitorch._gradients import Gradients
from minitorch._interop import NumpyManners
from minitorch.autograd import TensorBase
from minitorch.device import cpu, device
from minitorch.dtypes import dtype, from_numpy_dtype
from minitorch.ops import pointwise, shape
from minitorch.ops.axes import axis
from minitorch.ops.methods import Methods


class Size(tuple):
    """A tensor's shape: a tuple of ints that prints as PyTorch's."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: tuple) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __reduce__(self) -> tuple:
        return Size, (tuple(self),)


class Tensor(Gradients, Conversions, Methods, NumpyManners, TensorBase):
    """A multi-dimensional array with automatic differentiation.

    Make one with :func:`minitorch.tensor`, a factory such as :func:`minitorch.zeros`, or
    :func:`minitorch.from_numpy`.

    Examples
    --------
    >>> import minitorch
    >>> x = minitorch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__dict__",)
    __hash__ = object.__hash__

    def __new__(cls, *args: Any, requires_grad: bool = False) -> Any:
        if len(args) == 1 and isinstance(args[0], TensorBase):
            return cls._make(args[0]._array, requires_grad)
        return cls._make(cls._legacy_array(args, dtypes.get_default_dtype().numpy), requires_grad)

    @staticmethod
    def _legacy_array(args: tuple, numpy_type: np.dtype) -> ndarray:
        """Return what the old constructors hold: memory of the given sizes, or a copy of data."""
        if not args:
            return np.empty(0, numpy_type)
        if isinstance(args[0], Size) or all(isinstance(each, (int, np.integer)) for each in args):
            shape = args[0] if isinstance(args[0], Size) else args
            if min(shape, default=0) < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
                )
            return np.empty(shape, numpy_type)
        if len(args) > 1:
            raise TypeError(
                "new() received an invalid combination of arguments: give sizes, or one sequence"
            )
        data = args[0]
        if isinstance(data, TensorBase):
            if data._array.dtype != numpy_type:
                raise TypeError(
                    f"expected {dtypes.type_word(numpy_type)} (got "
                    f"{dtypes.type_word(data._array.dtype)})"
                )
            return data._array
        if not isinstance(data, (list, tuple, range, ndarray)):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        return np.array(data.tolist() if hasattr(data, "tolist") else data, dtype=numpy_type)

    @classmethod
    def _make(cls, array: ndarray, requires_grad: bool = False) -> Any:
        """Return a leaf of this class that shares `array`'s memory."""
        self = object.__new__(cls)
        self._array = array
        self._node = self._grad = self._alias = self._writes = self._extra = None
        self._output_nr = 0
        self._requires_grad = bool(requires_grad)
        return self

    # -- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The lengths of the axes."""
        return Size(self._array.shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of one axis."""
        if dim is None:
            return Size(self._array.shape)
        if not self._array.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return self._array.shape[axis(dim, self._array.ndim)]

    def dim(self) -> int:
        """Return the number of axes."""
        return self._array.ndim

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """Return the number of elements."""
        return self._array.size

    nelement = numel

    @property
    def dtype(self) -> dtype:
        """The element type, such as ``minitorch.float32``."""
        return from_numpy_dtype(self._array.dtype)

    @property
    def device(self) -> device:
        """Always the CPU."""
        return cpu

    layout = "torch.strided"
    is_cuda = is_sparse = is_quantized = is_meta = False
    is_cpu = True

    def is_floating_point(self) -> bool:
        """Return whether the element type is floating."""
        return self._array.dtype.kind in "fV"

    def is_complex(self) -> bool:
        """Return False: there are no complex tensors."""
        return False

    def is_nonzero(self) -> bool:
        """Return whether the single element is not zero."""
        if self._array.size != 1:
            raise RuntimeError(
                "Boolean value of Tensor with "
                + ("no values" if not self._array.size else "more than one value")
                + " is ambiguous"
            )
        return bool(self)

    def is_same_size(self, other: Any) -> bool:
        """Return whether `other` has the same shape."""
        return self._array.shape == other._array.shape

    def get_device(self) -> int:
        """Return -1: the CPU has no number."""
        return -1

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Raise: there is no GPU here."""
        return self.to("cuda")

    def pin_memory(self, device: Any = None) -> Any:
        """Return the tensor itself: pinning serves copies to a GPU, of which there is none."""
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: there is no GPU to pin memory for."""
        return False

    def share_memory_(self) -> Any:
        """Return the tensor itself: workers are threads and see its memory anyway."""
        return self

    def is_shared(self) -> bool:
        """Return False: the memory belongs to this process."""
        return False

    def is_signed(self) -> bool:
        """Return whether the element type has negative numbers."""
        return self.dtype.is_signed

    def element_size(self) -> int:
        """Return the bytes per element."""
        return self._array.itemsize

    itemsize = property(element_size)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.size * self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the steps between neighbours along each axis, in elements."""
        steps = tuple([step // self._array.itemsize for step in self._array.strides])
        return steps if dim is None else steps[axis(dim, self._array.ndim)]

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        """Return whether the elements lie in memory in row-major order."""
        return self._array.flags.c_contiguous

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._array.ctypes.data

    def storage_offset(self) -> int:
        """Return how many elements lie before the first one in the base's memory."""
        base = self._base
        if base is None:
            return 0
        return (self.data_ptr() - base.data_ptr()) // self._array.itemsize

    T = property(lambda self: shape.permute(self, *range(self._array.ndim)[::-1]))
    H = property(lambda self: shape.transpose(self, 0, 1) if self._array.ndim else self)
    mT = property(lambda self: shape.transpose(self, -2, -1))
    real = property(lambda self: self)

    gelu = pointwise.gelu
    softplus = pointwise.softplus


autograd.set_tensor_type(Tensor)
