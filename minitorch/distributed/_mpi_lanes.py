"""Shared memory between the processes of one host, for the lanes of ``csrc/transport/lanes.hpp``.

Each process makes an outbox, a file in memory that has no name, and opens those of its neighbours
through ``/proc``; so nothing has to be tidied up, however a process ends. If any process of a host
cannot do that (another operating system, a container that hides other processes), all of that host
do without, and payloads go through the MPI.
"""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from typing import Any

#: ``off`` or ``0`` sends everything through the MPI.
SHARED_MEMORY_VARIABLE = "MINITORCH_SHARED_MEMORY"


def lanes_of_this_host(mpi: Any, outbox_bytes: Any, stack: ExitStack) -> dict[str, Any]:
    """Keyword arguments for ``_mpi.mpi_transport``; empty where no memory can be shared.

    Collective over all processes. The descriptors stay open until ``stack`` is closed; the
    transport duplicates them.
    """
    world = mpi.COMM_WORLD
    host = world.Split_type(mpi.COMM_TYPE_SHARED)
    try:
        size, rank = host.Get_size(), host.Get_rank()
        token = host.bcast(secrets.randbits(63), root=0)
        wanted = os.environ.get(SHARED_MEMORY_VARIABLE, "on").lower() not in {"off", "0", "no"}
        outbox = _make_outbox(outbox_bytes(size), token, stack) if wanted and size > 1 else None
        told = host.allgather((world.Get_rank(), os.getpid(), outbox))
        outboxes = [_open_outbox(pid, number, token, stack) for _, pid, number in told]
        everywhere = all(host.allgather(all(fd is not None for fd in outboxes)))
        if not everywhere:
            return {}
        return {
            "local_rank": rank,
            "local_world_ranks": [world_rank for world_rank, _, _ in told],
            "outboxes": outboxes,
            "token": token,
        }
    finally:
        host.Free()


def _make_outbox(size: int, token: int, stack: ExitStack) -> int | None:
    try:
        descriptor = os.memfd_create(f"minitorch-{token:x}", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        return None
    stack.callback(os.close, descriptor)
    os.ftruncate(descriptor, size)
    return descriptor


def _open_outbox(pid: int, number: int | None, token: int, stack: ExitStack) -> int | None:
    """A descriptor of process ``pid``'s outbox, if it is what one sees under that number."""
    if number is None:
        return None
    path = f"/proc/{pid}/fd/{number}"
    try:
        # Another process may have that number where process numbers are private to a container.
        if f"minitorch-{token:x}" not in os.readlink(path):
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor
