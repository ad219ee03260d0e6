"""Starting MPI: the only module that imports mpi4py and ``minitorch._mpi``.

It runs inside ``init_process_group`` and not at import, since a child process that merely imports
mpi4py under ``mpirun`` may take the whole job with it. Order of events:

1. MPI is initialised with ``MPI_THREAD_MULTIPLE``. This is a barrier of all ranks inside the MPI
   library and cannot be interrupted, so a watchdog ends the process if the timeout passes (the GIL
   is released meanwhile).
2. A :class:`Guard` is installed. Everybody reports to rank 0, with a deadline: whoever is missing
   is named.
3. Two communicators are duplicated, one for data and one for control, so that our messages never
   meet those of a script that uses mpi4py itself.
4. The processes of each host agree on shared memory for long payloads (:mod:`._mpi_lanes`).
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ._environment import launcher_evidence
from ._failure import Guard
from ._mpi_check import (
    check_launcher,
    check_mpi,
    facts_of_process,
    launcher_says,
    mpi_problems,
    raise_problems,
)
from ._mpi_lanes import lanes_of_this_host
from ._native import CollectiveTimeout

_ARRIVED, _ALL_HERE = 32_101, 32_102  # tags on MPI_COMM_WORLD, used only while starting


@dataclass
class MpiWorld:
    """What MPI gives: a place, a transport, and what ends the job if this rank fails."""

    rank: int
    size: int
    transport: Any
    threaded: bool
    guard: Guard
    keep: Any


def start_mpi(timeout: timedelta) -> MpiWorld:
    """Initialise MPI, check that it fits the extension, and return this rank's world.

    Raises
    ------
    RuntimeError
        If mpi4py or the extension is missing, MPI is already finalized, two MPIs are mixed, or the
        launcher belongs to another one.
    CollectiveTimeout
        If a rank does not arrive in time.
    """
    check_launcher()  # MPI would end the process, with a message about something else
    mpi = _initialised(timeout)
    world = mpi.COMM_WORLD
    # From here on whatever goes wrong on one rank must end the job: the others may be waiting
    # already.
    guard = Guard(world.Get_rank(), world.Get_size(), world.Abort)
    guard.install()
    try:
        from minitorch import _mpi
    except ImportError as error:
        raise_problems(mpi_problems(facts_of_process(error=str(error)), launcher_says()))
        raise
    check_mpi(_mpi)
    _assemble(mpi, timeout)
    data, control = world.Dup(), world.Dup()
    with ExitStack() as stack:
        lanes = lanes_of_this_host(mpi, _mpi.outbox_bytes, stack)
        transport = _mpi.mpi_transport(data.py2f(), control.py2f(), **lanes)
    threaded = mpi.Query_thread() == mpi.THREAD_MULTIPLE
    if not threaded and world.Get_rank() == 0:
        warnings.warn(
            "this MPI was not started with MPI_THREAD_MULTIPLE: communication progresses only "
            "inside wait(), and is not "
            "hidden behind computation. Let init_process_group start MPI, or set "
            "mpi4py.rc.thread_level = 'multiple'.",
            stacklevel=4,
        )
    return MpiWorld(
        rank=world.Get_rank(),
        size=world.Get_size(),
        transport=transport,
        threaded=threaded,
        guard=guard,
        keep=(data, control),
    )


def _initialised(timeout: timedelta) -> Any:
    """The module ``mpi4py.MPI``, with MPI running."""
    try:
        import mpi4py
    except ImportError as error:
        raise RuntimeError(
            "this process was started as a rank of an MPI job, but mpi4py is not installed: "
            "pip install mpi4py mpich (or mpi4py alone, on a machine that has an MPI)"
        ) from error
    if "mpi4py.MPI" not in sys.modules:
        # Both by hand below: the start without the GIL, the end not in a forked child, where it
        # would take the job down.
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
        # MPICH's wire, UCX, would write its warnings into the program's output. Read when it loads.
        os.environ.setdefault("UCX_LOG_FILE", "stderr")
    from mpi4py import MPI

    if MPI.Is_finalized():
        raise RuntimeError(
            "MPI is already finalized; a process can be a rank of an MPI job only once"
        )
    if not MPI.Is_initialized():
        watchdog = threading.Timer(timeout.total_seconds(), _give_up, (timeout,))
        watchdog.daemon = True
        watchdog.start()
        provided = ctypes.c_int()
        # A handle on the extension module finds the symbols of the MPI that it is linked with.
        library = ctypes.CDLL(MPI.__file__)
        failed = library.MPI_Init_thread(None, None, MPI.THREAD_MULTIPLE, ctypes.byref(provided))
        watchdog.cancel()
        if failed:
            raise RuntimeError(f"MPI_Init_thread failed with error {failed}")
        for communicator in (MPI.COMM_WORLD, MPI.COMM_SELF):
            communicator.Set_errhandler(MPI.ERRORS_RETURN)
        atexit.register(_finalize, MPI, os.getpid())
    return MPI


def _finalize(mpi: Any, pid: int) -> None:
    """Finalize MPI; registered before the guard's exit function, and so runs after it."""
    if os.getpid() == pid and not mpi.Is_finalized():
        mpi.Finalize()


def _give_up(timeout: timedelta) -> None:
    print(
        f"init_process_group: timed out after {timeout.total_seconds():g} s "
        f"({launcher_evidence()}): MPI waits for all ranks to start, and at least one has not "
        "called init_process_group. The job is ended.",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)


def _assemble(mpi: Any, timeout: timedelta) -> None:
    """Wait until every rank is here; name whoever is missing at the deadline."""
    world = mpi.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    end = time.monotonic() + timeout.total_seconds()
    if rank == 0:
        arrivals = {peer: world.irecv(source=peer, tag=_ARRIVED) for peer in range(1, size)}
        while arrivals and time.monotonic() < end:
            arrivals = {
                peer: request for peer, request in arrivals.items() if not request.test()[0]
            }
            time.sleep(0.0 if len(arrivals) < 2 else 0.001)
        missing = sorted(arrivals)
        for peer in range(1, size):
            if peer not in arrivals:
                world.send(missing, peer, tag=_ALL_HERE)
    else:
        report = world.isend(None, 0, tag=_ARRIVED)
        answer = world.irecv(source=0, tag=_ALL_HERE)
        # A little more patience than rank 0, which knows who is missing.
        done, missing = answer.test()
        while not done and time.monotonic() < end + 2.0:
            time.sleep(0.0005)
            done, missing = answer.test()
        if not done:
            missing = [0]
        elif not missing:
            report.wait()
    if missing:
        names = ", ".join(map(str, missing))
        raise CollectiveTimeout(
            f"init_process_group: rank {names} of {size} did not come within "
            f"{timeout.total_seconds():g} s"
        )
