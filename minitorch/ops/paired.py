"""Element-wise functions of two tensors: angles, lengths, logarithms, extremes without NaN.

Arithmetic is in `arithmetic.py` and `division.py`, maximum and minimum are in `selection.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, TensorBase, record, wrap
from minitorch.ops import generic
from minitorch.ops.arithmetic import broadcast_error, operands
from minitorch.ops.casting import floating
from minitorch.ops.division import no_derivative
from minitorch.ops.generic import sum_to
from minitorch.ops.precision import computed_in_float32
from minitorch.ops.selection import where


def _apply(function: Any, x: np.ndarray, y: np.ndarray) -> Any:
    try:
        return function(x, y)
    except ValueError as error:
        raise broadcast_error(x, y, error) from None


def _floats(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = operands(a, b)
    return floating(a), floating(b)


@computed_in_float32
def atan2(input: Any, other: Any) -> Any:
    """Return the angle of the point (other, input), between -pi and pi."""
    a, b = _floats(input, other)
    x, y = a._array, b._array
    return record(_apply(np.arctan2, x, y), atan2_backward, (a, b), (a, b), (x.shape, y.shape))


def atan2_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    x_shape, y_shape = node.ctx
    square = x * x + y * y
    # At the origin every angle is as good: no gradient.
    scaled = generic.where(square == 0, 0.0 * square, grad / square)
    return sum_to(scaled * y, x_shape), sum_to(-scaled * x, y_shape)


@computed_in_float32
def hypot(input: Any, other: Any) -> Any:
    """Return ``sqrt(input**2 + other**2)``, without overflow on the way."""
    a, b = _floats(input, other)
    x, y = a._array, b._array
    out = _apply(np.hypot, x, y)
    return record(out, hypot_backward, (a, b), (a, b, out), (x.shape, y.shape))


def hypot_backward(node: Node, grad: Any) -> tuple:
    x, y, out = node.saved
    x_shape, y_shape = node.ctx
    return sum_to(grad * (x / out), x_shape), sum_to(grad * (y / out), y_shape)


@computed_in_float32
def logaddexp(input: Any, other: Any) -> Any:
    """Return ``log(exp(input) + exp(other))``, without overflow on the way."""
    a, b = _floats(input, other)
    x, y = a._array, b._array
    out = _apply(np.logaddexp, x, y)
    return record(
        out, logaddexp_backward, (a, b), (a, b, out), (x.shape, y.shape), "LogaddexpBackward0"
    )


def logaddexp_backward(node: Node, grad: Any) -> tuple:
    x, y, out = node.saved
    x_shape, y_shape = node.ctx
    return (
        sum_to(grad * generic.exp(x - out), x_shape),
        sum_to(grad * generic.exp(y - out), y_shape),
    )


@computed_in_float32
def xlogy(input: Any, other: Any) -> Any:
    """Return ``input * log(other)``, which is 0 where `input` is 0; NaN where `other` is NaN."""
    a, b = _floats(input, other)
    x, y = a._array, b._array
    out = _apply(_xlogy_array, x, y)
    return record(out, xlogy_backward, (a, b), (a, b), (x.shape, y.shape), "XlogyBackward0")


def _xlogy_array(x: np.ndarray, y: np.ndarray) -> Any:
    flat = (x == 0) & ~np.isnan(y)
    return np.where(flat, x.dtype.type(0), x * np.log(np.where(flat, y.dtype.type(1), y)))


def xlogy_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    x_shape, y_shape = node.ctx
    flat = (x == 0) & (y == y)
    slope = generic.log(generic.where(flat, 1.0, y))
    return sum_to(grad * slope, x_shape), sum_to(grad * (x / y), y_shape)


def fmax(input: Any, other: Any) -> Any:
    """Return the larger of two elements; where one is NaN, the other."""
    return _not_nan(input, other, np.greater_equal)


def fmin(input: Any, other: Any) -> Any:
    """Return the smaller of two elements; where one is NaN, the other."""
    return _not_nan(input, other, np.less_equal)


def _not_nan(input: Any, other: Any, better: Any) -> Any:
    a, b = operands(input, other)
    x, y = a._array, b._array
    chosen = _apply(better, x, y)
    if y.dtype.kind in "fV":
        chosen = chosen | np.isnan(y)
    return where(wrap(chosen), a, b)


def copysign(input: Any, other: Any) -> Any:
    """Return the magnitude of `input` with the sign of `other`."""
    a, b = _floats(input, other)
    size = a.abs()
    return where(wrap(np.signbit(b._array)), -size, size)


def heaviside(input: Any, values: Any) -> Any:
    """Return 0 where negative, 1 where positive, `values` where zero; NaN stays NaN."""
    if not isinstance(values, TensorBase) or input._array.dtype != values._array.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    x, y = input._array, values._array
    out = np.asarray(_apply(np.heaviside, x, y)).astype(x.dtype, copy=False)
    return record(out, no_derivative, (input, values), (), "heaviside", "NotImplemented")


arctan2 = atan2
