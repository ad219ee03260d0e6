"""Choosing between values: where, maximum, minimum, clamp; and comparing tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, TensorBase, record, wrap
from minitorch.dtypes import result_type, type_word
from minitorch.ops import generic
from minitorch.ops.arithmetic import broadcast_error
from minitorch.ops.casting import both, cast, same_type
from minitorch.ops.generic import sum_to


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return `input` where `condition` holds, else `other`.

    With the condition alone: the indices of its true elements, one tensor per dimension.
    """
    if input is None and other is None:
        return tuple([wrap(index.astype(np.int64)) for index in np.nonzero(condition._array)])
    mask = condition._array
    if mask.dtype.kind not in "bu":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{mask.dtype.name}"
        )
    mask = mask.astype(bool, copy=False)
    a, b = both(input, other)
    x, y = a._array, b._array
    try:
        out = np.where(mask, x, y)
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    return record(out, where_backward, (a, b), (), (mask, x.shape, y.shape))


def where_backward(node: Node, grad: Any) -> tuple:
    mask, x_shape, y_shape = node.ctx
    x_needed, y_needed = node._next
    return (
        sum_to(generic.keep(grad, mask), x_shape) if x_needed is not None else None,
        sum_to(generic.keep(grad, ~mask), y_shape) if y_needed is not None else None,
    )


def maximum(input: Any, other: Any) -> Any:
    """Return the element-wise maximum; at a tie each operand gets half the gradient."""
    return _extreme(input, other, np.maximum, "MaximumBackward0")


def minimum(input: Any, other: Any) -> Any:
    """Return the element-wise minimum; at a tie each operand gets half the gradient."""
    return _extreme(input, other, np.minimum, "MinimumBackward0")


def _extreme(input: Any, other: Any, function: Any, name: str) -> Any:
    a, b = same_type(input, other)
    x, y = a._array, b._array
    try:
        out = function(x, y)
    except ValueError as error:
        raise broadcast_error(x, y, error) from None
    shares: tuple = (None, None)
    if a._requires_grad or b._requires_grad:
        better = np.greater if function is np.maximum else np.less
        # A comparison with NaN is false: both operands get the whole gradient then.
        shares = tuple(
            [
                np.where(x == y, 0.5, ~loses).astype(x.dtype)
                for loses in (better(y, x), better(x, y))
            ]
        )
    return record(out, share_backward, (a, b), (), (*shares, x.shape, y.shape), name)


def share_backward(node: Node, grad: Any) -> tuple:
    x_share, y_share, x_shape, y_shape = node.ctx
    return (
        sum_to(grad * generic.like(x_share, grad), x_shape),
        sum_to(grad * generic.like(y_share, grad), y_shape),
    )


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Limit each element to ``[min, max]``; bounds are numbers, tensors or None.

    The gradient passes where the element is within the bounds, both included.
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [bound for bound in (min, max) if bound is not None]
    if any(isinstance(bound, TensorBase) for bound in bounds):
        return _clamp_tensor(input, min, max)
    x = cast(input, result_type(input, *bounds).numpy)
    array = x._array
    out = np.clip(array, min, max)
    if array.dtype.kind == "V":  # np.clip lifts bfloat16, and loses its NaN
        out = np.where(np.isnan(array), array, out.astype(array.dtype))
    mask = None
    if x._requires_grad:
        mask = np.ones(array.shape, bool)
        if min is not None:
            mask &= array >= min
        if max is not None:
            mask &= array <= max
    return record(out, clamp_backward, (x,), (), mask, "ClampBackward1")


def clamp_backward(node: Node, grad: Any) -> tuple:
    return (generic.keep(grad, node.ctx),)


def _clamp_tensor(input: Any, low: Any, high: Any) -> Any:
    x = input
    if low is not None:
        x, low = both(x, low)
        x = where(wrap(x._array < low._array), low, x)
    if high is not None:
        x, high = both(x, high)
        x = where(wrap(x._array > high._array), high, x)
    return x


def clamp_min(input: Any, min: Any) -> Any:
    """Return ``clamp(input, min=min)``."""
    return clamp(input, min)


def clamp_max(input: Any, max: Any) -> Any:
    """Return ``clamp(input, max=max)``."""
    return clamp(input, None, max)


clip = clamp


# -- comparisons: results are bool, nothing to differentiate -------------------------------------


def _comparison(name: str, ufunc: Any) -> Any:
    def compare(input: Any, other: Any) -> Any:
        try:
            x, y = input._array, other._array
        except AttributeError:
            a, b = both(input, other)
            x, y = a._array, b._array
        if x.dtype is not y.dtype:
            a, b = same_type(wrap(x), wrap(y))
            x, y = a._array, b._array
        try:
            return wrap(ufunc(x, y))
        except ValueError as error:
            raise broadcast_error(x, y, error) from None

    compare.__name__ = name
    compare.__doc__ = f"Element-wise {ufunc.__name__.replace('_', ' ')}; a bool tensor."
    return compare


eq = _comparison("eq", np.equal)
ne = _comparison("ne", np.not_equal)
lt = _comparison("lt", np.less)
le = _comparison("le", np.less_equal)
gt = _comparison("gt", np.greater)
ge = _comparison("ge", np.greater_equal)
not_equal, greater, greater_equal, less, less_equal = ne, gt, ge, lt, le
logical_and = _comparison("logical_and", np.logical_and)
logical_or = _comparison("logical_or", np.logical_or)
logical_xor = _comparison("logical_xor", np.logical_xor)


def logical_not(input: Any) -> Any:
    """Return whether each element is zero."""
    return wrap(np.logical_not(input._array))


def _bitwise(name: str, ufunc: Any) -> Any:
    def apply(input: Any, other: Any) -> Any:
        a, b = both(input, other)
        if a._array.dtype.kind in "fV":
            raise NotImplementedError(
                f"\"{name}_cpu\" not implemented for '{type_word(a._array.dtype)}'"
            )
        return wrap(ufunc(a._array, b._array))

    apply.__name__ = name
    apply.__doc__ = f"{name.replace('_', ' ').capitalize()} of integers, or logical of bools."
    return apply


bitwise_and = _bitwise("bitwise_and", np.bitwise_and)
bitwise_or = _bitwise("bitwise_or", np.bitwise_or)
bitwise_xor = _bitwise("bitwise_xor", np.bitwise_xor)
bitwise_left_shift = _bitwise("bitwise_left_shift", np.left_shift)
bitwise_right_shift = _bitwise("bitwise_right_shift", np.right_shift)


def bitwise_not(input: Any) -> Any:
    """Return each integer with its bits flipped, or each bool negated."""
    if input._array.dtype.kind in "fV":
        raise NotImplementedError(
            f"\"bitwise_not_cpu\" not implemented for '{type_word(input._array.dtype)}'"
        )
    return wrap(np.invert(input._array))


def isnan(input: Any) -> Any:
    """Return where elements are NaN."""
    return wrap(np.isnan(input._array))


def isinf(input: Any) -> Any:
    """Return where elements are infinite."""
    return wrap(np.isinf(input._array))


def isfinite(input: Any) -> Any:
    """Return where elements are neither NaN nor infinite."""
    return wrap(np.isfinite(input._array))


def isposinf(input: Any) -> Any:
    """Return where elements are plus infinity."""
    return wrap(input._array == np.inf)


def isneginf(input: Any) -> Any:
    """Return where elements are minus infinity."""
    return wrap(input._array == -np.inf)


def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Return where ``|input - other| <= atol + rtol * |other|``."""
    return wrap(np.isclose(input._array, other._array, rtol, atol, equal_nan))


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close (see :func:`isclose`)."""
    return bool(np.isclose(input._array, other._array, rtol, atol, equal_nan).all())


def equal(input: Any, other: Any) -> bool:
    """Return whether two tensors have the same shape and elements."""
    x, y = input._array, other._array
    return x.shape == y.shape and bool((x == y).all())
