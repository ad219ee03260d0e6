"""Arithmetic of two operands: add, sub, mul.

The fast path is two tensors of one type: one NumPy call, one node. Numbers and mixed types take a
few more lines. A rule first forms the gradient in the result's shape, then sums over what was
broadcast; ``ctx`` holds the operands' shapes.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, TensorBase, record
from minitorch.ops.casting import both, same_type, tensor_and_number
from minitorch.ops.generic import short_with_number, sum_to
from minitorch.ops.precision import in_float32


def broadcast_error(x: np.ndarray, y: np.ndarray, error: ValueError) -> Exception:
    """Return PyTorch's error for shapes that do not broadcast."""
    a, b = x.shape, y.shape
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            place = max(len(a), len(b)) - back
            return RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b "
                f"({b[-back]}) at non-singleton dimension {place}"
            )
    return error


def operands(a: Any, b: Any) -> tuple:
    """Return two operands, tensors or numbers, as tensors of one type."""
    if isinstance(a, TensorBase) and isinstance(b, TensorBase):
        return same_type(a, b)
    return both(a, b)


# -- add, sub ------------------------------------------------------------------------------------


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return ``input + alpha * other``."""
    if alpha != 1:
        return _with_scaled(add, input, other, alpha)
    try:
        x, y = input._array, other._array
    except AttributeError:
        return _add_number(input, other)
    if x.dtype is not y.dtype:
        input, other = same_type(input, other)
        x, y = input._array, other._array
    try:
        out = x + y
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    return record(out, add_backward, (input, other), (), (x.shape, y.shape))


def add_backward(node: Node, grad: Any) -> tuple:
    x_shape, y_shape = node.ctx
    shape = grad.shape
    if x_shape == shape == y_shape:
        return grad, grad
    x_needed, y_needed = node._next
    return (
        sum_to(grad, x_shape) if x_needed is not None else None,
        sum_to(grad, y_shape) if y_needed is not None else None,
    )


def _with_scaled(combine: Any, input: Any, other: Any, alpha: Any) -> Any:
    """Combine `input` with ``alpha * other``, scaled in the type that the two have together."""
    if not isinstance(other, TensorBase):
        return combine(input, other * alpha)
    if not isinstance(input, TensorBase):
        return combine(input, mul(other, alpha))
    kinds = {x._array.dtype.kind for x in (input, other)}
    if combine is sub and len(kinds) > 1 and "b" in kinds:
        raise _bool_subtraction()
    input, other = same_type(input, other)
    kind, size = input._array.dtype.kind, input._array.dtype.itemsize
    if kind in "biu" and isinstance(alpha, float):
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if size == 2 and kind != "i":
        return in_float32(lambda a, b: combine(a, mul(b, alpha)), input, other)
    return combine(input, mul(other, bool(alpha) if kind == "b" else alpha))


def _add_number(a: Any, b: Any) -> Any:
    if not isinstance(a, TensorBase):
        a, b = b, a
    x, number = tensor_and_number(a, b)
    array = x._array
    out = array + number if array.dtype.itemsize != 2 else short_with_number(np.add, array, number)
    return record(out, add_number_backward, (x,), (), number, "AddBackward0")


def add_number_backward(node: Node, grad: Any) -> tuple:
    return (grad,)


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return ``input - alpha * other``."""
    if alpha != 1:
        return _with_scaled(sub, input, other, alpha)
    try:
        x, y = input._array, other._array
    except AttributeError:
        return _sub_number(input, other)
    if x.dtype is not y.dtype:
        if "b" in (x.dtype.kind, y.dtype.kind):
            raise _bool_subtraction()
        input, other = same_type(input, other)
        x, y = input._array, other._array
    if x.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    try:
        out = x - y
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    return record(out, sub_backward, (input, other), (), (x.shape, y.shape))


def sub_backward(node: Node, grad: Any) -> tuple:
    x_shape, y_shape = node.ctx
    x_needed, y_needed = node._next
    return (
        sum_to(grad, x_shape) if x_needed is not None else None,
        -sum_to(grad, y_shape) if y_needed is not None else None,
    )


def _bool_subtraction() -> RuntimeError:
    return RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead."
    )


def _sub_number(a: Any, b: Any) -> Any:
    if isinstance(a, TensorBase):
        x, number = tensor_and_number(a, b)
        if x._array.dtype.kind == "b":
            raise _bool_subtraction()
        array = x._array
        if array.dtype.itemsize != 2:
            out = array - number
        else:
            out = short_with_number(np.subtract, array, number)
        return record(out, add_number_backward, (x,), (), -number, "SubBackward0")
    return rsub(b, a)


def rsub(input: Any, other: Any) -> Any:
    """Return ``other - input``."""
    if isinstance(other, TensorBase):
        return sub(other, input)
    x, number = tensor_and_number(input, other)
    if x._array.dtype.kind == "b":
        raise _bool_subtraction()
    array = x._array
    if array.dtype.itemsize != 2:
        out = number - array
    else:
        out = short_with_number(lambda a, b: b - a, array, number)
    return record(out, neg_backward, (x,), (), number, "RsubBackward1")


def neg(input: Any) -> Any:
    """Return ``-input``."""
    if input._array.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return record(-input._array, neg_backward, (input,))


def neg_backward(node: Node, grad: Any) -> tuple:
    return (-grad,)


# -- mul -----------------------------------------------------------------------------------------


def mul(input: Any, other: Any) -> Any:
    """Return ``input * other``."""
    try:
        x, y = input._array, other._array
    except AttributeError:
        return _mul_number(input, other)
    if x.dtype is not y.dtype:
        input, other = same_type(input, other)
        x, y = input._array, other._array
    try:
        out = x * y
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    # Only what a wanted gradient needs is kept alive.
    saved = (
        input if other._requires_grad else None,
        other if input._requires_grad else None,
    )
    return record(out, mul_backward, (input, other), saved, (x.shape, y.shape))


def mul_backward(node: Node, grad: Any) -> tuple:
    x, y = node.saved
    x_shape, y_shape = node.ctx
    return (
        None if y is None else sum_to(grad * y, x_shape),
        None if x is None else sum_to(grad * x, y_shape),
    )


def _mul_number(a: Any, b: Any) -> Any:
    if not isinstance(a, TensorBase):
        a, b = b, a
    x, number = tensor_and_number(a, b)
    return record(_times(x._array, number), mul_number_backward, (x,), (), number, "MulBackward0")


def mul_number_backward(node: Node, grad: Any) -> tuple:
    return (_times(grad, node.ctx),)


def _times(x: Any, number: Any) -> Any:
    if x.dtype.itemsize != 2:
        return x * number
    return short_with_number(operator.mul, x, number)


multiply, subtract, negative = mul, sub, neg


# -- compositions --------------------------------------------------------------------------------


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """Return ``input + weight * (end - input)``."""
    return in_float32(_lerp, input, end, weight)


def _lerp(input: Any, end: Any, weight: Any) -> Any:
    return add(input, mul(sub(end, input), weight))


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return ``input + value * tensor1 * tensor2``."""
    return in_float32(_addcmul, input, tensor1, tensor2, value)


def _addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return add(input, mul(tensor1, tensor2), alpha=value)
