"""Powers: the exponent a number or a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, TensorBase, record, wrap
from minitorch.ops import generic
from minitorch.ops.arithmetic import broadcast_error, operands
from minitorch.ops.casting import cast, tensor_and_number
from minitorch.ops.generic import sum_to


def pow(input: Any, exponent: Any) -> Any:
    """Return ``input ** exponent``; either may be a number."""
    if not isinstance(exponent, TensorBase):
        x, number = tensor_and_number(input, exponent)
        if number.__class__ is bool and x._array.dtype.kind == "b":
            # NumPy would make int8 of it; x ** True is x, x ** False is True.
            return wrap(x._array | (not number))
        if number.__class__ is int and number < 0 and x._array.dtype.kind in "iu":
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return record(x._array**number, pow_backward, (x,), (x,), number)
    a, b = operands(input, exponent)
    x, y = a._array, b._array
    if x.dtype.kind == "b":
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if x.dtype.kind in "iu" and (y < 0).any():
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    try:
        out = x**y
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    saved = (a, b, out if b._requires_grad else None)
    return record(out, pow_tensor_backward, (a, b), saved, (x.shape, y.shape), "PowBackward1")


def pow_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    exponent = node.ctx
    if exponent == 0:
        return (generic.zeros_like(grad),)
    if exponent == 1:
        return (grad,)
    if exponent == 2:
        return (grad * (x * 2),)
    return (grad * (x ** (exponent - 1) * exponent),)


def pow_tensor_backward(node: Node, grad: Any) -> tuple:
    x, y, out = node.saved
    x_shape, y_shape = node.ctx
    for_x = for_y = None
    if node._next[0] is not None:
        # At exponent 0 the slope is 0, also where x ** -1 is not finite.
        for_x = sum_to(generic.where(y == 0, 0.0 * grad, grad * (y * x ** (y - 1))), x_shape)
    if out is not None:
        flat = (x == 0) & (y >= 0)
        safe = generic.where(flat, 0.0 * x + 1, x)
        for_y = sum_to(generic.where(flat, 0.0 * grad, grad * (out * generic.log(safe))), y_shape)
    return for_x, for_y


def square(input: Any) -> Any:
    """Return ``input ** 2``."""
    return pow(input, 2)


def float_power(input: Any, exponent: Any) -> Any:
    """Return ``input ** exponent`` computed in float64."""
    double = np.dtype(np.float64)
    a = cast(input, double) if isinstance(input, TensorBase) else float(input)
    b = cast(exponent, double) if isinstance(exponent, TensorBase) else float(exponent)
    return pow(a, b)
