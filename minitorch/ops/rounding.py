"""Absolute value, sign and rounding: steps, whose gradient is zero or a sign."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, record, wrap
from minitorch.dtypes import finfo, from_numpy_dtype
from minitorch.ops import generic


def _refuse_bool(x: np.ndarray, kernel: str) -> None:
    if x.dtype.kind == "b":
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def abs(input: Any) -> Any:
    """Return the absolute value; the gradient at 0 is 0."""
    _refuse_bool(input._array, "abs_cpu")
    return record(np.absolute(input._array), abs_backward, (input,), (input,))


def abs_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    return (grad * generic.sign(x),)


def step_backward(node: Node, grad: Any) -> tuple:
    """Steps are flat: the gradient is zero."""
    return (generic.zeros_like(grad),)


def sign(input: Any) -> Any:
    """Return -1, 0 or 1."""
    x = input._array
    # NumPy has no sign for bool, whose sign is itself; and it lets NaN through, which has sign 0.
    out = x.copy() if x.dtype.kind == "b" else sign_array(x)
    return record(out, step_backward, (input,), (), None, "SignBackward0")


def sign_array(x: np.ndarray) -> np.ndarray:
    """Return -1, 0 or 1 per element; 0 for NaN."""
    out = np.sign(x)
    return np.where(np.isnan(x), x.dtype.type(0), out) if x.dtype.kind in "fV" else out


def positive(input: Any) -> Any:
    """Return `input` itself."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def signbit(input: Any) -> Any:
    """Return where elements are negative, -0.0 included."""
    x = input._array
    return wrap(np.zeros(x.shape, bool) if x.dtype.kind == "b" else np.signbit(x))


def floor(input: Any) -> Any:
    """Round towards minus infinity."""
    return _rounding(input, np.floor, "FloorBackward0")


def ceil(input: Any) -> Any:
    """Round towards infinity."""
    return _rounding(input, np.ceil, "CeilBackward0")


def trunc(input: Any) -> Any:
    """Round towards zero."""
    return _rounding(input, np.trunc, "TruncBackward0")


def round(input: Any, *, decimals: int = 0) -> Any:
    """Round to the nearest, halves to the even neighbour."""
    if decimals == 0:
        return _rounding(input, np.rint, "RoundBackward0")
    return _rounding(input, lambda x: np.round(x, decimals), "RoundBackward1")


def _rounding(input: Any, function: Any, name: str) -> Any:
    x = input._array
    if x.dtype.kind in "iu":
        return wrap(x.copy())
    _refuse_bool(x, f"{name.removesuffix('Backward0').lower()}_vml_cpu")
    return record(function(x), step_backward, (input,), (), None, name)


def frac(input: Any) -> Any:
    """Return the fractional part, with the sign of the input."""
    return input - trunc(input)


def nan_to_num(input: Any, nan: float | None = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN and infinities by finite numbers."""
    x = input._array
    if x.dtype.kind in "fV":
        limits = finfo(from_numpy_dtype(x.dtype))
        high = limits.max if posinf is None else posinf
        low = limits.min if neginf is None else neginf
        # Not np.nan_to_num, which leaves bfloat16 as it is.
        out = np.where(np.isnan(x), x.dtype.type(0.0 if nan is None else nan), x)
        out = np.where(x == np.inf, x.dtype.type(high), out)
        out = np.where(x == -np.inf, x.dtype.type(low), out)
    else:
        out = x.copy()
    return record(out, masked_backward, (input,), (), np.isfinite(x), "NanToNumBackward0")


def masked_backward(node: Node, grad: Any) -> tuple:
    return (generic.keep(grad, node.ctx),)


absolute, sgn = abs, sign
fix = trunc
