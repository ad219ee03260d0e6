"""From one rank to another: send, recv, and their asynchronous forms.

A message is matched by (sender, tag), in the order of sending; dtype and size are checked by the
receiver before a byte is written. ``send`` returns when the tensor may be reused, which for a short
message may be before it is received.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch.tensor import Tensor

from . import _tensors as wire
from ._debug import setting as debug
from ._debug import with_origin
from ._rank_state import current
from .process_group import ProcessGroup, _get_default_group, member_group, outsider
from .work import Work

_ANY_SOURCE = -1


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor; it may not be changed until the returned work is done.

    Parameters
    ----------
    dst : int
        Global rank of the receiver (``group_dst``: its rank in the group).
    tag : int
        Not negative; must equal the receiver's.

    Raises
    ------
    ValueError
        If the receiver is the caller, or no rank of the group.
    RuntimeError
        If the tensor is not contiguous.
    """
    array = wire.check_tensor(tensor, "tensor")
    pg = member_group(group, "isend")
    if pg is None:
        return None
    peer = _peer(pg, dst, group_dst, "destination")
    _check_message(array, tag)
    buffer, dtype = wire.sent(array)
    label = with_origin() if debug.detail else ""
    return Work(pg._group.send(buffer, peer, tag, dtype=dtype, label=label), [tensor])


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive into a tensor; ``src=None`` takes a message from anybody."""
    array = wire.check_tensor(tensor, "tensor")
    pg = member_group(group, "irecv")
    if pg is None:
        return None
    peer = _ANY_SOURCE if src is None and group_src is None else _peer(pg, src, group_src, "source")
    _check_message(array, tag)
    buffer, dtype, finish = wire.received(tensor, "tensor")

    def sender(native: Any) -> int:
        return pg._global(native.source if peer == _ANY_SOURCE else peer)

    label = with_origin() if debug.detail else ""
    native = pg._group.recv(buffer, peer, tag, dtype=dtype, label=label)
    return Work(native, [tensor], finish, source=sender)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to another rank."""
    if outsider(group):
        raise ValueError("Invalid process group specified")
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive into a tensor and return the sender's global rank; -1 outside the group."""
    work = irecv(tensor, src, group, tag, group_src)
    return -1 if work is None else work.source_rank()


def _peer(pg: ProcessGroup, global_rank: int | None, group_rank: int | None, role: str) -> int:
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if global_rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if group_rank is None:
        peer = pg._index.get(global_rank)  # type: ignore[arg-type]
        if peer is None:
            whole = pg is current().default_group
            raise ValueError(
                f"Invalid {role} rank: {global_rank}; the world has ranks 0 to "
                f"{len(pg._ranks) - 1}."
                if whole
                else f"Global rank {global_rank} is not part of group {pg}"
            )
    elif 0 <= group_rank < len(pg._ranks):
        peer = group_rank
    else:
        raise ValueError(f"Group rank {group_rank} is not part of group {pg}")
    if peer == pg.rank():
        raise ValueError(
            f"Invalid {role} rank: {role} rank should not be the same as the rank of the current "
            "process."
        )
    return peer


def _check_message(array: Any, tag: int) -> None:
    if not array.flags.c_contiguous:
        raise RuntimeError(
            "input tensor has to be contiguous: Tensors must be contiguous, send x.contiguous() "
            "instead"
        )
    if tag < 0:
        raise ValueError(f"Tag must be nonnegative, got {tag}")


class P2POp:
    """One entry of :func:`batch_isend_irecv`.

    Parameters
    ----------
    op : callable
        ``dist.isend`` or ``dist.irecv``.
    tensor : Tensor
        What is sent, or received into.
    peer : int
        Global rank of the other side (``group_peer``: its rank in the group).
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        wire.check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.group_peer = group_peer

    def __repr__(self) -> str:
        return (
            f"P2POp({self.op.__name__}, "
            f"peer={self.peer if self.group_peer is None else self.group_peer}, tag={self.tag}, "
            f"shape={tuple(self.tensor.shape)}, dtype={self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several sends and receives and return their works, in order.

    Raises
    ------
    ValueError
        If the list is empty or its entries do not share one group.
    """
    given: Any = p2p_op_list
    if not isinstance(given, list) or not all(isinstance(entry, P2POp) for entry in given):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    if not p2p_op_list:
        raise ValueError("Invalid ``p2p_op_list``: it is empty.")
    if len({id(entry.group or _get_default_group()) for entry in p2p_op_list}) > 1:
        raise ValueError("All ops need to use the same group.")
    works = []
    for entry in p2p_op_list:
        side = {"group_dst" if entry.op is isend else "group_src": entry.group_peer}
        work = entry.op(entry.tensor, entry.peer, entry.group, entry.tag, **side)
        if work is not None:
            works.append(work)
    return works
