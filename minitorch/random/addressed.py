"""Addressed randomness: draws that depend on *where* they are used, not on when.

A compression method that flips a coin per gradient element must not disturb ``manual_seed``'s
stream, must give every rank the same shared draw, and must give the same draw when a run is resumed
or buckets are processed in another order. So its numbers come from a counter-based generator,
Philox-4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a keyed
function from a counter to random bits, with no state to advance.

The address is ``(seed, step, stream, element)``: ``stream`` is an integer (say the bucket) or up to
three (bucket, rank, purpose). Element ``i`` of a draw is the same number whether it is drawn
alone (``offset=i``) or as part of a larger array.
"""

from __future__ import annotations

import operator

import numpy as np

__all__ = [
    "addressed_bits",
    "addressed_integers",
    "addressed_normal",
    "addressed_permutation",
    "addressed_uniform",
]

_WORDS_PER_BLOCK = 4  # Philox-4x64 turns one counter value into four 64-bit words


def addressed_bits(
    seed: int, step: int, stream: int | tuple[int, ...], n: int, *, offset: int = 0
) -> np.ndarray:
    """``n`` random 64-bit words for elements ``offset .. offset+n-1`` of an address.

    Parameters
    ----------
    seed : int
        The run's seed; every integer is taken modulo 2**64.
    step : int
        The training step (or any other time).
    stream : int or tuple of int
        What the draw is for: one to three integers, each modulo 2**64.
    n : int
        Number of elements.
    offset : int, optional
        First element.

    Returns
    -------
    numpy.ndarray
        uint64, shape (n,).
    """
    if n < 0 or offset < 0:
        raise ValueError(f"n and offset must not be negative, got n={n}, offset={offset}")
    parts = (stream,) if not isinstance(stream, tuple) else stream
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"stream must be one to three integers, got {len(parts)}")
    # A tuple and its zero-padded twin must differ, and 64 bits each leave no room for a length;
    # the element counter does: no array has 2**56 elements, so its top byte says the length.
    first, second, third = (operator.index(p) % 2**64 for p in (*parts, 0, 0)[:3])
    block, skip = divmod(offset, _WORDS_PER_BLOCK)
    counter = [block | (len(parts) << 56), operator.index(step) % 2**64, second, third]
    philox = np.random.Philox(
        key=np.array([operator.index(seed) % 2**64, first], dtype=np.uint64),
        counter=np.array(counter, dtype=np.uint64),
    )
    return philox.random_raw(skip + n)[skip:]


def addressed_uniform(
    seed: int,
    step: int,
    stream: int | tuple[int, ...],
    n: int,
    *,
    offset: int = 0,
    dtype: np.dtype | type = np.float32,
) -> np.ndarray:
    """Uniform values in [0, 1), shape (n,), float32 (24 random bits) or float64 (53).

    Two float32 elements share a word. The arguments are those of :func:`addressed_bits`.
    """
    dtype = np.dtype(dtype)
    if dtype == np.float64:
        words = addressed_bits(seed, step, stream, n, offset=offset)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    if dtype != np.float32:
        raise TypeError(f"addressed_uniform draws float32 or float64, not {dtype}")
    halves = _half_words(seed, step, stream, n, offset)
    values = (halves >> np.uint32(8)).astype(np.float32)
    values *= np.float32(2.0**-24)
    return values


def _half_words(
    seed: int, step: int, stream: int | tuple[int, ...], n: int, offset: int
) -> np.ndarray:
    """``n`` random uint32, two to a 64-bit word, low half first on every machine."""
    word, skip = divmod(offset, 2)
    words = addressed_bits(seed, step, stream, (skip + n + 1) // 2, offset=word)
    return words.astype("<u8", copy=False).view("<u4")[skip : skip + n]


def addressed_normal(
    seed: int,
    step: int,
    stream: int | tuple[int, ...],
    n: int,
    *,
    offset: int = 0,
    dtype: np.dtype | type = np.float32,
) -> np.ndarray:
    """Standard normal values, shape (n,): Box-Muller in float64, two 32-bit halves per value.

    The arguments are those of :func:`addressed_bits`.
    """
    halves = _half_words(seed, step, stream, 2 * n, 2 * offset).astype(np.float64)
    # The half-step keeps the logarithm away from zero.
    radius = np.sqrt(-2.0 * np.log((halves[0::2] + 0.5) * 2.0**-32))
    return (radius * np.cos(2 * np.pi * 2.0**-32 * halves[1::2])).astype(dtype)


def addressed_integers(
    seed: int, step: int, stream: int | tuple[int, ...], n: int, high: int, *, offset: int = 0
) -> np.ndarray:
    """Integers in [0, high), shape (n,), int64; the modulo's bias is below ``high / 2**64``."""
    if not 0 < high <= 2**63:
        raise ValueError(f"high must be in [1, 2**63], got {high}")
    words = addressed_bits(seed, step, stream, n, offset=offset)
    return (words % np.uint64(high)).astype(np.int64)


def addressed_permutation(
    seed: int, step: int, stream: int | tuple[int, ...], n: int
) -> np.ndarray:
    """A random permutation of ``0 .. n-1`` (int64): the order of ``n`` random words."""
    return np.argsort(addressed_bits(seed, step, stream, n), kind="stable")
