"""Adaptive pooling: the caller names the size of the result, the windows follow from it.

Window ``i`` of ``m`` over ``n`` elements covers ``floor(i*n/m)`` to ``ceil((i+1)*n/m)``; windows
may overlap and differ in length. Means are then two small matrix products, one per axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.autograd import wrap
from minitorch.ops import pool
from minitorch.ops._typing import Tensor
from minitorch.ops.precision import computed_in_float32

OutSize = int | None | Sequence[int | None]


def _bounds(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _sizes(output_size: OutSize, x: Tensor, dims: int, name: str) -> tuple[int, ...]:
    if x.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(x.shape)}"
        )
    wanted = tuple(output_size) if isinstance(output_size, Sequence) else (output_size,) * dims
    if len(wanted) != dims:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}")
    sizes = tuple(n if m is None else int(m) for m, n in zip(wanted, x.shape[-dims:], strict=True))
    if min(sizes) < 0:
        raise RuntimeError(f"{name}(): elements of output_size must be greater than or equal to 0")
    if 0 in x.shape[-dims:] and 0 not in sizes:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch "
            f"dimensions, but input has sizes {list(x.shape)}"
        )
    return sizes


def _averaging(size: int, count: int, like: Tensor) -> Tensor:
    """The ``(count, size)`` matrix whose product with a column is the pooled column."""
    matrix = np.zeros((count, size), like._array.dtype)
    for row, (start, stop) in zip(matrix, _bounds(size, count), strict=True):
        row[start:stop] = 1 / (stop - start)
    return wrap(matrix)


@computed_in_float32
def _adaptive_avg(x: Tensor, output_size: OutSize, dims: int, name: str) -> Tensor:
    sizes = _sizes(output_size, x, dims, name)
    if all(m == 1 for m in sizes):
        return x.mean(tuple(range(-dims, 0)), keepdim=True)
    if all(m > 0 and n % m == 0 for n, m in zip(x.shape[-dims:], sizes, strict=True)):
        kernel = tuple(n // m for n, m in zip(x.shape[-dims:], sizes, strict=True))
        return (pool.avg_pool1d if dims == 1 else pool.avg_pool2d)(x, kernel)
    out = x @ _averaging(x.shape[-1], sizes[-1], x).transpose(0, 1)
    return out if dims == 1 else _averaging(x.shape[-2], sizes[0], x) @ out


def adaptive_avg_pool1d(input: Tensor, output_size: OutSize) -> Tensor:
    """Mean over ``output_size`` windows that share out ``(N, C, L)`` or ``(C, L)``."""
    return _adaptive_avg(input, output_size, 1, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(input: Tensor, output_size: OutSize) -> Tensor:
    """Mean over windows that share out ``(N, C, H, W)`` or ``(C, H, W)``.

    An entry of `output_size` that is None keeps the input's size along that axis.
    """
    return _adaptive_avg(input, output_size, 2, "adaptive_avg_pool2d")


def _adaptive_max(
    x: Tensor, output_size: OutSize, return_indices: bool, dims: int, name: str
) -> Any:
    sizes = _sizes(output_size, x, dims, name)
    array = x._array if dims == 2 else x._array[..., None, :]
    rows, columns = (1, *sizes) if dims == 1 else sizes
    height, width = array.shape[-2:]
    lead = array.shape[:-2]
    index = np.empty((*lead, rows, columns), np.int64)
    for i, (top, bottom) in enumerate(_bounds(height, rows)):
        for j, (left, right) in enumerate(_bounds(width, columns)):
            window = array[..., top:bottom, left:right].reshape(
                *lead, (bottom - top) * (right - left)
            )
            a, b = np.divmod(window.argmax(axis=-1), right - left)
            index[..., i, j] = (top + a) * width + left + b
    flat = wrap(index.reshape(*lead, rows * columns))
    values = x.reshape(*lead, height * width).gather(-1, flat).reshape(*lead, *sizes)
    return (values, flat.reshape(*lead, *sizes)) if return_indices else values


def adaptive_max_pool1d(input: Tensor, output_size: OutSize, return_indices: bool = False) -> Any:
    """Maximum over ``output_size`` windows that share out ``(N, C, L)`` or ``(C, L)``."""
    return _adaptive_max(input, output_size, return_indices, 1, "adaptive_max_pool1d")


def adaptive_max_pool2d(input: Tensor, output_size: OutSize, return_indices: bool = False) -> Any:
    """Maximum over windows that share out ``(N, C, H, W)`` or ``(C, H, W)``."""
    return _adaptive_max(input, output_size, return_indices, 2, "adaptive_max_pool2d")
