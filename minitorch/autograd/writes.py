"""In-place writes on record: when memory was written, and the error when a gradient needs it.

One clock dates nodes and writes. What a node saved is still good if the memory's last write is
older than the node.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import numpy as np

from minitorch.dtypes import type_word

# One clock for the whole process: `next` on a count is atomic under the GIL, and a clock that
# never goes backwards in any thread is what both the walk and the write check rely on.
clock = itertools.count()


class WriteLog:
    """When a tensor's memory was written in place: how often, and the latest times."""

    __slots__ = ("count", "times")

    def __init__(self) -> None:
        self.count = 0
        self.times: deque[int] = deque(maxlen=16)

    def add(self) -> None:
        self.count += 1
        self.times.append(next(clock))

    def count_at(self, seq: int) -> int:
        """Return the version at the time `seq` (exact for the last 16 writes)."""
        return self.count - sum(time > seq for time in self.times)


def memory_owner(t: Any) -> Any:
    """Return the tensor whose write log counts for `t`'s memory."""
    return t if t._alias is None else t._alias.owner


def bump_version(t: Any) -> None:
    """Say that the memory of `t` was written; call it after any write to ``t._array``."""
    owner = memory_owner(t)
    if owner._writes is None:
        owner._writes = WriteLog()
    owner._writes.add()
    node = owner._node
    if node is not None and node._own is not None:
        # The node holds the output's array without the tensor: tell it.
        node.rare.output_write = (owner._array.shape, owner._array.dtype, owner._writes)


def version_of(t: Any) -> int:
    """Return how often the memory of `t` was written in place."""
    log = memory_owner(t)._writes
    return 0 if log is None else log.count


def overwritten(item: Any, log: WriteLog, seq: int) -> RuntimeError:
    """Return the error for a saved tensor that was written after time `seq`."""
    array = item._array
    node = item._node
    made_by = "" if node is None else f", which is output {item._output_nr} of {short_name(node)},"
    return _write_error(array.shape, array.dtype, made_by, log, seq)


def output_overwritten(node: Any) -> RuntimeError:
    """Return the error for a node that saved its output, which was written since."""
    shape, dtype, log = node._rare.output_write
    made_by = f", which is output 0 of {short_name(node)},"
    return _write_error(shape, dtype, made_by, log, node._seq)


def short_name(node: Any) -> str:
    """Return the operation's name as errors give it: ``Mul`` for ``MulBackward0``."""
    return node.name().partition("Backward")[0]


def _write_error(
    shape: tuple, dtype: np.dtype, made_by: str, log: WriteLog, seq: int
) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{type_word(dtype)}Tensor {list(shape)}]{made_by} is at version "
        f"{log.count}; expected version {log.count_at(seq)} instead. Hint: clone() the tensor "
        "before the in-place operation, or use its out-of-place version."
    )
