"""How an update rule meets memory: in cache-sized blocks, in place, without new arrays.

An optimizer step reads and writes each parameter, its gradient and its state several times over.
Run block by block, those passes stay in the cache and one small scratch buffer serves all
parameters; this file holds that loop, so that the rules in ``sgd.py`` and ``adam.py`` read like
their formulas.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["BLOCK", "blockwise", "descent_direction"]

#: Elements per block: small enough that a step's passes stay in the cache, large enough that the
#: cost of a NumPy call does not show.
BLOCK = 65536
_SCRATCH_ROWS = 2


class _Scratch(threading.local):
    """Per thread, since ranks may be threads; per dtype; as small as a block."""

    def __init__(self) -> None:
        self.buffers: dict[np.dtype, np.ndarray] = {}

    def get(self, dtype: np.dtype, size: int) -> np.ndarray:
        if size > BLOCK:
            return np.empty((_SCRATCH_ROWS, size), dtype=dtype)
        buffer = self.buffers.get(dtype)
        if buffer is None:
            buffer = self.buffers[dtype] = np.empty((_SCRATCH_ROWS, BLOCK), dtype=dtype)
        return buffer


_scratch = _Scratch()


def blockwise(
    kernel: Callable[..., None],
    param: np.ndarray,
    grad: np.ndarray,
    *state: np.ndarray,
    **hyper: Any,
) -> None:
    """Run ``kernel(param, grad, *state, scratch, **hyper)`` over all elements.

    The kernel gets one-dimensional blocks of equal length and writes ``param`` and ``state`` in
    place; ``scratch`` is a tuple of two spare blocks whose content is undefined. float16 and
    bfloat16 are computed in float32 and rounded once at the end.
    """
    if param.dtype.itemsize < 4:
        wide = [array.astype(np.float32) for array in (param, grad, *state)]
        blockwise(kernel, *wide, **hyper)
        for array, result in zip((param, *state), (wide[0], *wide[2:]), strict=True):
            array[...] = result
        return
    written = (param, *state)
    if not all(array.flags.c_contiguous for array in written):
        packed = [np.ascontiguousarray(array) for array in written]
        blockwise(kernel, packed[0], grad, *packed[1:], **hyper)
        for array, result in zip(written, packed, strict=True):
            if result is not array:
                array[...] = result
        return
    size = param.size
    flat = [array.reshape(-1) for array in (param, grad, *state)]
    for start in range(0, size, BLOCK):
        stop = min(size, start + BLOCK)
        block = flat if stop - start == size else [array[start:stop] for array in flat]
        spare = _scratch.get(param.dtype, stop - start)[:, : stop - start]
        kernel(*block, (spare[0], spare[1]), **hyper)


def descent_direction(
    param: np.ndarray,
    grad: np.ndarray,
    scratch: tuple[np.ndarray, np.ndarray],
    weight_decay: float,
    maximize: bool,
) -> np.ndarray:
    """``grad`` with its sign and its coupled weight decay: ``±grad + weight_decay * param``.

    Returns ``grad`` itself when there is nothing to do, else the first scratch block; the second
    one is free again afterwards.
    """
    first, second = scratch
    if maximize:
        grad = np.negative(grad, out=first)
    if weight_decay != 0:
        np.multiply(param, weight_decay, out=second)
        grad = np.add(grad, second, out=first)
    return grad
