"""Checks of arguments that several neural-network ops share, with PyTorch's wording."""

from __future__ import annotations

import warnings

import numpy as np

from minitorch.dtypes import type_word
from minitorch.ops._typing import Tensor

# Infinities and nans are results like others; NumPy shall not warn where PyTorch is silent.
quiet = np.errstate(all="ignore")


def scalar_name(x: Tensor) -> str:
    """PyTorch's word for the element type of `x`: ``Float``, ``Long``, ..."""
    return type_word(x._array.dtype)


def same_dtype(x: Tensor, *others: Tensor | None) -> None:
    """Raise unless all `others` have the dtype of `x`."""
    for other in others:
        if other is not None and other._array.dtype != x._array.dtype:
            raise RuntimeError(
                f"expected scalar type {scalar_name(x)} but found {scalar_name(other)}"
            )


def wrap_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front; a 0-d tensor counts as having one dimension."""
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
            f"but got {dim})"
        )
    return dim % bound


def implicit_dim(name: str, ndim: int, dim: int | None) -> int:
    """Return `dim`, or the one that old code means by leaving it out (with a warning)."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def is_float(array: np.ndarray) -> bool:
    """Whether an array's elements are real floating point, bfloat16 included."""
    return array.dtype.kind in "fV"


def check_float(x: Tensor, name: str) -> np.ndarray:
    """Return the array of `x`; refuse other types than floating point, `name` being the op's."""
    if not is_float(x._array):
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(x)}'")
    return x._array


def widen(array: np.ndarray) -> np.ndarray:
    """Return 16-bit floats as float32, where sums and products are formed; others unchanged."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and is_float(array) else array
