"""Products of vectors and tensors beyond the matrix product: inner, tensordot, cross, distances.

All are spelled out in matrix products and arithmetic, whose gradients do the rest.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.ops.axes import axis
from minitorch.ops.matmul import dot, matmul, mv, outer
from minitorch.ops.rearranging import roll


def inner(input: Any, other: Any) -> Any:
    """Return the products along the last dimension of both, summed."""
    if not input._array.ndim or not other._array.ndim:
        return input * other
    if input._array.shape[-1] != other._array.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._array.shape)} and {list(other._array.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


def vdot(input: Any, other: Any) -> Any:
    """Return the dot product of two vectors."""
    return dot(input, other)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Return the sum of products over pairs of dimensions.

    `dims` is how many last dimensions of `a` meet the first of `b`, or two lists of dimensions.
    """
    x, y = a._array, b._array
    if hasattr(dims, "__index__"):
        count = int(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(x.ndim, y.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        left, right = list(range(x.ndim - count, x.ndim)), list(range(count))
    else:
        left, right = (
            [axis(each, n) for each in _listed(part)]
            for part, n in zip(dims, (x.ndim, y.ndim), strict=True)
        )
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {x.shape[i]} in dim {i} "
                f"and second has size {y.shape[j]} in dim {j}"
            )
    keep_a = [i for i in range(x.ndim) if i not in left]
    keep_b = [j for j in range(y.ndim) if j not in right]
    depth = math.prod([x.shape[i] for i in left])
    rows = math.prod([x.shape[i] for i in keep_a])
    columns = math.prod([y.shape[j] for j in keep_b])
    product = matmul(
        a.permute(*keep_a, *left).reshape(rows, depth),
        b.permute(*right, *keep_b).reshape(depth, columns),
    )
    return product.reshape([*[x.shape[i] for i in keep_a], *[y.shape[j] for j in keep_b]])


def _listed(dims: Any) -> list[int]:
    return [int(dims)] if hasattr(dims, "__index__") else [int(each) for each in dims]


def kron(input: Any, other: Any) -> Any:
    """Return the Kronecker product: every element of `input` times all of `other`."""
    ndim = max(input._array.ndim, other._array.ndim)
    a = (1,) * (ndim - input._array.ndim) + input._array.shape
    b = (1,) * (ndim - other._array.ndim) + other._array.shape
    spread_a = [n for each in a for n in (each, 1)]
    spread_b = [n for each in b for n in (1, each)]
    product = input.reshape(spread_a) * other.reshape(spread_b)
    return product.reshape([m * n for m, n in zip(a, b, strict=True)])


def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """Return the cross product along `dim` (by default the first of length 3)."""
    shape = np.broadcast_shapes(input._array.shape, other._array.shape)
    if dim is None:
        where = next((i for i, n in enumerate(input._array.shape) if n == 3), None)
        if where is None:
            raise RuntimeError("no dimension of size 3 in input")
    else:
        where = axis(dim, len(shape))
    if input._array.shape[where] != 3 or other._array.shape[where] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {where} must have length 3. Got "
            f"{input._array.shape[where]} and {other._array.shape[where]}"
        )
    a, b = input.expand(*shape), other.expand(*shape)
    return roll(a, -1, where) * roll(b, -2, where) - roll(a, -2, where) * roll(b, -1, where)


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat @ vec)``."""
    product = mv(mat, vec) * alpha
    return product if beta == 0 else input * beta + product


def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * outer(vec1, vec2)``."""
    product = outer(vec1, vec2) * alpha
    return product if beta == 0 else input * beta + product


def chain_matmul(*matrices: Any) -> Any:
    """Return the product of matrices, from left to right."""
    return reduce(matmul, matrices)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """Return the p-norm of every row of `x1` (``(*, P, M)``) minus every row of `x2`.

    Shape ``(*, P, R)`` for `x2` of shape ``(*, R, M)``; takes P R M numbers of memory.
    """
    a, b = x1._array.shape, x2._array.shape
    if len(a) < 2 or len(b) < 2:
        which, shape = ("X1", a) if len(a) < 2 else ("X2", b)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {len(shape)}D")
    if a[-1] != b[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if not difference._array.shape[-1]:
        return wrap(np.zeros(difference._array.shape[:-1], difference._array.dtype))
    return difference.norm(p, -1)


ger = outer
