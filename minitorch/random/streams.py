"""Distributions over a generator, on plain NumPy arrays, in PyTorch's order of consumption.

Seeded scripts agree with PyTorch only if every distribution takes the *same number of words in the
same order*; that is what this file fixes, one function per distribution, whole arrays at a time:

=====================  =========================================================================
uniform                float32: 24 bits of one 32-bit word; float64: 53 bits of one 64-bit word
normal, < 16 values    Box-Muller on pairs of doubles, the second value kept for the next call
normal, >= 16 values   Box-Muller on blocks of 16: values 0-7 are radii, 8-15 angles; a ragged
                       tail redraws the *last 16* values
integers               word modulo range: 32 bits, or 64 if the range is at least 2**28
bernoulli              scalar p: a double < p; tensor p: a float32 < p (double for float64 p)
=====================  =========================================================================

float16 and bfloat16 draw in float32 and round. Integers and uniforms agree with PyTorch bit for
bit, normals up to the last bit of ``log``, ``sin`` and ``cos``. Scalar ``bernoulli`` follows
PyTorch's portable path (its Intel-only MKL path uses another generator and agrees with nobody).

``picks.py`` holds what chooses among indices (permutations, multinomial draws). Every function
takes a :class:`~minitorch.random.mt19937.MersenneStream` first.
"""

from __future__ import annotations

import math

import numpy as np

from .mt19937 import MersenneStream

__all__ = [
    "bernoulli",
    "bernoulli_scalar",
    "cauchy",
    "exponential",
    "geometric",
    "integers",
    "integers_default",
    "log_normal",
    "normal",
    "uniform",
    "unit_doubles",
]

Shape = tuple[int, ...]

_MASK24 = np.uint32(2**24 - 1)
_MASK53 = np.uint64(2**53 - 1)


def _count(shape: Shape) -> int:
    return math.prod(shape)


def _unit32(stream: MersenneStream, count: int) -> np.ndarray:
    """``count`` float32 values in [0, 1)."""
    words = stream.words(count)
    words &= _MASK24
    unit = words.view(np.float32)  # the same memory: less to fetch
    unit[...] = words.view(np.int32)  # signed integers are the faster ones to convert
    unit *= np.float32(2.0**-24)
    return unit


def unit_doubles(stream: MersenneStream, count: int) -> np.ndarray:
    """``count`` float64 values in [0, 1)."""
    words = stream.words64(count)
    words &= _MASK53
    unit = words.astype(np.float64)
    unit *= 2.0**-53
    return unit


def uniform(
    stream: MersenneStream, shape: Shape, dtype: np.dtype, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Values in [low, high), of a floating dtype."""
    dtype = np.dtype(dtype)
    count = _count(shape)
    if dtype == np.float64:
        values = unit_doubles(stream, count)
        if low != 0.0 or high != 1.0:
            values = _fused_multiply_add(values, high - low, low)
    else:
        values = _unit32(stream, count)
        if low != 0.0 or high != 1.0:
            low32, high32 = np.float32(low), np.float32(high)
            # PyTorch's kernel is compiled to one fused multiply-add: round once, not twice.
            # The float64 product of two float32 is exact, so float64 gives that rounding.
            wide = values.astype(np.float64)
            wide *= np.float64(high32 - low32)
            wide += np.float64(low32)
            values = wide.astype(np.float32)
        values = values.astype(dtype, copy=False)
    if dtype.itemsize < 4 or low != 0.0 or high != 1.0:
        # Rounding may reach the open end; PyTorch folds that onto the closed one.
        values[values == np.array(high, dtype=dtype)] = np.array(low, dtype=dtype)
    return values.reshape(shape)


def _fused_multiply_add(x: np.ndarray, scale: float, offset: float) -> np.ndarray:
    """``x * scale + offset`` in float64 with (all but always) a single rounding.

    Product and sum are each split into value and error (Dekker 1971, Knuth's two-sum); the errors
    are added back at the end.
    """
    product = x * scale
    split = 134217729.0  # 2**27 + 1
    high = split * x
    high -= high - x
    low = x - high
    scale_high = split * scale
    scale_high -= scale_high - scale
    scale_low = scale - scale_high
    error = ((high * scale_high - product) + high * scale_low + low * scale_high) + low * scale_low
    total = product + offset
    part = total - product
    error += (product - (total - part)) + (offset - part)
    return total + error


def normal(
    stream: MersenneStream,
    shape: Shape,
    dtype: np.dtype,
    mean: float = 0.0,
    std: float = 1.0,
    contiguous: bool = True,
) -> np.ndarray:
    """Normally distributed values of a floating dtype.

    ``contiguous=False`` asks for what PyTorch does on a strided destination: the scalar path at
    every size.
    """
    dtype = np.dtype(dtype)
    count = _count(shape)
    if count < 16 or not contiguous:
        values = _normal_pairs(stream, count)
        values *= std
        values += mean
        return values.astype(dtype).reshape(shape)
    unit = unit_doubles if dtype == np.float64 else _unit32
    whole = count - count % 16
    # PyTorch draws for the ragged rest too, only to overwrite it - but not in 16-bit types.
    values = unit(stream, count if dtype.itemsize >= 4 else whole)
    _box_muller_blocks(values[:whole], mean, std)
    if whole != count:
        if values.size != count:
            values = np.concatenate((values, np.empty(count - whole, dtype=values.dtype)))
        tail = values[-16:]
        tail[:] = unit(stream, 16)
        _box_muller_blocks(tail, mean, std)
    return values.astype(dtype, copy=False).reshape(shape)


def _box_muller_blocks(values: np.ndarray, mean: float, std: float) -> None:
    """Turn uniforms into normals in place; the length is a multiple of 16."""
    kind = values.dtype.type
    blocks = values.reshape(-1, 2, 8)
    radius = 1 - blocks[:, 0]
    np.log(radius, out=radius)
    radius *= kind(-2)
    np.sqrt(radius, out=radius)
    if std != 1.0:
        radius *= kind(std)
    angle = blocks[:, 1] * kind(2 * math.pi)
    np.cos(angle, out=blocks[:, 0])
    np.sin(angle, out=blocks[:, 1])
    blocks *= radius[:, None]
    if mean != 0.0:
        blocks += kind(mean)


def _normal_pairs(stream: MersenneStream, count: int) -> np.ndarray:
    """``count`` float64 normals from the scalar path, using and leaving a cached second value."""
    out = np.empty(count, dtype=np.float64)
    start = 0
    if count and stream.next_normal is not None:
        out[0] = stream.next_normal
        stream.next_normal = None
        start = 1
    pairs = (count - start + 1) // 2
    if pairs <= 0:
        return out
    unit = unit_doubles(stream, 2 * pairs).reshape(pairs, 2)
    angle = unit[:, 0] * (2 * math.pi)
    radius = np.sqrt(-2.0 * np.log1p(-unit[:, 1]))
    both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
    out[start:] = both[: count - start]
    if (count - start) % 2:
        stream.next_normal = float(both[-1])
    return out


def log_normal(
    stream: MersenneStream, shape: Shape, dtype: np.dtype, mean: float, std: float
) -> np.ndarray:
    """``exp`` of normal values; always the scalar path."""
    values = np.exp(_normal_pairs(stream, _count(shape)) * std + mean)
    return values.astype(dtype).reshape(shape)


def integers(
    stream: MersenneStream, shape: Shape, dtype: np.dtype, low: int, high: int
) -> np.ndarray:
    """Integers in [low, high); ``high = 2**63`` with ``low = -2**63`` is the full 64-bit range."""
    count = _count(shape)
    span = high - low
    if span >= 2**28:  # keep the modulo's bias small
        words = stream.words64(count)
    else:
        words = stream.words(count)
    if span < 2**64:
        # A power of two needs no division, and division is what this function costs.
        kind = words.dtype.type
        if span & (span - 1) == 0:
            words &= kind(span - 1)
        else:
            words %= kind(span)
    values = words.view(np.int64) if words.itemsize == 8 else words.astype(np.int64)
    if low and span < 2**64:
        values += np.int64(low)  # wraps around like PyTorch's unsigned addition
    return values.astype(dtype, copy=False).reshape(shape)


def integers_default(stream: MersenneStream, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """``random_()`` without bounds: all non-negative values of an integer dtype, or all the
    integers a floating dtype represents exactly.
    """
    dtype = np.dtype(dtype)
    count = _count(shape)
    if dtype == np.int64 or dtype == np.float64:
        words = stream.words64(count)
    else:
        words = stream.words(count)
    if dtype.kind == "b":
        return (words & words.dtype.type(1)).astype(dtype).reshape(shape)
    if dtype.kind in "iu":
        words &= words.dtype.type(np.iinfo(dtype).max)
    else:
        digits = {8: 53, 4: 24}.get(dtype.itemsize) or (11 if dtype == np.float16 else 8)
        words %= words.dtype.type(2**digits + 1)
    return words.astype(dtype).reshape(shape)


def bernoulli_scalar(stream: MersenneStream, shape: Shape, p: float) -> np.ndarray:
    """Booleans that are True with probability ``p`` (``Tensor.bernoulli_(p)``, dropout)."""
    return (unit_doubles(stream, _count(shape)) < p).reshape(shape)


def bernoulli(stream: MersenneStream, p: np.ndarray) -> np.ndarray:
    """Booleans that are True with the probabilities in ``p`` (``torch.bernoulli(p)``)."""
    if p.dtype == np.float64:
        return unit_doubles(stream, p.size).reshape(p.shape) < p
    return _unit32(stream, p.size).reshape(p.shape) < p.astype(np.float32, copy=False)


def exponential(
    stream: MersenneStream, shape: Shape, dtype: np.dtype, rate: float = 1.0
) -> np.ndarray:
    """Exponentially distributed values with the given rate (PyTorch's ``lambd``)."""
    unit = unit_doubles(stream, _count(shape))
    np.negative(unit, out=unit)
    np.log1p(unit, out=unit)
    unit *= -1.0 / rate
    return unit.astype(dtype).reshape(shape)


def geometric(stream: MersenneStream, shape: Shape, dtype: np.dtype, p: float) -> np.ndarray:
    """Number of trials up to and including the first success."""
    values = np.ceil(np.log(unit_doubles(stream, _count(shape))) / math.log1p(-p))
    return values.astype(dtype).reshape(shape)


def cauchy(
    stream: MersenneStream, shape: Shape, dtype: np.dtype, median: float, sigma: float
) -> np.ndarray:
    """Cauchy distributed values."""
    # The pole of the tangent is cut off at the spacing of doubles around 1, as PyTorch does.
    unit = np.clip(
        unit_doubles(stream, _count(shape)), np.finfo(float).eps, 1 - np.finfo(float).eps
    )
    return (median + sigma * np.tan(math.pi * (unit - 0.5))).astype(dtype).reshape(shape)
