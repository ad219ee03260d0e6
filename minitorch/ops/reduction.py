"""Reductions by adding and multiplying: sum, mean, var, std, prod, and the truth of all or any.

16-bit floats accumulate in float32, as PyTorch does. Norms are in `magnitude.py`, running sums in
`cumulative.py`, largest and smallest in `extremes.py`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import Node, record, wrap
from minitorch.dtypes import as_dtype, type_word
from minitorch.ops import generic
from minitorch.ops.axes import axes, kept_shape
from minitorch.ops.casting import cast
from minitorch.ops.gathering import masked_fill
from minitorch.ops.generic import expand, sum_array
from minitorch.ops.precision import computed_in_float32

_multiply: Any = np.multiply.reduce


def add_reduce(x: ndarray, over: Any, keepdim: bool = False) -> Any:
    """Sum an array over axes; short floats accumulate in float32, bool and integers in int64."""
    dtype = x.dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":
        return np.asarray(_wide_sum(x, over, keepdim)).astype(dtype)
    if dtype.kind in "biu":
        return sum_array(x, axis=over, dtype=np.int64, keepdims=keepdim)
    return sum_array(x, axis=over, keepdims=keepdim)


def _wide_sum(x: ndarray, over: Any, keepdim: bool) -> Any:
    return sum_array(x, axis=over, dtype=np.float32, keepdims=keepdim)


# -- sum and mean --------------------------------------------------------------------------------


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum over `dim` (int, tuple, or None for all); integers sum to int64."""
    if dtype is not None:
        input = cast(input, as_dtype(dtype).numpy)
    x = input._array
    over = None if dim is None else axes(dim, x.ndim)
    out = add_reduce(x, over, keepdim)
    shape = x.shape
    if dtype is not None:
        out = np.asarray(out).astype(x.dtype, copy=False)
    kept = shape if over is None else kept_shape(shape, over)
    name = "SumBackward0" if over is None else "SumBackward1"
    return record(out, sum_backward, (input,), (), (shape, kept, over is None), name)


def sum_backward(node: Node, grad: Any) -> tuple:
    shape, kept, everything = node.ctx
    if everything:
        return (expand(grad.reshape(()), shape),)
    return (expand(grad.reshape(kept) if grad.shape != kept else grad, shape),)


def regrow(grad: Any, shape: tuple[int, ...], over: tuple[int, ...]) -> Any:
    """Bring a reduction's gradient to a shape that broadcasts with its input."""
    return grad.reshape(kept_shape(shape, over))


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean over `dim`; the input must be floating."""
    if dtype is not None:
        input = cast(input, as_dtype(dtype).numpy)
    x = input._array
    if x.dtype.kind not in "fV":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {type_word(x.dtype)}"
        )
    over = axes(dim, x.ndim)
    count = math.prod([x.shape[i] for i in over])
    if x.dtype.itemsize == 2:  # the sum may be more than float16 holds
        out = np.asarray(_wide_sum(x, over, keepdim) / np.float32(count or math.nan))
        out = out.astype(x.dtype)
    else:
        out = add_reduce(x, over, keepdim)
        out = out / count if count else out * math.nan
    name = "MeanBackward0" if dim is None else "MeanBackward1"
    return record(out, mean_backward, (input,), (), (x.shape, over, count), name)


def mean_backward(node: Node, grad: Any) -> tuple:
    shape, over, count = node.ctx
    if count == 0:
        return (expand(regrow(grad, shape, over), shape),)
    return (expand(regrow(grad / count, shape, over), shape),)


# -- variance ------------------------------------------------------------------------------------


def _spread_arguments(
    name: str, input: Any, dim: Any, unbiased: bool | None, correction: Any
) -> tuple[Any, tuple[int, ...], float, int]:
    if isinstance(dim, bool):  # torch.var(x, unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    x = input._array
    if x.dtype.kind not in "fV":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    over = axes(dim, x.ndim)
    count = math.prod([x.shape[i] for i in over])
    if count - correction <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel).",
            stacklevel=4,
        )
    return x, over, max(count - correction, 0), count


def _squared_deviation(x: ndarray, over: tuple[int, ...], count: int, keepdim: bool) -> ndarray:
    center = sum_array(x, axis=over, keepdims=True) / max(count, 1)
    deviation = x - center
    total = np.asarray(sum_array(deviation * deviation, axis=over, keepdims=keepdim))
    if x.dtype == np.float32 and not np.isfinite(total).all() and np.isfinite(x).all():
        # Squares beyond float32, whose root may be within.
        return _squared_deviation(x.astype(np.float64), over, count, keepdim)
    return total


@computed_in_float32
def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """Return the variance: squared deviations divided by ``count - correction`` (default 1)."""
    x, over, divisor, count = _spread_arguments("var", input, dim, unbiased, correction)
    total = _squared_deviation(x, over, count, keepdim)
    out = (np.divide(total, divisor) if divisor else total / np.float32(0)).astype(x.dtype)
    return record(out, var_backward, (input,), (input,), (over, divisor))


def var_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    over, divisor = node.ctx
    return (_deviation(x, over) * (regrow(grad, x.shape, over) * (2.0 / (divisor or math.nan))),)


def _deviation(x: Any, over: tuple[int, ...]) -> Any:
    count = math.prod([x.shape[i] for i in over])
    return x - generic.total(x, over, True) / max(count, 1)


@computed_in_float32
def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """Return the standard deviation: the root of :func:`var`; its gradient at 0 is 0."""
    x, over, divisor, count = _spread_arguments("std", input, dim, unbiased, correction)
    total = _squared_deviation(x, over, count, keepdim)
    out = np.sqrt(np.divide(total, divisor) if divisor else total / np.float32(0)).astype(x.dtype)
    return record(out, std_backward, (input,), (input, out), (over, divisor))


def std_backward(node: Node, grad: Any) -> tuple:
    x, out = node.saved
    over, divisor = node.ctx
    flat = out == 0
    per_unit = generic.where(flat, grad * 0.0, grad / generic.where(flat, out + 1, out))
    scale = regrow(per_unit, x.shape, over) * (1.0 / (divisor or math.nan))
    return (_deviation(x, over) * scale,)


def var_mean(input: Any, dim: Any = None, **options: Any) -> tuple:
    """Return (variance, mean)."""
    keepdim = options.get("keepdim", False)
    return var(input, dim, **options), mean(input, dim, keepdim)


def std_mean(input: Any, dim: Any = None, **options: Any) -> tuple:
    """Return (standard deviation, mean)."""
    keepdim = options.get("keepdim", False)
    return std(input, dim, **options), mean(input, dim, keepdim)


# -- prod ----------------------------------------------------------------------------------------


@computed_in_float32
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the product over one dimension, or over all."""
    if dtype is not None:
        input = cast(input, as_dtype(dtype).numpy)
    x = input._array
    over = axes(dim, x.ndim)
    kind = np.int64 if x.dtype.kind in "biu" else None
    out = np.asarray(_multiply(x, axis=over, dtype=kind, keepdims=keepdim))
    if dtype is not None:
        out = out.astype(x.dtype, copy=False)
    return record(out, prod_backward, (input,), (input, out), over)


def prod_backward(node: Node, grad: Any) -> tuple:
    x, out = node.saved
    over = node.ctx
    grad = regrow(grad, x.shape, over)
    if generic.raw(x).all():
        return (grad * regrow(out, x.shape, over) / x,)
    return (grad * _product_of_others(x, over),)


def _product_of_others(x: Any, over: tuple[int, ...]) -> Any:
    """For each element the product of the others, without dividing by a zero.

    Takes n^2 steps for n elements; only reached when an element is zero.
    """
    if not over:
        return generic.like(np.ones_like(generic.raw(x)), x)
    rest = tuple([i for i in range(len(x.shape)) if i not in over])
    order = rest + over
    moved = generic.permute(x, order)
    n = math.prod([x.shape[i] for i in over])
    flat = moved.reshape((*[x.shape[i] for i in rest], n))
    square = expand(generic.unsqueeze(flat, len(rest)), (*flat.shape, n))
    one = generic.like(np.ones((), generic.raw(x).dtype), x)
    others = generic.where(generic.like(np.eye(n, dtype=bool), x), one, square)
    others = others.prod(-1) if generic.is_tensor(others) else _multiply(others, axis=-1)
    return generic.permute(others.reshape(moved.shape), tuple(np.argsort(order).tolist()))


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum of the elements that are not NaN."""
    return sum(without_nan(input), dim, keepdim, dtype=dtype)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean of the elements that are not NaN; NaN if there are none."""
    counted = wrap(~np.isnan(input._array)).sum(dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / counted


def without_nan(input: Any) -> Any:
    """Return `input` with zeros instead of NaN, which get no gradient."""
    return masked_fill(input, wrap(np.isnan(input._array)), 0)


# -- truth ---------------------------------------------------------------------------------------


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return whether some element is nonzero."""
    return _truth(np.any, input._array, dim, keepdim)


def _truth(function: Any, x: ndarray, dim: Any, keepdim: bool) -> Any:
    found = np.asarray(function(x, axis=axes(dim, x.ndim), keepdims=keepdim))
    # Byte tensors were PyTorch's first masks: their answers are bytes.
    return wrap(found.astype(np.uint8) if x.dtype == np.uint8 else found)


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return whether every element is nonzero."""
    return _truth(np.all, input._array, dim, keepdim)


def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Return the number of nonzero elements."""
    return wrap(np.asarray(np.count_nonzero(input._array, axis=axes(dim, input._array.ndim))))
