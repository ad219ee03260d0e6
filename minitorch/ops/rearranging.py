"""Moving and repeating elements: flip, roll, repeat, grids. Diagonals are in `diagonals.py`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import wrap
from minitorch.ops import generic, shape
from minitorch.ops.axes import axis, sizes_or
from minitorch.ops.generic import linear_pair
from minitorch.ops.joining import stack


def _flip_array(x: ndarray, ctx: tuple) -> ndarray:
    return np.flip(x, ctx).copy()


_flip, _ = linear_pair(_flip_array, _flip_array, "FlipBackward0")


def flip(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Return a copy with the order along `dims` reversed."""
    ndim = input._array.ndim
    over = sizes_or(axes, dims, "dims")
    return _flip(input, tuple([axis(each, ndim) for each in over] if ndim else []))


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


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Return `input` turned `k` times by 90 degrees, from the first of `dims` to the second."""
    ndim = input._array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = (axis(each, ndim) for each in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    turns = k % 4
    if turns == 0:
        return input.clone()
    if turns == 2:
        return flip(input, first, second)
    return flip(input.transpose(first, second), first if turns == 1 else second)


# -- repeat --------------------------------------------------------------------------------------


def repeat(input: Any, *sizes: Any, repeats: Any = None) -> Any:
    """Return copies side by side: ``repeats[i]`` along dimension i."""
    times = sizes_or(sizes, repeats, "repeats")
    lengths = input._array.shape
    extra = len(times) - len(lengths)
    if extra < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    if min(times, default=0) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension: repeats {list(times)}"
        )
    lengths = (1,) * extra + lengths
    spread = [n for pair in zip(times, lengths, strict=True) for n in pair]
    separate = [n for each in lengths for n in (1, each)]
    grown = shape.expand(shape.reshape(input, separate), spread)
    return shape.reshape(
        shape.contiguous(grown), [a * b for a, b in zip(times, lengths, strict=True)]
    )


def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Like :func:`repeat`, with missing leading repeats taken as 1."""
    times = sizes_or(sizes, dims, "dims")
    return repeat(input, (1,) * (input._array.ndim - len(times)) + times)


def repeat_interleave(input: Any, repeats: Any, dim: int | None = None) -> Any:
    """Return each element (or slice along `dim`) repeated in place."""
    if dim is None:
        input, dim = shape.reshape(input, -1), 0
    where = axis(dim, input._array.ndim)
    if np.any(np.less(generic.raw(repeats), 0)):
        raise RuntimeError("Repeats must be non-negative")
    index = np.repeat(np.arange(input._array.shape[where]), generic.raw(repeats))
    return input.index_select(where, wrap(index))


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of one element of each 1-d tensor, as rows."""
    for each in tensors:
        if each._array.ndim != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(list(each._array.shape)))
    if len(tensors) == 1:
        return tensors[0]
    return stack([grid.reshape(-1) for grid in meshgrid(*tensors)], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return the subsets of `r` elements of a 1-d tensor, as rows, in lexicographic order."""
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input._array.size), r)), np.int64).reshape(-1, r)
    return input[wrap(rows)]


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple:
    """Return the coordinate grids of 1-d tensors, as expanded views."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    lengths = [each._array.size for each in tensors]
    grids = []
    for i, each in enumerate(tensors):
        view = [1] * len(lengths)
        view[i] = lengths[i]
        grids.append(shape.expand(shape.reshape(each, view), lengths))
    if indexing == "xy" and len(grids) > 1:
        grids = [shape.transpose(grid, 0, 1) for grid in grids]
    return tuple(grids)
