"""The part of Tensor that turns it into something else: other types, Python numbers, text."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch._repr import tensor_repr
from minitorch.autograd import TensorBase, wrap
from minitorch.device import as_device
from minitorch.dtypes import as_dtype, type_word
from minitorch.ops.axes import sizes
from minitorch.ops.casting import cast


class Conversions:
    """Mixed into Tensor. Its methods ``float``, ``int`` and ``bool`` shadow the builtins here."""

    __slots__ = ()

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Convert: ``to(dtype)``, ``to(device)``, ``to(other)``; itself if nothing changes."""
        target, copy = kwargs.pop("dtype", None), kwargs.pop("copy", False)
        kwargs.pop("non_blocking", None), kwargs.pop("memory_format", None)
        if "device" in kwargs:
            as_device(kwargs.pop("device"))
        if kwargs:
            raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
        for argument in args:
            if isinstance(argument, dtypes.dtype):
                target = argument
            elif isinstance(argument, TensorBase):
                target = argument.dtype
            elif isinstance(argument, builtins.bool) or argument is None:
                copy = copy or (argument is args[-1] and len(args) > 2 and builtins.bool(argument))
            else:
                as_device(argument)
        if target is None or target.numpy == self._array.dtype:
            return self.clone() if copy else self
        return cast(self, target.numpy)

    def type(self: Any, dtype: Any = None) -> Any:
        """Return the type's name, or convert."""
        if dtype is None:
            return f"torch.{type_word(self._array.dtype)}Tensor"
        if isinstance(dtype, str):
            for each in dtypes.ALL:
                if dtype == f"torch.{type_word(each)}Tensor":
                    return self.to(each)
            raise ValueError(f"invalid type: '{dtype}'")
        return self.to(as_dtype(dtype))

    def type_as(self: Any, other: Any) -> Any:
        """Convert to the type of `other`."""
        return self.to(other.dtype)

    def cpu(self: Any) -> Any:
        """Return the tensor itself: it is on the CPU."""
        return self

    float = lambda self: self.to(dtypes.float32)
    double = lambda self: self.to(dtypes.float64)
    half = lambda self: self.to(dtypes.float16)
    bfloat16 = lambda self: self.to(dtypes.bfloat16)
    long = lambda self: self.to(dtypes.int64)
    int = lambda self: self.to(dtypes.int32)
    short = lambda self: self.to(dtypes.int16)
    byte = lambda self: self.to(dtypes.uint8)
    char = lambda self: self.to(dtypes.int8)
    bool = lambda self: self.to(dtypes.bool_)

    def item(self: Any) -> Any:
        """Return the value of a one-element tensor as a Python number."""
        if self._array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar"
            )
        value = self._array.item()
        return value if self._array.dtype.kind != "V" else builtins.float(value)

    def tolist(self: Any) -> Any:
        """Return the values as nested lists of Python numbers."""
        array = self._array
        return (array.astype(np.float32) if array.dtype.kind == "V" else array).tolist()

    def __bool__(self: Any) -> Any:
        if self._array.size != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous"
                if self._array.size == 0
                else "Boolean value of Tensor with more than one value is ambiguous"
            )
        return builtins.bool(self._array.reshape(()))

    def __float__(self: Any) -> Any:
        return builtins.float(self._one())

    def __int__(self: Any) -> Any:
        return builtins.int(self._one())

    def _one(self: Any) -> Any:
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __index__(self: Any) -> Any:
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return builtins.int(self._array.item())

    def __len__(self: Any) -> Any:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._array.shape[0]

    def __iter__(self: Any) -> Iterator:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self: Any, element: Any) -> Any:
        other = element._array if isinstance(element, TensorBase) else element
        return builtins.bool((self._array == other).any())

    def __format__(self: Any, spec: str) -> str:
        return object.__format__(self, spec) if self._array.ndim else format(self.item(), spec)

    def __repr__(self: Any) -> str:
        return tensor_repr(self)

    # -- making others of the same kind ----------------------------------------------------------

    def new_tensor(self: Any, data: Any, dtype: Any = None, requires_grad: Any = False) -> Any:
        """Return a new leaf holding `data`, by default of this tensor's type."""
        array = np.array(data._array if isinstance(data, TensorBase) else data)
        wanted = (dtype or self.dtype).numpy
        made = wrap(array.astype(wanted))
        return made.requires_grad_() if requires_grad else made

    def new_full(self: Any, size: Any, fill_value: Any, dtype: Any = None) -> Any:
        """Return a tensor of `size` filled with a number."""
        return wrap(np.full(tuple(size), fill_value, (dtype or self.dtype).numpy))

    def new_zeros(self: Any, *size: Any, dtype: Any = None) -> Any:
        """Return zeros of `size`, by default of this tensor's type."""
        return wrap(np.zeros(sizes(size), (dtype or self.dtype).numpy))

    def new_ones(self: Any, *size: Any, dtype: Any = None) -> Any:
        """Return ones of `size`, by default of this tensor's type."""
        return wrap(np.ones(sizes(size), (dtype or self.dtype).numpy))

    def new_empty(self: Any, *size: Any, dtype: Any = None) -> Any:
        """Return uninitialised memory of `size`, by default of this tensor's type."""
        return wrap(np.empty(sizes(size), (dtype or self.dtype).numpy))
