"""Changing the element type: the cast op, and bringing operands to one type."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, TensorBase, record, wrap
from minitorch.dtypes import get_default_dtype, result_type
from minitorch.ops import generic


def cast(x: Any, dtype: np.dtype) -> Any:
    """Return `x` with the NumPy type `dtype`; `x` itself if it has it already."""
    array = x._array
    if array.dtype == dtype:
        return x
    return record(convert(array, dtype), to_copy_backward, (x,), (), array.dtype)


def to_copy_backward(node: Node, grad: Any) -> tuple:
    return (generic.cast(grad, node.ctx),)


def convert(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert as C does: floats to integers by truncation, without NumPy's warning."""
    if dtype.kind in "iu" and array.dtype.kind in "fV":
        with np.errstate(invalid="ignore"):
            if array.dtype.kind == "V":
                array = array.astype(np.float32)
            return array.astype(np.int64).astype(dtype, copy=False)
    return array.astype(dtype)


def floating(x: Any) -> Any:
    """Return `x`, converted to the default floating type if it is not floating."""
    if x._array.dtype.kind in "fV":
        return x
    return cast(x, get_default_dtype().numpy)


def same_type(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two tensors in the type PyTorch promotes them to."""
    if a._array.dtype is b._array.dtype:
        return a, b
    dtype = result_type(a, b).numpy
    return cast(a, dtype), cast(b, dtype)


def tensor_and_number(x: Any, number: Any) -> tuple[Any, Any]:
    """Return `x` and a Python number in the type of their result.

    A float lifts an integer tensor to the default floating type; an int lifts only bool.
    """
    kind = x._array.dtype.kind
    if isinstance(number, (bool, np.bool_)):
        return x, bool(number)
    if isinstance(number, (float, np.floating)):
        return (x, float(number)) if kind in "fV" else (floating(x), float(number))
    if isinstance(number, (int, np.integer)):
        number = int(number)
        if kind == "b":
            x = cast(x, np.dtype(np.int64))
        elif kind in "iu":
            # An int that does not fit wraps around, as in C; NumPy would refuse it.
            number = int(np.array(number).astype(x._array.dtype))
        return x, number
    raise TypeError(f"unsupported operand type: {type(number).__name__}")


def is_number(value: Any) -> bool:
    """Whether `value` may stand where PyTorch accepts a Number."""
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))


def both(*operands: Any) -> tuple:
    """Return operands (tensors and numbers) as tensors of the type PyTorch promotes them to."""
    dtype = result_type(*operands).numpy
    return tuple([_of_type(operand, dtype) for operand in operands])


def _of_type(operand: Any, dtype: np.dtype) -> Any:
    if isinstance(operand, TensorBase):
        return cast(operand, dtype)
    return wrap(np.array(operand).astype(dtype))
