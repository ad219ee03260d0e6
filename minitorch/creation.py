"""Making tensors: ``tensor``, ``from_numpy``, ``zeros``, ``arange`` and their relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd import TensorBase, wrap
from minitorch.device import as_device
from minitorch.dtypes import (
    as_dtype,
    check_fits,
    from_numpy_dtype,
    get_default_dtype,
    scalar_dtype,
)
from minitorch.dtypes import (
    dtype as dtype_type,
)
from minitorch.ops.axes import sizes
from minitorch.tensor import Tensor


def _finish(
    array: ndarray, requires_grad: bool, device: Any = None, pin_memory: bool = False
) -> Tensor:
    as_device(device)
    made = wrap(array)
    if requires_grad:
        made.requires_grad_()
    return made


# -- from data -----------------------------------------------------------------------------------


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a new tensor holding a copy of `data`.

    Parameters
    ----------
    data
        Number, nested sequence, NumPy array or Tensor. Python floats become the default floating
        type, ints int64; NumPy arrays keep their type.
    dtype : minitorch.dtype, optional
    device
        Only the CPU.
    requires_grad : bool

    Raises
    ------
    ValueError
        If nested sequences are ragged.
    TypeError
        If the data are not numbers.
    """
    wanted = None if dtype is None else as_dtype(dtype).numpy
    return _finish(_read_data(data, wanted).copy(), requires_grad, device)


def _read_data(data: Any, wanted: np.dtype | None) -> ndarray:
    if isinstance(data, TensorBase):
        array = data._array
    elif isinstance(data, (ndarray, np.generic)):
        array = np.asarray(data)
        from_numpy_dtype(array.dtype)
    else:
        array = _read_nested(data, wanted)
    if wanted is not None and array.dtype != wanted:
        from minitorch.ops.casting import convert

        array = convert(array, wanted)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _read_nested(data: Any, wanted: np.dtype | None) -> ndarray:
    try:
        array = np.array(_plain(data))
    except ValueError as error:
        raise ValueError(
            "expected sequence of equal length at each level: the nested sequences are ragged "
            f"({error})"
        ) from None
    if array.dtype.kind == "O":
        if all(isinstance(each, int) for each in array.reshape(-1)):
            raise ValueError("Overflow when unpacking long long")
        raise RuntimeError("Could not infer dtype of " + _odd_type(data))
    if array.dtype.kind in "US":
        raise TypeError(f"new(): invalid data type '{_odd_type(data)}'")
    if array.size == 0 or (array.dtype.kind == "f" and not _holds_numpy(data)):
        # Straight to the type that is asked for: a detour over float32 would round.
        return array.astype(get_default_dtype().numpy if wanted is None else wanted)
    if array.dtype.kind == "u" and not _holds_numpy(data):
        raise ValueError("Overflow when unpacking long long")
    from_numpy_dtype(array.dtype)
    if wanted is not None and wanted.kind in "iu" and array.dtype.kind == "i" and array.size:
        for extreme in (int(array.min()), int(array.max())):
            check_fits(extreme, from_numpy_dtype(wanted))
    return array


def _plain(data: Any) -> Any:
    if isinstance(data, TensorBase):
        return data._array
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data


def _holds_numpy(data: Any) -> bool:
    """Whether the innermost first element has a NumPy type of its own, which is then kept."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.generic, ndarray, TensorBase))


def _odd_type(data: Any) -> str:
    while isinstance(data, (list, tuple)) and data:
        odd = [each for each in data if not isinstance(each, (bool, int, float))]
        data = odd[0] if odd else data[0]
    return type(data).__name__


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Return `data` as a tensor, sharing memory with a tensor or array where possible."""
    as_device(device)
    if isinstance(data, TensorBase):
        return data if dtype is None else data.to(as_dtype(dtype))
    wanted = None if dtype is None else as_dtype(dtype).numpy
    return wrap(_read_data(data, wanted))


asarray = as_tensor


def from_numpy(array: ndarray) -> Tensor:
    """Return a tensor that shares `array`'s memory; a write to either is seen by both.

    Raises
    ------
    TypeError
        If it is no array, or of a type tensors do not have.
    """
    if not isinstance(array, ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    from_numpy_dtype(array.dtype)
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    return wrap(np.asarray(array))


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Return a tensor that shares memory with an object of another library."""
    return wrap(np.from_dlpack(ext_tensor))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """Return a 1-d tensor over the memory of a buffer object."""
    return wrap(np.frombuffer(buffer, as_dtype(dtype).numpy, count, offset))


# -- filled --------------------------------------------------------------------------------------


def _type(dtype: Any) -> np.dtype:
    return (get_default_dtype() if dtype is None else as_dtype(dtype)).numpy


def _size(size: tuple, what: str) -> tuple[int, ...]:
    shape = sizes(size)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"{what}: Dimension size must be non-negative.")
    return shape


def zeros(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_ignored: Any
) -> Tensor:
    """Return a tensor of zeros."""
    size = size or (_ignored.get("size", ()),)
    return _finish(np.zeros(_size(size, "zeros"), _type(dtype)), requires_grad, device)


def ones(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_ignored: Any
) -> Tensor:
    """Return a tensor of ones."""
    size = size or (_ignored.get("size", ()),)
    return _finish(np.ones(_size(size, "ones"), _type(dtype)), requires_grad, device)


def empty(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_ignored: Any
) -> Tensor:
    """Return a tensor of uninitialised memory."""
    size = size or (_ignored.get("size", ()),)
    return _finish(np.empty(_size(size, "empty"), _type(dtype)), requires_grad, device)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor filled with one number, whose type it takes by default."""
    if isinstance(fill_value, TensorBase):
        fill_value = fill_value.item()
    wanted = scalar_dtype(fill_value) if dtype is None else as_dtype(dtype)
    shape = (size,) if isinstance(size, int) else tuple(size)
    check_fits(fill_value, wanted)
    return _finish(np.full(shape, fill_value, wanted.numpy), requires_grad, device)


def _like(input: Any, dtype: Any) -> np.dtype:
    return input._array.dtype if dtype is None else as_dtype(dtype).numpy


def zeros_like(
    input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """Return zeros of the shape and type of `input`."""
    return _finish(np.zeros_like(input._array, _like(input, dtype)), requires_grad, device)


def ones_like(
    input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """Return ones of the shape and type of `input`."""
    return _finish(np.ones_like(input._array, _like(input, dtype)), requires_grad, device)


def empty_like(
    input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
) -> Tensor:
    """Return uninitialised memory of the shape and type of `input`."""
    return _finish(np.empty_like(input._array, _like(input, dtype)), requires_grad, device)


def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **_: Any,
) -> Tensor:
    """Return a number in the shape and type of `input`."""
    if isinstance(fill_value, TensorBase):
        fill_value = fill_value.item()
    kind = _like(input, dtype)
    check_fits(fill_value, from_numpy_dtype(kind))
    array = np.full_like(input._array, fill_value, kind)
    return _finish(array, requires_grad, device)


# -- ranges and matrices -------------------------------------------------------------------------


def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return numbers from `start` (0 if only one is given) up to, not including, `end`."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        whole = all(isinstance(each, (int, np.integer)) for each in (start, end, step))
        wanted = np.dtype(np.int64) if whole else get_default_dtype().numpy
    else:
        wanted = as_dtype(dtype).numpy
    count = math.ceil((end - start) / step)
    # Multiplying, where repeated adding would gather rounding errors.
    array = (start + step * np.arange(count)).astype(wanted)
    return _finish(array, requires_grad, device)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return _finish(np.linspace(start, end, steps).astype(_type(dtype)), requires_grad, device)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `base` to the power of `steps` evenly spaced exponents."""
    array = np.power(float(base), np.linspace(start, end, steps)).astype(_type(dtype))
    return _finish(array, requires_grad, device)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a matrix with ones on the diagonal."""
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return _finish(np.eye(n, m, dtype=_type(dtype)), requires_grad, device)


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Return the (2, count) indices of a matrix's lower triangle."""
    return wrap(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Return the (2, count) indices of a matrix's upper triangle."""
    return wrap(np.stack(np.triu_indices(row, offset, col)))


def scalar_tensor(value: Any, *, dtype: dtype_type | None = None) -> Tensor:
    """Return a 0-d tensor of the default type, or `dtype`."""
    return wrap(np.array(value, _type(dtype)))
