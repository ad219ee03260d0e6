"""Whose elements share memory: in-place writes that would depend on the order of their steps raise.

Two things go wrong. The written tensor may hold one element twice (an expanded one does), or an
operand may share *some* of its memory (``x[1:] += x[:-1]``), so that it changes while it is read.
As in PyTorch, only what is cheap to see is refused: a step of zero, and dense blocks of memory that
partly coincide. For the rest NumPy works on a copy where it must.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray

_REPEATED = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
_SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def repeats_elements(x: ndarray) -> bool:
    """Whether an axis longer than 1 has a step of zero."""
    if 0 not in x.strides or not x.size:
        return False
    return any(step == 0 and n > 1 for step, n in zip(x.strides, x.shape, strict=True))


def refuse_repeats(x: ndarray) -> None:
    """Raise if `x`, which is to be written, holds an element twice."""
    if repeats_elements(x):
        raise RuntimeError(_REPEATED)


def refuse_overlap(written: ndarray, read: ndarray, same_allowed: bool = True) -> None:
    """Raise if `read` shares some of the memory of `written`, or all with other strides.

    With ``same_allowed=False`` (ops that read out of order), also if it is the same memory.
    """
    if written is read and same_allowed:
        return
    if written.base is None and read.base is None and written is not read:
        return  # each owns its memory
    if not np.may_share_memory(written, read) or not (_is_dense(written) and _is_dense(read)):
        return
    if same_allowed and _span(written) == _span(read) and _layout(written) == _layout(read):
        return
    raise RuntimeError(_SHARED)


def _is_dense(x: ndarray) -> bool:
    """Whether the elements fill a block of memory, each once, in whatever order of axes."""
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return True
    expected = x.itemsize
    for step, n in sorted(_layout(x)):
        if step != expected:
            return False
        expected *= n
    return True


def _layout(x: ndarray) -> list[tuple[int, int]]:
    return [(step, n) for step, n in zip(x.strides, x.shape, strict=True) if n != 1]


def _span(x: ndarray) -> tuple[int, int]:
    start = x.__array_interface__["data"][0]
    return start, start + x.nbytes
