"""The array kernels of convolution: windows become the columns of a matrix product.

Two things make it fast. Columns are built for a few samples at a time, so that they stay in the
cache and are rebuilt in backward instead of being kept. And with stride 1 the windows of an image
overlap so regularly that a row of the column matrix is one contiguous run of the padded image: it
is copied in one piece, at the price of a few columns that straddle two image rows and are dropped.

The differentiable functions over these kernels are in `conv.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from minitorch.ops._arguments import quiet, widen
from minitorch.ops._windows import Pads, lift, padded, shifted

# Elements of the per-chunk column and result buffers together: about a megabyte of float32.
_CHUNK_ELEMENTS = 1 << 18


class ConvSpec(NamedTuple):
    """The constants of a convolution, always in two dimensions."""

    stride: tuple[int, int]
    pads: Pads
    dilation: tuple[int, int]
    groups: int


class _Columns:
    """The windows of a padded image as a ``(N, G, C/G*kh*kw, span)`` stack of column matrices.

    Attributes
    ----------
    view : ndarray
        Overlapping view of the image, ``(N, G, C/G, kh, kw, *span axes)``.
    row, span : int
        A result row holds `row` columns of which the first ``out[1]`` are wanted; there are
        `span` columns in all (the last row is cut short).
    """

    def __init__(self, x: np.ndarray, kernel: tuple[int, ...], spec: ConvSpec) -> None:
        xp = padded(x, spec.pads)
        n, c, hp, wp = xp.shape
        (sh, sw), (dh, dw), groups = spec.stride, spec.dilation, spec.groups
        oh = (hp - dh * (kernel[0] - 1) - 1) // sh + 1
        ow = (wp - dw * (kernel[1] - 1) - 1) // sw + 1
        s_n, s_c, s_h, s_w = xp.strides
        spans: tuple[int, ...] = (oh, ow)
        steps: tuple[int, ...] = (s_h * sh, s_w * sw)
        self.row, self.span = ow, oh * ow
        if sh == sw == 1 and 4 * ow >= 3 * wp:
            self.row, self.span = wp, (oh - 1) * wp + ow
            spans, steps = (self.span,), (s_w,)
        shape = (n, groups, c // groups, *kernel, *spans)
        strides = (s_n, s_c * (c // groups), s_c, s_h * dh, s_w * dw, *steps)
        self.view = as_strided(xp, shape, strides, writeable=False)
        self.out = (oh, ow)
        self.depth = (c // groups) * kernel[0] * kernel[1]
        self.groups = groups

    def chunks(self, channels: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Walk over a few samples at a time, with buffers that are reused.

        Yields
        ------
        where : slice
            The samples.
        cols : ndarray
            Their columns, ``(n, G, depth, span)``.
        flat, image : ndarray
            Room for `channels` results per group: as columns for BLAS, and the wanted part as
            images. It starts as zeros; straddling columns stay as they were left.
        """
        n, dtype = self.view.shape[0], self.view.dtype
        per_sample = self.groups * (self.depth + channels) * max(self.span, 1)
        size = max(1, min(n, _CHUNK_ELEMENTS // max(per_sample, 1)))
        buffer = np.empty((size, *self.view.shape[1:]), dtype)
        room = np.zeros((size, self.groups, channels, self.out[0] * self.row), dtype)
        image = room.reshape(size, self.groups, channels, self.out[0], self.row)
        flat, image = room[..., : self.span], image[..., : self.out[1]]
        for start in range(0, n, size):
            stop = min(start + size, n)
            count = stop - start
            buffer[:count] = self.view[start:stop]
            cols = buffer[:count].reshape(count, self.groups, self.depth, self.span)
            yield slice(start, stop), cols, flat[:count], image[:count]


@quiet
def conv_array(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, spec: ConvSpec) -> np.ndarray:
    """Convolve `x`, ``(N, C, H, W)`` or ``(N, C, L)``, with the kernels `w`; add `bias`."""
    dtype, is_signal = x.dtype, x.ndim == 3
    x, w = widen(lift(x)), widen(lift(w))
    n, o, groups = x.shape[0], w.shape[0], spec.groups
    columns = _Columns(x, w.shape[2:], spec)
    out = np.empty((n, groups, o // groups, *columns.out), x.dtype)
    if out.size:
        kernels = w.reshape(groups, o // groups, columns.depth)
        shift = 0 if bias is None else widen(bias).reshape(groups, o // groups, 1, 1)
        for where, cols, flat, image in columns.chunks(o // groups):
            np.matmul(kernels, cols, out=flat)
            # Dropping the straddling columns costs nothing: the bias has to be added anyway.
            np.add(image, shift, out=out[where])
    out = out.reshape(n, o, *columns.out[1 if is_signal else 0 :])
    return out.astype(dtype, copy=False)


@quiet
def conv_weight_array(
    g: np.ndarray, x: np.ndarray, shape: tuple[int, ...], spec: ConvSpec
) -> np.ndarray:
    """Gradient for kernels of the given shape, when `g` is the gradient of the result."""
    dtype = x.dtype
    g, x = widen(lift(g)), widen(lift(x))
    kernel = shape[2:] if len(shape) == 4 else (1, shape[2])
    o, groups = shape[0], spec.groups
    columns = _Columns(x, kernel, spec)
    total = np.zeros((groups, o // groups, columns.depth), x.dtype)
    if g.size:
        grad = g.reshape(g.shape[0], groups, o // groups, *columns.out)
        for where, cols, flat, image in columns.chunks(o // groups):
            image[...] = grad[where]
            # The straddling columns are zero and add nothing to the product.
            total += np.matmul(flat, cols.swapaxes(-1, -2)).sum(axis=0)
    return total.reshape(shape).astype(dtype, copy=False)


@quiet
def conv_input_array(
    g: np.ndarray, w: np.ndarray, shape: tuple[int, ...], spec: ConvSpec
) -> np.ndarray:
    """Gradient for an input of the given shape: the transposed convolution of `g`."""
    dtype = g.dtype
    g, w = widen(lift(g)), widen(lift(w))
    n, c = shape[:2]
    h, width = shape[2:] if len(shape) == 4 else (1, shape[2])
    o, _, kh, kw = w.shape
    groups, (dh, dw), (sh, sw) = spec.groups, spec.dilation, spec.stride
    (top, bottom), (left, right) = spec.pads
    oh, ow = g.shape[2:]
    if sh == sw == 1:
        # The gradient is itself a convolution: of g, framed widely, with the kernels turned round.
        turned = w.reshape(groups, o // groups, c // groups, kh, kw)[..., ::-1, ::-1]
        turned = turned.swapaxes(1, 2).reshape(c, o // groups, kh, kw)
        reach_h, reach_w = dh * (kh - 1), dw * (kw - 1)
        frame = ((reach_h - top, h - oh + top), (reach_w - left, width - ow + left))
        out = conv_array(g, turned, None, ConvSpec((1, 1), frame, (dh, dw), groups))
        return out.reshape(shape).astype(dtype, copy=False)
    # Otherwise scatter the columns back ("col2im"), one kernel position at a time.
    out = np.zeros((n, groups, c // groups, h + top + bottom, width + left + right), g.dtype)
    if g.size:
        kernels = w.reshape(groups, o // groups, -1).swapaxes(-1, -2)
        per_sample = c * kh * kw * oh * ow + o * oh * ow
        size = max(1, min(n, _CHUNK_ELEMENTS // max(per_sample, 1)))
        grad = np.ascontiguousarray(g).reshape(n, groups, o // groups, oh * ow)
        for start in range(0, n, size):
            part = np.matmul(kernels, grad[start : start + size])
            part = part.reshape(-1, groups, c // groups, kh * kw, oh, ow)
            targets = shifted(out[start : start + size], (kh, kw), (sh, sw), (dh, dw), (oh, ow))
            for k, target in enumerate(targets):
                target += part[:, :, :, k]
    out = out.reshape(n, c, *out.shape[3:])[:, :, top : top + h, left : left + width]
    return np.ascontiguousarray(out).reshape(shape).astype(dtype, copy=False)
