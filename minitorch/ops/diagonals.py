"""Diagonals and triangles of matrices; ``diagonal`` is a view."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.lib.stride_tricks import as_strided

from minitorch.autograd.graph import Node
from minitorch.autograd.inplace import record_view
from minitorch.ops.axes import axis
from minitorch.ops.generic import linear_pair
from minitorch.ops.joining import cat, pad_constant

# -- triangles -----------------------------------------------------------------------------------


_tril, _ = linear_pair(np.tril, np.tril, "TrilBackward0")
_triu, _ = linear_pair(np.triu, np.triu, "TriuBackward0")


def tril(input: Any, diagonal: int = 0) -> Any:
    """Return the lower triangle of the last two dimensions, zeros elsewhere."""
    if input._array.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return _tril(input, diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """Return the upper triangle of the last two dimensions, zeros elsewhere."""
    if input._array.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return _triu(input, diagonal)


# -- diagonals -----------------------------------------------------------------------------------


def _diagonal_array(x: ndarray, ctx: tuple) -> ndarray:
    """Return the view; NumPy's own is read-only, which a tensor's must not be."""
    _, offset, a, b = ctx
    steps, lengths = x.strides, x.shape
    down, across = max(-offset, 0), max(offset, 0)
    n = max(min(lengths[a] - down, lengths[b] - across), 0)
    corner: list[Any] = [slice(None)] * x.ndim
    if n:
        corner[a], corner[b] = slice(down, None), slice(across, None)
    rest = [i for i in range(x.ndim) if i not in (a, b)]
    return as_strided(
        x[tuple(corner)],
        (*[lengths[i] for i in rest], n),
        (*[steps[i] for i in rest], steps[a] + steps[b]),
        writeable=x.flags.writeable,
    )


def _on_diagonal_array(grad: ndarray, ctx: tuple) -> ndarray:
    out = np.zeros(ctx[0], grad.dtype)
    _diagonal_array(out, ctx)[...] = grad
    return out


_take, _put = linear_pair(
    _diagonal_array, _on_diagonal_array, "DiagonalBackward0", "DiagonalBackwardBackward0"
)
_embed, _ = linear_pair(_on_diagonal_array, _diagonal_array, "DiagEmbedBackward0")


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonal of two dimensions as the last one, as a view.

    A positive `offset` is above the main diagonal, a negative one below.
    """
    x = input._array
    a, b = axis(dim1, x.ndim), axis(dim2, x.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    ctx = (x.shape, offset, a, b)
    return record_view(
        _diagonal_array(x, ctx), diagonal_backward, input, ctx, diagonal, (offset, a, b)
    )


def diagonal_backward(node: Node, grad: Any) -> tuple:
    return (_put(grad, node.ctx),)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices, in dimensions `dim1` and `dim2`, with the last dimension on a diagonal."""
    lengths = input._array.shape
    ndim = len(lengths) + 1
    a, b = axis(dim1, ndim), axis(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = lengths[-1] + abs(offset)
    rest = iter(lengths[:-1])
    shape = tuple([n if i in (a, b) else next(rest) for i in range(ndim)])
    return _embed(input, (shape, offset, a, b))


_diagonal = diagonal  # `diag` has an argument of that name


def diag(input: Any, diagonal: int = 0) -> Any:
    """Return a copy of a matrix's diagonal, or the matrix that has a vector as its diagonal."""
    ndim = input._array.ndim
    if ndim == 2:
        return _diagonal(input, diagonal).clone()
    if ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return diag_embed(input, diagonal)


def diagflat(input: Any, offset: int = 0) -> Any:
    """Return the matrix with all elements of `input` on a diagonal."""
    return diag_embed(input.reshape(-1), offset)


def block_diag(*tensors: Any) -> Any:
    """Return the matrix with the given ones (numbers, vectors as rows) along its diagonal."""
    rows = [each.reshape(1, -1) if each._array.ndim < 2 else each for each in tensors]
    for each in rows:
        if each._array.ndim > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions.")
    width = sum([each._array.shape[1] for each in rows])
    strips, done = [], 0
    for each in rows:
        rest = width - done - each._array.shape[1]
        strips.append(pad_constant(each, (done, rest)))
        done += each._array.shape[1]
    return cat(strips, 0)


def trace(input: Any) -> Any:
    """Return the sum of a matrix's diagonal."""
    if input._array.ndim != 2:
        raise RuntimeError("trace: expected a matrix")
    return _diagonal(input).sum()
