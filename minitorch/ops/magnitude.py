"""How large a tensor is: norms, and the logarithm of a sum of exponentials.

Both are computed so that the result overflows only if it must.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, record
from minitorch.dtypes import as_dtype, type_word
from minitorch.ops import generic
from minitorch.ops.axes import axes
from minitorch.ops.casting import cast, floating
from minitorch.ops.precision import computed_in_float32
from minitorch.ops.reduction import add_reduce, regrow

_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce


@computed_in_float32
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
    out = regrow(out, x.shape, over)
    # A row of -inf has the sum -inf; its elements get no gradient instead of NaN.
    out = generic.where(generic.raw(out) == -np.inf, generic.zeros_like(out), out)
    return (regrow(grad, x.shape, over) * generic.exp(x - out),)


def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """Return the p-norm of the elements along `dim` (a vector norm; "fro" is 2)."""
    if dtype is not None:
        input = cast(input, as_dtype(dtype).numpy)
    if p == "nuc":
        raise NotImplementedError("norm: the nuclear norm is not supported; p is a number or 'fro'")
    p = 2.0 if p is None or p == "fro" else float(p)
    if input._array.dtype.kind not in "fV":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{type_word(input._array.dtype)}"
        )
    return _vector_norm(input, p, dim, keepdim)


@computed_in_float32
def _vector_norm(input: Any, p: float, dim: Any, keepdim: bool) -> Any:
    x = input._array
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
        out = np.sqrt(add_reduce(x * x, over, keepdim))
    else:
        out = add_reduce(size**p, over, keepdim) ** (1 / p)
    out = np.asarray(out)
    return record(
        out, norm_backward, (input,), (input, out), (p, over), "LinalgVectorNormBackward0"
    )


def norm_backward(node: Node, grad: Any) -> tuple:
    x, out = node.saved
    p, over = node.ctx
    grad, out = regrow(grad, x.shape, over), regrow(out, x.shape, over)
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


def dist(input: Any, other: Any, p: Any = 2) -> Any:
    """Return the p-norm of ``input - other``, all elements taken as one vector."""
    return norm(input - other, p)
