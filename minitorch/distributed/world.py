"""Making and ending worlds: ``init_process_group`` and ``destroy_process_group``.

Where the ranks are decides how they are found:

* in a thread of ``run_local``, the world is the one that ``run_local`` laid out, and is already
  there; the script's own ``init_process_group`` then only confirms it;
* in a process that ``mpirun`` started, it is the MPI job;
* in any other process, it is a world of one, so that every script also runs alone.

Next room: ``groups.py`` (``new_group``).
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._environment import (
    check_claims,
    check_rendezvous,
    check_timeout,
    launcher_evidence,
    mark_rank_process,
    refuse_child_process,
    transport_for,
)
from ._link import Link, chosen_link
from ._native import CollectiveError, core
from ._rank_state import PROCESS, RankState, current
from .process_group import ProcessGroup, _get_default_group, outsider


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
    *,
    link: str | Link | None = None,
) -> None:
    """Join the world: every rank must call this once, before anything else here.

    Parameters
    ----------
    backend : str, optional
        ``None`` and ``"gloo"`` take whatever is there (MPI under ``mpirun``, else a world of one),
        ``"mpi"`` insists on MPI and ``"threads"`` on ``run_local``.
    init_method : str, optional
        Accepted for PyTorch's sake and not used: the launcher knows the ranks.
    timeout : datetime.timedelta, optional
        How long a collective may take before it fails and names who is late; by default 30 minutes.
    world_size, rank : int
        Need not be given. If they, or ``WORLD_SIZE`` and ``RANK`` in the environment, are, they
        must be true.
    store : None
        Not supported.
    link : str, optional
        An emulated slower wire such as ``"1Gbit/s,50us"`` (this package's own; also
        ``MINITORCH_LINK``).

    Raises
    ------
    ValueError
        If called twice, or if something that was claimed about the world is not so.
    RuntimeError
        If the backend, the compiled core or MPI is not available.
    """
    state = current()
    wanted = transport_for(backend)
    limit = check_timeout(timeout)
    check_rendezvous(init_method, store, rank, world_size)
    if state.default_group is not None and (state.seat is None or state.announced):
        raise ValueError("trying to initialize the default process group twice!")
    shape = chosen_link(link)
    if state.seat is not None:
        _join_local(state, wanted, limit, timeout is not None, world_size, rank, link)
    elif wanted == "mpi" or (wanted is None and launcher_evidence()):
        refuse_child_process()
        _join_mpi(state, limit, world_size, rank, shape)
    else:
        if wanted == "threads" and world_size > 1:
            raise ValueError(
                f"backend='threads' with world_size={world_size}: ranks as threads are started by "
                f"dist.run_local(fn, {world_size}), and this thread was not"
            )
        reason = "this process was not started by mpirun and is a world of its own"
        check_claims(0, 1, reason, rank, world_size, os.environ)
        _settle(state, core().threads_world(1)[0], 0, 1, limit, "threads", shape)
    state.announced = True
    if backend is not None:
        state.backend = backend.lower()
        _get_default_group()._backend = state.backend


def _join_local(
    state: RankState,
    wanted: str | None,
    limit: timedelta,
    timed: bool,
    world_size: int,
    rank: int,
    link: Any,
) -> None:
    seat = state.seat
    assert seat is not None
    if wanted == "mpi":
        raise ValueError(
            "backend='mpi' inside run_local: its ranks are threads of one process; use 'gloo', "
            "'threads' or none"
        )
    if link is not None:
        raise ValueError("link= inside run_local: the wire is laid by run_local(..., link=...)")
    check_claims(
        seat.rank,
        seat.world_size,
        f"this is rank {seat.rank} of {seat.world_size} in run_local",
        rank,
        world_size,
    )
    if state.default_group is None:
        settle_with(state, seat.start(), seat.world_size, limit, "threads")
    elif timed:
        old = state.default_group
        state.groups.remove(old)
        old._refuse("this process group was replaced by init_process_group")
        state.default_group = _add_group(state, range(seat.world_size), limit, "default_pg")


def _join_mpi(
    state: RankState, limit: timedelta, world_size: int, rank: int, shape: Link | None
) -> None:
    from ._mpi_start import start_mpi

    world = start_mpi(limit)
    check_claims(
        world.rank,
        world.size,
        f"mpirun started this process as rank {world.rank} of {world.size}",
        rank,
        world_size,
        os.environ,
    )
    mark_rank_process()
    state.keep, state.guard = world.keep, world.guard
    _settle(state, world.transport, world.rank, world.size, limit, "mpi", shape, world.threaded)
    world.guard.engine = state.engine


def _settle(
    state: RankState,
    transport: Any,
    rank: int,
    size: int,
    limit: timedelta,
    backend: str,
    shape: Link | None,
    threaded: bool = True,
) -> None:
    if shape is not None:
        transport = core().shaped_link(transport, shape.bytes_per_second, shape.latency)
    settle_with(state, core().Engine(transport, threaded), size, limit, backend)


def settle_with(state: RankState, engine: Any, size: int, limit: timedelta, backend: str) -> None:
    """Make ``engine`` and its whole world the default group of a rank."""
    state.engine = engine
    state.backend = backend
    state.default_group = _add_group(state, range(size), limit, "default_pg")


def _add_group(
    state: RankState, ranks: Sequence[int], limit: timedelta, description: str
) -> ProcessGroup:
    native = state.engine.new_group(list(ranks), limit.total_seconds())
    group = ProcessGroup(
        native, state.engine, ranks, limit, state.backend, str(native.id), description
    )
    state.groups.append(group)
    return group


def is_initialized() -> bool:
    """Whether the calling rank has a default group."""
    return current().default_group is not None


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group, or with ``None`` or the default group the whole world of this rank.

    The rank says goodbye: peers that still wait for it get an error instead of waiting.
    """
    state = current()
    if outsider(group):
        return
    target = state.default_group if group is None else group
    if target is None:
        raise AssertionError("Process group cannot be None")
    if target is state.default_group:
        close(state)
    elif target in state.groups:
        state.groups.remove(target)
        target._refuse("this process group was destroyed by destroy_process_group")
    else:
        raise ValueError("Invalid process group specified")


def close(state: RankState) -> None:
    """Finish what was started, say goodbye, stop the engine, forget every group.

    The engine's thread is joined without the GIL.

    Raises
    ------
    CollectiveError
        If something that was started and never waited for fails; everything is closed all the same.
    """
    engine, guard = state.engine, state.guard
    failure: CollectiveError | None = None
    if engine is not None and not engine.error():
        try:
            state.finish()
        except CollectiveError as error:
            failure = error
    groups, state.groups = state.groups, []
    state.default_group = state.engine = state.guard = None
    state.announced = False
    state.in_flight = []
    for group in groups:
        group._refuse("this process group was destroyed by destroy_process_group")
    if engine is not None:
        if guard is not None and not engine.error():
            # After a failure the guard stays: such a process must not end as if nothing had been.
            guard.remove()
        engine.goodbye()
        engine.shutdown()
    state.keep = None
    if failure is not None:
        raise failure


def _close_at_exit() -> None:
    if PROCESS.default_group is not None and PROCESS.guard is None:
        close(PROCESS)


def _disown_in_child() -> None:
    """After a fork: the child has the memory of a rank, but neither its communication thread nor
    its place in the job.

    The core's objects are leaked on purpose, since their destructors would wait for a thread that
    is not there.
    """
    for group in PROCESS.groups:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group._group))
        group._refuse(
            "this process was forked from a rank and is none itself: it cannot communicate. "
            "Start worker processes before "
            "init_process_group, or use threads."
        )
    if PROCESS.engine is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(PROCESS.engine))
        if PROCESS.guard is not None:
            PROCESS.guard.disarm()
        PROCESS.engine = PROCESS.guard = None
        PROCESS.groups = []


# Registered at import, so that it runs after what the script registers, and before MPI is finalized
# (which mpi4py does once Python's own exit functions are through).
atexit.register(_close_at_exit)
os.register_at_fork(after_in_child=_disown_in_child)
