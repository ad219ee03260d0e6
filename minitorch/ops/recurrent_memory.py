"""Large arrays that are used again: what a recurrence keeps for backward, step after training step.

A fresh array of a few megabytes is handed out by the operating system page by page, at the first
touch of each; that costs as much as a quarter of an LSTM's whole training step. So the memory of an
array made here goes back into a pool when the last view of it is gone, and the next array of the
same size takes it from there.

The pool keeps at most :data:`POOL_BYTES` of unused memory; sizes that nobody asked for longest go
first.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

POOL_BYTES = 256 << 20
_SMALLEST = 64 << 10  # below, the C library's own heap does the same

# Reentrant: the garbage collector may give back a block while one is being taken.
_lock = threading.RLock()
_unused: dict[int, list[np.ndarray]] = {}
_unused_bytes = 0


class _Block:
    """Owner of some memory: lends it to an array (as its ``base``), returns it to the pool."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, memory: np.ndarray) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        _give_back(self._memory)


def _give_back(memory: np.ndarray) -> None:
    global _unused_bytes
    size = memory.nbytes
    with _lock:
        # Put last, so that sizes that are asked for no more come to stand first and go first.
        _unused[size] = [*_unused.pop(size, ()), memory]
        _unused_bytes += size
        while _unused_bytes > POOL_BYTES:
            oldest = next(iter(_unused))
            _unused_bytes -= oldest * len(_unused.pop(oldest))


def _take(size: int) -> np.ndarray:
    global _unused_bytes
    with _lock:
        memories = _unused.get(size)
        if memories:
            _unused_bytes -= size
            return memories.pop()
    return np.empty(size, np.uint8)


def unused_bytes() -> int:
    """How much memory waits in the pool."""
    return _unused_bytes


def reused(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an uninitialised array, in memory of an array of the same size that is gone if any."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _SMALLEST:
        return np.empty(shape, dtype)
    return np.asarray(_Block(_take(size))).view(dtype).reshape(shape)
