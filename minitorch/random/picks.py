"""Choosing among indices, in PyTorch's order of consumption: permutations and multinomial draws.

A permutation is Fisher-Yates from the front, one 32-bit word per swap. A multinomial draw without
replacement (or of a single index) is an exponential race, one double per category; with replacement
it looks one double per draw up in the cumulative weights.
"""

from __future__ import annotations

import numpy as np

from .mt19937 import MersenneStream
from .streams import exponential, unit_doubles

__all__ = ["check_weights", "multinomial", "permutation"]


def permutation(stream: MersenneStream, n: int) -> np.ndarray:
    """A random permutation of ``0 .. n-1`` (int64)."""
    if n >= (2**32 - 1) // 20:
        return _permutation_wide(stream, n)
    order = list(range(n))
    if n > 1:
        # All offsets in one go; only the swaps are sequential, and those run on a plain list.
        offsets = (stream.words(n - 1) % np.arange(n, 1, -1, dtype=np.uint32)).tolist()
        for i, offset in enumerate(offsets):
            j = i + offset
            order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.int64)


def _permutation_wide(stream: MersenneStream, n: int) -> np.ndarray:
    """The variant for ``n`` above 214 million: 64-bit words, growing the permutation."""
    order = np.empty(n, dtype=np.int64)
    block = 1 << 20
    for start in range(0, n, block):
        stop = min(n, start + block)
        places = stream.words64(stop - start) % np.arange(start + 1, stop + 1, dtype=np.uint64)
        for i, j in enumerate(places.tolist(), start):
            order[i] = i
            order[i] = order[j]
            order[j] = i
    return order


def check_weights(weights: np.ndarray, samples: int, replacement: bool) -> None:
    """Raise, in PyTorch's words, where :func:`multinomial` cannot draw."""
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype.kind not in "fV":
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {weights.dtype}"
        )
    if samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    values = weights.astype(np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (values.sum(axis=-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def multinomial(
    stream: MersenneStream, weights: np.ndarray, samples: int, replacement: bool
) -> np.ndarray:
    """Indices drawn with probability proportional to ``weights`` along the last axis.

    ``weights`` is (categories,) or (rows, categories), floating, already validated.
    """
    rows = weights.reshape(-1, weights.shape[-1])
    compute = rows.dtype if rows.dtype.itemsize >= 4 else np.dtype(np.float32)
    if not replacement or samples == 1:
        # The exponential race: the smallest waiting time e/w wins. PyTorch compares w/e.
        race = exponential(stream, rows.shape, rows.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            race = rows / race
        if samples == 1:
            picked = np.argmax(race, axis=-1, keepdims=True)
        else:
            picked = np.argsort(-race.astype(compute), axis=-1, kind="stable")[:, :samples]
    else:
        picked = np.empty((rows.shape[0], samples), dtype=np.int64)
        for index, row in enumerate(rows):
            steps = np.cumsum(row.astype(compute), dtype=compute)
            steps /= steps[-1]
            steps[-1] = 1
            draws = unit_doubles(stream, samples)
            picked[index] = np.searchsorted(steps.astype(np.float64), draws, side="left")
    return picked.astype(np.int64).reshape((*weights.shape[:-1], samples))
