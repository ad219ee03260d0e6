"""Division: true, rounded, and remainders."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, record
from minitorch.ops import generic
from minitorch.ops.arithmetic import add, broadcast_error, operands
from minitorch.ops.casting import floating, is_number, tensor_and_number
from minitorch.ops.generic import short_with_number, sum_to
from minitorch.ops.precision import in_float32


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return ``input / other``; integers give the default floating type.

    `rounding_mode` "floor" or "trunc" rounds the quotient and keeps integer types.
    """
    if rounding_mode is not None:
        return _rounded_div(input, other, rounding_mode)
    if is_number(other):
        x, number = tensor_and_number(floating(input), other)
        array = x._array
        if array.dtype.itemsize != 2:
            out = array / number
        else:
            out = short_with_number(operator.truediv, array, number)
        return record(out, div_number_backward, (x,), (), number, "DivBackward0")
    a, b = operands(input, other)
    a, b = floating(a), floating(b)
    x, y = a._array, b._array
    try:
        out = x / y
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    x_wanted, y_wanted = a._requires_grad, b._requires_grad
    saved = (a if y_wanted else None, b if x_wanted or y_wanted else None)
    return record(out, div_backward, (a, b), saved, (x.shape, y.shape))


def div_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    x_shape, y_shape = node.ctx
    x_needed = node._next[0] is not None
    quotient = grad / y
    return (
        sum_to(quotient, x_shape) if x_needed else None,
        None if x is None else sum_to(-quotient * (x / y), y_shape),
    )


def div_number_backward(node: Node, grad: Any) -> tuple:
    if grad.dtype.itemsize != 2:
        return (grad / node.ctx,)
    return (short_with_number(operator.truediv, grad, node.ctx),)


def reciprocal(input: Any) -> Any:
    """Return ``1 / input``."""
    x = floating(input)
    out = np.reciprocal(x._array)
    return record(out, reciprocal_backward, (x,), (out,))


def reciprocal_backward(node: Node, grad: Any) -> tuple:
    (out,) = node.saved
    return (-grad * (out * out),)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return ``input + value * tensor1 / tensor2``."""
    return in_float32(_addcdiv, input, tensor1, tensor2, value)


def _addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return add(input, div(tensor1, tensor2), alpha=value)


# -- integer-like division -----------------------------------------------------------------------


def _refuse_zero(y: np.ndarray) -> None:
    if y.dtype.kind in "iub" and not y.all():
        raise RuntimeError("ZeroDivisionError")


def _rounded_div(input: Any, other: Any, mode: str) -> Any:
    if mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'"
        )
    a, b = operands(input, other)
    x, y = a._array, b._array
    _refuse_zero(y)
    if mode == "floor":
        out = np.floor_divide(x, y)
    elif x.dtype.kind in "fV":
        out = np.trunc(x / y)
    else:
        # Exact for all of int64, where a float quotient would round.
        quotient = np.floor_divide(x, y)
        out = quotient + ((x % y != 0) & ((x < 0) != (y < 0)))
        out = np.asarray(out).astype(x.dtype, copy=False)
    return record(out, zero_backward, (a, b), (), (x.shape, y.shape), "DivBackward1")


def zero_backward(node: Node, grad: Any) -> tuple:
    """Steps are flat: the gradient is zero."""
    zero = generic.zeros_like(grad)
    return tuple([sum_to(zero, shape) for shape in node.ctx])


def floor_divide(input: Any, other: Any) -> Any:
    """Return the quotient rounded towards minus infinity; not differentiable."""
    a, b = operands(input, other)
    _refuse_zero(b._array)
    out = np.floor_divide(a._array, b._array)
    return record(out, no_derivative, (a, b), (), "floor_divide", "NotImplemented")


def no_derivative(node: Node, grad: Any) -> tuple:
    """Refuse, rather than pass a zero gradient on."""
    raise RuntimeError(f"derivative for aten::{node.ctx} is not implemented")


def remainder(input: Any, other: Any) -> Any:
    """Return the remainder with the sign of `other`, as Python's ``%``."""
    return _modulo(input, other, np.remainder, np.floor, "RemainderBackward0")


def fmod(input: Any, other: Any) -> Any:
    """Return the remainder with the sign of `input`, as C's ``fmod``."""
    return _modulo(input, other, np.fmod, np.trunc, "FmodBackward0")


def _modulo(input: Any, other: Any, function: Any, rounding: Any, name: str) -> Any:
    a, b = operands(input, other)
    x, y = a._array, b._array
    _refuse_zero(y)
    turns = rounding(x / y) if b._requires_grad else None
    return record(function(x, y), modulo_backward, (a, b), (), (x.shape, y.shape, turns), name)


def modulo_backward(node: Node, grad: Any) -> tuple:
    x_shape, y_shape, turns = node.ctx
    return (
        sum_to(grad, x_shape),
        None if turns is None else sum_to(-grad * generic.like(turns, grad), y_shape),
    )


true_divide = divide = div
