"""Moving and repeating elements: flip, roll, triangles, repeat, diagonals, grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import wrap
from minitorch.ops import generic, shape
from minitorch.ops.axes import axis, sizes
from minitorch.ops.generic import linear_pair


def _flip_array(x: ndarray, ctx: tuple) -> ndarray:
    return np.flip(x, ctx).copy()


_flip, _ = linear_pair(_flip_array, _flip_array, "FlipBackward0")


def flip(input: Any, *dims: Any) -> Any:
    """Return a copy with the order along `dims` reversed."""
    ndim = input._array.ndim
    return _flip(input, tuple([axis(each, ndim) for each in sizes(dims)] if ndim else []))


def fliplr(input: Any) -> Any:
    """Reverse the second dimension."""
    return flip(input, 1)


def flipud(input: Any) -> Any:
    """Reverse the first dimension."""
    return flip(input, 0)


def _roll_array(x: ndarray, ctx: tuple) -> ndarray:
    shifts, dims = ctx
    return np.roll(x, shifts, dims)


def _unroll_array(x: ndarray, ctx: tuple) -> ndarray:
    shifts, dims = ctx
    back = -shifts if isinstance(shifts, int) else tuple([-each for each in shifts])
    return np.roll(x, back, dims)


_roll, _ = linear_pair(_roll_array, _unroll_array, "RollBackward0")


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Return a copy with elements moved along `dims` (or the flattened tensor), wrapping around."""
    if dims is not None:
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        if len(dims) != len(shifts):
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
            )
    elif not isinstance(shifts, int):
        (shifts,) = shifts
    return _roll(input, (shifts, dims))


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


# -- repeat --------------------------------------------------------------------------------------


def repeat(input: Any, *repeats: Any) -> Any:
    """Return copies side by side: ``repeats[i]`` along dimension i."""
    times = sizes(repeats)
    lengths = input._array.shape
    extra = len(times) - len(lengths)
    if extra < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    lengths = (1,) * extra + lengths
    spread = [n for pair in zip(times, lengths, strict=True) for n in pair]
    separate = [n for each in lengths for n in (1, each)]
    grown = shape.expand(shape.reshape(input, separate), spread)
    return shape.reshape(
        shape.contiguous(grown), [a * b for a, b in zip(times, lengths, strict=True)]
    )


def tile(input: Any, *dims: Any) -> Any:
    """Like :func:`repeat`, with missing leading repeats taken as 1."""
    times = sizes(dims)
    return repeat(input, (1,) * (input._array.ndim - len(times)) + times)


def repeat_interleave(input: Any, repeats: Any, dim: int | None = None) -> Any:
    """Return each element (or slice along `dim`) repeated in place."""
    if dim is None:
        input, dim = shape.reshape(input, -1), 0
    where = axis(dim, input._array.ndim)
    index = np.repeat(np.arange(input._array.shape[where]), generic.raw(repeats))
    return input.index_select(where, wrap(index))


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonal of two dimensions as the last one."""
    x = input._array
    a, b = axis(dim1, x.ndim), axis(dim2, x.ndim)
    rest = [i for i in range(x.ndim) if i not in (a, b)]
    moved = shape.permute(input, [*rest, a, b])
    rows, columns = moved._array.shape[-2:]
    start = (max(-offset, 0), max(offset, 0))
    n = max(min(rows - start[0], columns - start[1]), 0)
    steps = np.arange(n)
    return moved[(..., wrap(start[0] + steps), wrap(start[1] + steps))]


_diagonal = diagonal  # `diag` has an argument of that name


def diag(input: Any, diagonal_: int = 0, *, diagonal: int | None = None) -> Any:
    """Return a matrix's diagonal, or the matrix that has a vector as its diagonal."""
    offset = diagonal_ if diagonal is None else diagonal
    x = input._array
    if x.ndim == 2:
        return _diagonal(input, offset)
    if x.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    n = x.shape[0] + abs(offset)
    steps = np.arange(x.shape[0])
    zero = wrap(np.zeros((n, n), x.dtype))
    zero[(wrap(steps + max(-offset, 0)), wrap(steps + max(offset, 0)))] = input
    return zero


def trace(input: Any) -> Any:
    """Return the sum of a matrix's diagonal."""
    return _diagonal(input).sum()


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple:
    """Return the coordinate grids of 1-d tensors, as expanded views."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    lengths = [each._array.size for each in tensors]
    grids = []
    for i, each in enumerate(tensors):
        view = [1] * len(lengths)
        view[i] = lengths[i]
        grids.append(shape.expand(shape.reshape(each, view), lengths))
    if indexing == "xy" and len(grids) > 1:
        grids = [shape.transpose(grid, 0, 1) for grid in grids]
    return tuple(grids)
