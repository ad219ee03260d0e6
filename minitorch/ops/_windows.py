"""Sliding windows over images: the index arithmetic that convolution and pooling share.

Everything here works on NumPy arrays of shape ``(..., H, W)``; one-dimensional signals are images
of height one. Where the windows are used: `conv.py` (windows become columns of a matrix product)
and `pool.py` (windows are reduced).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

Pads = tuple[tuple[int, int], tuple[int, int]]


def pair(value: int | Sequence[int], what: str, dims: int) -> tuple[int, int]:
    """Expand an int or a sequence to ``(vertical, horizontal)``.

    For ``dims == 1`` the vertical entry is filled with the neutral value of `what`: 0 for
    paddings, 1 for everything else.
    """
    entries = (value,) * dims if isinstance(value, (int, np.integer)) else tuple(value)
    if len(entries) == 1:
        entries = entries * dims
    if len(entries) != dims:
        raise RuntimeError(
            f"expected {what} to be a single integer value or a list of {dims} "
            f"values to match the convolution dimensions, but got {what}="
            f"{list(entries)}"
        )
    if dims == 1:
        entries = (0 if "padding" in what else 1, *entries)
    return int(entries[0]), int(entries[1])


def lift(array: np.ndarray) -> np.ndarray:
    """View a batch of signals ``(N, C, L)`` as images ``(N, C, 1, L)``; leave images alone."""
    return array[:, :, None, :] if array.ndim == 3 else array


def out_length(
    size: int,
    kernel: int,
    stride: int,
    pad: tuple[int, int],
    dilation: int,
    ceil_mode: bool = False,
) -> int:
    """Number of windows along one axis; a window may not start inside the right padding."""
    span = size + pad[0] + pad[1] - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    count = -(-span // stride) + 1
    return count - 1 if (count - 1) * stride >= size + pad[0] else count


def padded(x: np.ndarray, pads: Pads, fill: float = 0) -> np.ndarray:
    """Contiguous copy of `x` with a frame of `fill`; negative pads crop. No copy if not needed."""
    if not any(pads[0] + pads[1]):
        return np.ascontiguousarray(x)
    (top, bottom), (left, right) = pads
    *lead, h, w = x.shape
    out = np.full((*lead, h + top + bottom, w + left + right), fill, dtype=x.dtype)
    rows, cols = slice(max(-top, 0), h - max(-bottom, 0)), slice(max(-left, 0), w - max(-right, 0))
    inner = x[..., rows, cols]
    top, left = max(top, 0), max(left, 0)
    out[..., top : top + inner.shape[-2], left : left + inner.shape[-1]] = inner
    return out


def shifted(
    xp: np.ndarray,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    out: tuple[int, int],
) -> Iterator[np.ndarray]:
    """One strided view of `xp` per kernel position, in row-major order.

    View ``k`` holds, for every window, the element at kernel position ``k``: looping over the few
    kernel positions replaces looping over the many windows.
    """
    for a in range(kernel[0]):
        top = a * dilation[0]
        for b in range(kernel[1]):
            left = b * dilation[1]
            yield xp[
                ...,
                top : top + (out[0] - 1) * stride[0] + 1 : stride[0],
                left : left + (out[1] - 1) * stride[1] + 1 : stride[1],
            ]
