"""The array kernels of pooling.

Looping over the few positions inside a window, with one strided view of the whole batch for each,
replaces looping over the many windows. The differentiable functions are in `pool.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minitorch.ops._arguments import quiet, widen
from minitorch.ops._windows import Pads, padded, shifted


class PoolSpec(NamedTuple):
    """The constants of a pooling, always in two dimensions."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: Pads  # the right-hand pads already include what ceil_mode adds
    dilation: tuple[int, int]
    out: tuple[int, int]


def _frame_shape(shape: tuple[int, ...], pads: Pads) -> tuple[int, ...]:
    return (*shape[:-2], shape[-2] + sum(pads[0]), shape[-1] + sum(pads[1]))


def _cropped(framed: np.ndarray, shape: tuple[int, ...], pads: Pads) -> np.ndarray:
    top, left = pads[0][0], pads[1][0]
    if framed.shape == shape:
        return framed
    return np.ascontiguousarray(framed[..., top : top + shape[-2], left : left + shape[-1]])


@quiet
def max_array(
    x: np.ndarray, spec: PoolSpec, want_winners: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Maxima, and for each the position inside its window of the first element attaining it."""
    lowest = -np.inf if x.dtype.kind not in "iub" else np.iinfo(x.dtype).min
    xp = padded(x, spec.pads, lowest)
    views = list(shifted(xp, *spec[:2], spec.dilation, spec.out))
    best = views[0].copy()
    if not want_winners:
        for view in views[1:]:
            np.maximum(best, view, out=best)
        return best, None
    winner = np.zeros(best.shape, np.uint8 if len(views) <= 256 else np.int32)
    for k, view in enumerate(views[1:], 1):
        candidate = np.ascontiguousarray(view)  # read twice, and contiguous reads are vectorised
        # Only a strictly greater element takes over, so that the first of equals wins; as k grows,
        # the latest taker is the largest number.
        np.maximum(winner, np.multiply(candidate > best, k, dtype=winner.dtype), out=winner)
        np.maximum(best, candidate, out=best)
    if best.dtype.kind not in "iub" and np.isnan(best).any():
        for k, view in enumerate(views):
            winner[np.isnan(view)] = k
    if any(spec.pads[0] + spec.pads[1]):
        _leave_padding(winner, best, lowest, spec)
    return best, winner


def _starts(spec: PoolSpec, axis: int) -> np.ndarray:
    """Where each window starts along an axis of the unpadded image (negative: in the padding)."""
    return np.arange(spec.out[axis]) * spec.stride[axis] - spec.pads[axis][0]


def _leave_padding(winner: np.ndarray, best: np.ndarray, lowest: float, spec: PoolSpec) -> None:
    """Move winners that sit in the padding (no real element exceeds it) to the first real one."""
    first = [-(np.minimum(_starts(spec, axis), 0) // spec.dilation[axis]) for axis in (0, 1)]
    position = first[0][:, None] * spec.kernel[1] + first[1]
    np.copyto(winner, position.astype(winner.dtype), where=best == lowest)


def flat_indices(winner: np.ndarray, width: int, spec: PoolSpec) -> np.ndarray:
    """Winners as flat int64 indices into their image, as ``return_indices=True`` gives them."""
    a, b = np.divmod(winner.astype(np.int64), spec.kernel[1])
    rows = _starts(spec, 0)[:, None] + a * spec.dilation[0]
    return rows * width + _starts(spec, 1) + b * spec.dilation[1]


@quiet
def scatter_array(
    g: np.ndarray, winner: np.ndarray, shape: tuple[int, ...], spec: PoolSpec
) -> np.ndarray:
    """Send each window's value to its winner: the gradient of the maximum."""
    dtype, g = g.dtype, widen(g)
    out = np.zeros(_frame_shape(shape, spec.pads), g.dtype)
    reach = [d * (k - 1) for d, k in zip(spec.dilation, spec.kernel, strict=True)]
    disjoint = all(s > r for s, r in zip(spec.stride, reach, strict=True))
    # A product with the mask is fastest, but 0 * inf would put nans where nothing won.
    finite = bool(np.isfinite(g.sum()))
    views = shifted(out, *spec[:2], spec.dilation, spec.out)
    for k, view in enumerate(views):
        mine = winner == k
        if not finite:
            np.add(view, g, out=view, where=mine)
        elif disjoint:
            np.multiply(g, mine, out=view)
        else:
            view += g * mine
    return _cropped(out, shape, spec.pads).astype(dtype, copy=False)


def gather_array(x: np.ndarray, winner: np.ndarray, spec: PoolSpec) -> np.ndarray:
    """Read each window's winner: the transpose of `scatter_array`."""
    out = np.zeros(winner.shape, x.dtype)
    views = shifted(padded(x, spec.pads), *spec[:2], spec.dilation, spec.out)
    for k, view in enumerate(views):
        np.copyto(out, view, where=winner == k)
    return out


@quiet
def mean_array(x: np.ndarray, divisor: np.ndarray, spec: PoolSpec) -> np.ndarray:
    dtype = x.dtype
    x = widen(x)
    views = shifted(padded(x, spec.pads), *spec[:2], spec.dilation, spec.out)
    total = next(views).copy()
    for view in views:
        total += view
    return np.divide(total, divisor.astype(x.dtype), out=total).astype(dtype, copy=False)


@quiet
def spread_array(
    g: np.ndarray, divisor: np.ndarray, shape: tuple[int, ...], spec: PoolSpec
) -> np.ndarray:
    """Share each window's value among its elements: the transpose of `mean_array`."""
    dtype, g = g.dtype, widen(g)
    share = (g / divisor).astype(g.dtype, copy=False)
    out = np.zeros(_frame_shape(shape, spec.pads), g.dtype)
    for view in shifted(out, *spec[:2], spec.dilation, spec.out):
        view += share
    return _cropped(out, shape, spec.pads).astype(dtype, copy=False)
