"""16-bit floats: computed in float32, rounded once.

float16 and bfloat16 keep 11 and 8 bits. An op of several steps that rounds after each one loses
more than the type has to give, and a sum of squares overflows float16 at 256. So such an op runs on
float32 copies and its result is rounded at the end; so does its gradient, which takes the same way
back. PyTorch does the same inside its kernels.

A single NumPy function needs none of this: it rounds once anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from minitorch.autograd.graph import TensorBase, record
from minitorch.dtypes import result_type
from minitorch.ops import generic
from minitorch.ops.casting import cast, to_copy_backward

_FLOAT32 = np.dtype(np.float32)
Op = TypeVar("Op", bound=Callable)


def is_short(dtype: np.dtype) -> bool:
    """Whether a NumPy type is one of the 16-bit floats."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def in_float32(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return ``op(*args, **kwargs)``, computed on float32 copies of 16-bit floating tensors.

    The result is rounded to the type that promotion gives; if that is wider, not at all.
    """
    floats = [
        each
        for each in (*args, *kwargs.values())
        if isinstance(each, TensorBase) and each._array.dtype.kind in "fV"
    ]
    if not any(is_short(each._array.dtype) for each in floats):
        return op(*args, **kwargs)
    dtype = result_type(*floats).numpy
    out = op(
        *[_widened(each) for each in args],
        **{name: _widened(each) for name, each in kwargs.items()},
    )
    if not is_short(dtype):
        return out
    if isinstance(out, tuple):
        return tuple([_rounded(each, dtype) for each in out])
    return _rounded(out, dtype)


def computed_in_float32(op: Op) -> Op:
    """Let an op, whose first argument is a tensor, run through :func:`in_float32`."""

    @functools.wraps(op)
    def wide_op(input: Any, *args: Any, **kwargs: Any) -> Any:
        # `getattr`: the first operand of some ops may be a number.
        array = getattr(input, "_array", None)
        if array is None or array.dtype.itemsize != 2:
            return op(input, *args, **kwargs)
        return in_float32(op, input, *args, **kwargs)

    return wide_op  # type: ignore[return-value]


def _widened(x: Any) -> Any:
    short = isinstance(x, TensorBase) and is_short(x._array.dtype)
    return cast(x, _FLOAT32) if short else x


def _rounded(out: Any, dtype: np.dtype) -> Any:
    """Round a result; its node keeps the op's name."""
    if not isinstance(out, TensorBase) or out._array.dtype != _FLOAT32:
        return out
    name = None if out._node is None else out._node.name()
    return record(out._array.astype(dtype), to_copy_backward, (out,), (), _FLOAT32, name)


# -- for backward rules --------------------------------------------------------------------------


def wide(x: Any) -> Any:
    """Return a 16-bit array or Tensor as float32, anything else unchanged."""
    if x is None:
        return None
    return generic.cast(x, _FLOAT32) if is_short(generic.raw(x).dtype) else x
