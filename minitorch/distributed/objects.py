"""Collectives of Python objects: pickled, moved as bytes, unpickled.

The ranks of one job trust each other, as in PyTorch: unpickling runs what the sender says, so these
are for a job's own ranks and never for data from outside. Every call is two collectives: the
lengths, then the bytes, padded to the longest. An object that cannot be pickled raises before
anything is sent.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .collectives import submit
from .process_group import ProcessGroup, member_group, root_of


def _pickled(obj: Any) -> np.ndarray:
    return np.frombuffer(bytearray(pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)), np.uint8)


def _unpickled(data: np.ndarray) -> Any:
    return pickle.loads(data.tobytes())


def _padded(data: np.ndarray, length: int) -> np.ndarray:
    padded = np.zeros(length, np.uint8)
    padded[: data.size] = data
    return padded


def _all_lengths(pg: ProcessGroup, data: np.ndarray) -> np.ndarray:
    lengths = np.empty(pg.size(), np.int64)
    submit(pg, "all_gather", lengths, np.array([data.size], np.int64), async_op=False, result=[])
    return lengths


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Collect every rank's object on every rank.

    Parameters
    ----------
    object_list : list
        Filled with one object per rank; must have that length.
    obj : object
        Anything that can be pickled.
    """
    pg = member_group(group, "all_gather_object")
    if pg is None:
        return
    _check_slots(object_list, pg.size(), "object_list")
    data = _pickled(obj)
    lengths = _all_lengths(pg, data)
    longest = int(lengths.max())
    rows = np.empty((pg.size(), longest), np.uint8)
    submit(pg, "all_gather", rows, _padded(data, longest), async_op=False, result=[])
    for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        object_list[index] = _unpickled(row[:length])


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Collect every rank's object on one (by default global rank 0)."""
    pg = member_group(group, "gather_object")
    if pg is None:
        return
    root = root_of(pg, "gather_object", dst, group_dst, 0)
    here = root == pg.rank()
    if here:
        if object_gather_list is None:
            raise ValueError(
                "Argument ``object_gather_list`` must be specified on destination rank."
            )
        _check_slots(object_gather_list, pg.size(), "object_gather_list")
    elif object_gather_list:
        raise ValueError(
            "Argument ``object_gather_list`` must NOT be specified on non-destination ranks."
        )
    data = _pickled(obj)
    lengths = _all_lengths(pg, data)
    longest = int(lengths.max())
    rows = np.empty((pg.size(), longest), np.uint8) if here else None
    submit(pg, "gather", rows, _padded(data, longest), root, async_op=False, result=[])
    if here:
        assert rows is not None
        assert object_gather_list is not None
        for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            object_gather_list[index] = _unpickled(row[:length])


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects in every rank's list by the source's; the lists have the same length
    everywhere.
    """
    pg = member_group(group, "broadcast_object_list")
    if pg is None:
        return
    if not isinstance(object_list, list):
        raise TypeError(f"object_list must be a list, got {type(object_list).__name__}")
    root = root_of(pg, "broadcast_object_list", src, group_src, 0)
    here = root == pg.rank()
    pieces = [_pickled(obj) for obj in object_list] if here else []
    lengths = np.array(
        [piece.size for piece in pieces] if here else [0] * len(object_list), np.int64
    )
    if lengths.size == 0:
        return
    submit(pg, "broadcast", lengths, root, async_op=False, result=[])
    data = np.concatenate(pieces) if here else np.empty(int(lengths.sum()), np.uint8)
    submit(pg, "broadcast", data, root, async_op=False, result=[])
    if not here:
        for index, piece in enumerate(np.split(data, np.cumsum(lengths)[:-1])):
            object_list[index] = _unpickled(piece)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Deal the source's list out; each rank's arrives in ``scatter_object_output_list[0]``."""
    pg = member_group(group, "scatter_object_list")
    if pg is None:
        return
    slots: Any = scatter_object_output_list
    if not isinstance(slots, list) or len(slots) < 1:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = root_of(pg, "scatter_object_list", src, group_src, 0)
    size = pg.size()
    lengths = np.zeros(size, np.int64)
    rows = None
    if root == pg.rank():
        if scatter_object_input_list is None:
            raise ValueError(
                "Argument ``scatter_object_input_list`` must be specified on source rank."
            )
        _check_slots(scatter_object_input_list, size, "scatter_object_input_list")
        pieces = [_pickled(obj) for obj in scatter_object_input_list]
        lengths[:] = [piece.size for piece in pieces]
        rows = np.stack([_padded(piece, int(lengths.max())) for piece in pieces])
    submit(pg, "broadcast", lengths, root, async_op=False, result=[])
    mine = np.empty(int(lengths.max()), np.uint8)
    submit(pg, "scatter", mine, rows, root, async_op=False, result=[])
    scatter_object_output_list[0] = _unpickled(mine[: lengths[pg.rank()]])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a list of objects to another rank, which calls :func:`recv_object_list`."""
    from .point_to_point import _peer

    pg = member_group(group, "send_object_list")
    if pg is None:
        return
    peer = _peer(pg, dst, group_dst, "destination")
    pieces = [_pickled(obj) for obj in object_list]
    if not pieces:
        return
    pg._group.send(np.array([piece.size for piece in pieces], np.int64), peer, 0).wait()
    pg._group.send(np.concatenate(pieces), peer, 0).wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list in place and return the sender's global rank; -1 outside the group."""
    from .point_to_point import _ANY_SOURCE, _peer

    pg = member_group(group, "recv_object_list")
    if pg is None:
        return -1
    anybody = src is None and group_src is None
    peer = _ANY_SOURCE if anybody else _peer(pg, src, group_src, "source")
    if not object_list:
        return -1 if anybody else pg._global(peer)
    lengths = np.empty(len(object_list), np.int64)
    first = pg._group.recv(lengths, peer, 0)
    first.wait()
    sender = first.source if anybody else peer
    data = np.empty(int(lengths.sum()), np.uint8)
    pg._group.recv(data, sender, 0).wait()
    for index, piece in enumerate(np.split(data, np.cumsum(lengths)[:-1])):
        object_list[index] = _unpickled(piece)
    return pg._global(sender)


def _check_slots(slots: Any, size: int, name: str) -> None:
    if not isinstance(slots, list) or len(slots) != size:
        length = len(slots) if isinstance(slots, list) else type(slots).__name__
        raise ValueError(
            f"Expected argument {name} to be a list with one entry per rank ({size}), got {length}"
        )
