"""Reductions: sum, mean, var, prod, max and their relatives, over one axis, several, or all.

16-bit floats accumulate in float32, as PyTorch does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import Node, record, wrap
from minitorch.dtypes import as_dtype, type_word
from minitorch.ops import generic
from minitorch.ops.axes import axes, axis, kept_shape
from minitorch.ops.casting import cast, floating
from minitorch.ops.generic import expand, linear_pair, sum_array

_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce


def add_reduce(x: ndarray, over: Any, keepdim: bool = False) -> Any:
    """Sum an array over axes; short floats accumulate in float32, bool and integers in int64."""
    dtype = x.dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":
        wide = sum_array(x, axis=over, dtype=np.float32, keepdims=keepdim)
        return np.asarray(wide).astype(dtype)
    if dtype.kind in "biu":
        return sum_array(x, axis=over, dtype=np.int64, keepdims=keepdim)
    return sum_array(x, axis=over, keepdims=keepdim)


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


def _regrow(grad: Any, shape: tuple[int, ...], over: tuple[int, ...]) -> Any:
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
    out = add_reduce(x, over, keepdim)
    out = out / count if count else out * math.nan
    name = "MeanBackward0" if dim is None else "MeanBackward1"
    return record(out, mean_backward, (input,), (), (x.shape, over, count), name)


def mean_backward(node: Node, grad: Any) -> tuple:
    shape, over, count = node.ctx
    if count == 0:
        return (expand(_regrow(grad, shape, over), shape),)
    return (expand(_regrow(grad / count, shape, over), shape),)


# -- variance ------------------------------------------------------------------------------------


def _spread_arguments(
    input: Any, dim: Any, unbiased: bool | None, correction: Any
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
    return x, over, max(count - correction, 0), count


def _squared_deviation(x: ndarray, over: tuple[int, ...], count: int, keepdim: bool) -> ndarray:
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    center = sum_array(wide, axis=over, keepdims=True) / max(count, 1)
    deviation = wide - center
    return np.asarray(sum_array(deviation * deviation, axis=over, keepdims=keepdim))


def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """Return the variance: squared deviations divided by ``count - correction`` (default 1)."""
    x, over, divisor, count = _spread_arguments(input, dim, unbiased, correction)
    total = _squared_deviation(x, over, count, keepdim)
    out = (np.divide(total, divisor) if divisor else total / np.float32(0)).astype(x.dtype)
    return record(out, var_backward, (input,), (input,), (over, divisor))


def var_backward(node: Node, grad: Any) -> tuple:
    (x,) = node.saved
    over, divisor = node.ctx
    return (_deviation(x, over) * (_regrow(grad, x.shape, over) * (2.0 / (divisor or math.nan))),)


def _deviation(x: Any, over: tuple[int, ...]) -> Any:
    count = math.prod([x.shape[i] for i in over])
    return x - generic.total(x, over, True) / max(count, 1)


def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    """Return the standard deviation: the root of :func:`var`; its gradient at 0 is 0."""
    x, over, divisor, count = _spread_arguments(input, dim, unbiased, correction)
    total = _squared_deviation(x, over, count, keepdim)
    out = np.sqrt(np.divide(total, divisor) if divisor else total / np.float32(0)).astype(x.dtype)
    return record(out, std_backward, (input,), (input, out), (over, divisor))


def std_backward(node: Node, grad: Any) -> tuple:
    x, out = node.saved
    over, divisor = node.ctx
    flat = out == 0
    per_unit = generic.where(flat, grad * 0.0, grad / generic.where(flat, out + 1, out))
    scale = _regrow(per_unit, x.shape, over) * (1.0 / (divisor or math.nan))
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
    grad = _regrow(grad, x.shape, over)
    if generic.raw(x).all():
        return (grad * _regrow(out, x.shape, over) / x,)
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


# -- logsumexp, norm -----------------------------------------------------------------------------


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Return ``log(sum(exp(x)))`` over `dim`, shifted by the maximum so that nothing overflows."""
    input = floating(input)
    x = input._array
    over = axes(dim, x.ndim)
    top = _maximum(x, axis=over, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    out = np.log(add_reduce(np.exp(x - top), over, True)) + top
    kept = out if keepdim else np.asarray(out).reshape(_dropped(x.shape, over))
    return record(kept, logsumexp_backward, (input,), (input, kept), over)


def _dropped(shape: tuple[int, ...], over: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for i, n in enumerate(shape) if i not in over])


def logsumexp_backward(node: Node, grad: Any) -> tuple:
    x, out = node.saved
    over = node.ctx
    out = _regrow(out, x.shape, over)
    # A row of -inf has the sum -inf; its elements get no gradient instead of NaN.
    out = generic.where(generic.raw(out) == -np.inf, generic.zeros_like(out), out)
    return (_regrow(grad, x.shape, over) * generic.exp(x - out),)


def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """Return the p-norm of the elements along `dim` (a vector norm; "fro" is 2)."""
    if dtype is not None:
        input = cast(input, as_dtype(dtype).numpy)
    p = 2.0 if p is None or p == "fro" else float(p)
    x = input._array
    if x.dtype.kind not in "fV":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{type_word(x.dtype)}"
        )
    over = axes(dim, x.ndim)
    size = np.absolute(x)
    if p == math.inf:
        out = _maximum(size, axis=over, keepdims=keepdim)
    elif p == -math.inf:
        out = _minimum(size, axis=over, keepdims=keepdim)
    elif p == 0:
        out = add_reduce((x != 0).astype(x.dtype), over, keepdim)
    elif p == 1:
        out = add_reduce(size, over, keepdim)
    elif p == 2:
        wide = _wide(x)  # 256² is more than float16 holds
        out = np.sqrt(add_reduce(wide * wide, over, keepdim)).astype(x.dtype)
    else:
        out = add_reduce(size**p, over, keepdim) ** (1 / p)
    out = np.asarray(out)
    return record(
        out, norm_backward, (input,), (input, out), (p, over), "LinalgVectorNormBackward0"
    )


def norm_backward(node: Node, grad: Any) -> tuple:
    x, out = node.saved
    p, over = node.ctx
    grad, out = _regrow(grad, x.shape, over), _regrow(out, x.shape, over)
    if p == 0:
        return (generic.zeros_like(x),)
    if p == 1:
        return (grad * generic.sign(x),)
    size = generic.absolute(x)
    if abs(p) == math.inf:
        hit = generic.raw(size) == generic.raw(out)
        share = hit / np.maximum(hit.sum(axis=over, keepdims=True), 1)
        share = generic.like(share.astype(generic.raw(x).dtype), x)
        return (generic.sign(x) * share * grad,)
    # Where the norm is 0 it has a corner; the gradient there is 0.
    zero = out == 0
    safe = generic.where(zero, out + 1, out)
    if p == 2:
        return (x * generic.where(zero, grad * 0.0, grad / safe),)
    slope = generic.where(zero, grad * 0.0, grad * safe ** (1 - p))
    if p < 1 or p < 2:
        empty = size == 0
        powers = generic.where(empty, size * 0.0, generic.where(empty, size + 1, size) ** (p - 1))
    else:
        powers = size ** (p - 1)
    return (generic.sign(x) * powers * slope,)


# -- cumulative ----------------------------------------------------------------------------------


def _wide(x: ndarray) -> ndarray:
    """Return 16-bit floats as float32, in which sums of them are to be taken."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def _running(x: ndarray, ctx: int) -> ndarray:
    return np.add.accumulate(_wide(x), axis=ctx).astype(x.dtype, copy=False)


def _running_from_end(x: ndarray, ctx: int) -> ndarray:
    return np.flip(_running(np.flip(x, ctx), ctx), ctx)


_cumsum, _cumsum_from_end = linear_pair(_running, _running_from_end, "CumsumBackward0")


def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the running sum along `dim`."""
    if dtype is not None:
        input = cast(input, as_dtype(dtype).numpy)
    elif input._array.dtype.kind in "biu":
        input = cast(input, np.dtype(np.int64))
    where = axis(dim, input._array.ndim)
    return input * 1 if input._array.ndim == 0 else _cumsum(input, where)


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
