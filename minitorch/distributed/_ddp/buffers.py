"""One rank's tensors, copied to all others: parameters and buffers at construction, buffers before
a forward.

Small tensors are coalesced: tensors of one dtype travel in flat messages of at most 250 MiB.
Cost per message of n bytes: one broadcast (n bytes received by every rank but the source).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.graph import bump_version

from .._tensors import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from minitorch.distributed.process_group import ProcessGroup
    from minitorch.tensor import Tensor

COALESCED_BYTES = 250 * 2**20
_IN_FLIGHT = 2  # bounds the memory of the flat copies, as in PyTorch


def broadcast_coalesced(
    process_group: ProcessGroup,
    tensors: Sequence[Tensor],
    src: int = 0,
    limit: int = COALESCED_BYTES,
    label: str = "module state",
) -> None:
    """Overwrite ``tensors`` with those of group rank ``src``; a collective.

    Shapes and dtypes must agree (``verify.py`` has seen to it). Only values that differ are
    written, so that a tensor that is the same already does not count as modified: a graph that
    saved it stays valid.

    Parameters
    ----------
    tensors
        Any dtypes, any strides.
    limit
        Most bytes in one message; a bigger tensor travels alone.
    """
    if process_group.size() == 1:
        return
    sending = process_group.rank() == src
    in_flight: list[tuple[Any, np.ndarray, list[Tensor]]] = []
    for chunk in _chunks(tensors, limit):
        flat = np.concatenate([tensor._array.ravel() for tensor in chunk])
        # A dtype that the core does not know (bool) is moved as bytes; one that it knows is
        # compared across the ranks.
        data = flat if flat.dtype in PLAIN else flat.view(np.uint8)
        work = process_group._group.broadcast(data, src, label=label)
        in_flight.append((work, flat, chunk))
        if len(in_flight) == _IN_FLIGHT:
            _take_in(*in_flight.pop(0), sending=sending)
    for entry in in_flight:
        _take_in(*entry, sending=sending)


def _chunks(tensors: Sequence[Tensor], limit: int) -> Iterator[list[Tensor]]:
    """Group by dtype in order of first appearance; no chunk exceeds ``limit`` but a lone tensor."""
    by_dtype: dict[np.dtype, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor._array.dtype, []).append(tensor)
    for same_dtype in by_dtype.values():
        chunk: list[Tensor] = []
        size = 0
        for tensor in same_dtype:
            if chunk and size + tensor._array.nbytes > limit:
                yield chunk
                chunk, size = [], 0
            chunk.append(tensor)
            size += tensor._array.nbytes
        yield chunk


def _take_in(work: Any, flat: np.ndarray, chunk: list[Tensor], *, sending: bool) -> None:
    work.wait()
    if sending:
        return
    start = 0
    for tensor in chunk:
        array = tensor._array
        received = flat[start : start + array.size].reshape(array.shape)
        start += array.size
        if not _same_bytes(array, received):
            array[...] = received
            bump_version(tensor)


def _same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    # By bytes: NaN equals itself, and 0.0 is not -0.0.
    return a.tobytes() == b.tobytes()
