"""What the environment and the arguments of ``init_process_group`` say about the world, and whether
it is true.

Ranks find each other through ``mpirun`` or ``run_local``; nobody connects to ``MASTER_ADDR``. So
rank and world size are *known* when ``init_process_group`` is called, and what a script or its
environment claims about them (``rank=``, ``world_size=``, ``RANK``, ``WORLD_SIZE``, a rendezvous
URL) is either true or refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ._mpi_check import launcher_says
from .process_group import default_pg_timeout

# Set by a rank of a running job, to recognise its child processes: they inherit the launcher's
# variables too, and an MPI that starts in one of them takes the job down.
RANK_PROCESS = "MINITORCH_RANK_PROCESS"

_BACKENDS = {None: None, "gloo": None, "mpi": "mpi", "threads": "threads", "undefined": None}
_START = (
    "start the script with `mpirun -n {n} python ...` or `minitorch launch -n {n} ...`, or use "
    "dist.run_local"
)


def transport_for(backend: str | None) -> str | None:
    """Which transport a backend asks for: "mpi", "threads", or ``None`` for whatever is there.

    Raises
    ------
    RuntimeError
        For a backend of PyTorch's that needs hardware or a library that is not part of this
        package.
    ValueError
        For any other name.
    """
    if backend is None:
        return None
    if not isinstance(backend, str):
        raise ValueError(
            f"Backend constructor parameter must be string-ish, got {type(backend).__name__}"
        )
    # "cpu:gloo,cuda:nccl" names one backend per device; the only device is the CPU.
    parts = (
        dict(part.partition(":")[::2] for part in backend.lower().split(","))
        if ":" in backend
        else None
    )
    name = backend.lower() if parts is None else parts.get("cpu", "")
    if name in _BACKENDS:
        return _BACKENDS[name]
    if name in ("nccl", "ucc", "xccl"):
        raise RuntimeError(
            f"Distributed package doesn't have {name.upper()} built in: use backend='gloo', "
            "'mpi' or none"
        )
    raise ValueError(f"Invalid backend: {backend!r}; use 'gloo', 'mpi', 'threads' or none")


def launcher_evidence(environ: Mapping[str, str] | None = None) -> str | None:
    """What shows that an MPI launcher started this process, as ``NAME=value``, if any."""
    launcher = launcher_says(environ)
    return None if launcher is None else launcher.evidence


def _launch_identity(environ: Mapping[str, str]) -> str:
    """What a launcher gave to this process and to no other: all that a mere child process shares
    with its parent.
    """
    names = ("PMI_FD", "PMI_PORT", "PMIX_NAMESPACE")
    named = [f"{name}={environ[name]}" for name in names if name in environ]
    return ";".join([launcher_evidence(environ) or "", *named])


def mark_rank_process() -> None:
    """Leave a mark for child processes, which inherit the environment."""
    os.environ[RANK_PROCESS] = f"{os.getpid()};{_launch_identity(os.environ)}"


def refuse_child_process(environ: Mapping[str, str] = os.environ) -> None:
    """Raise if this process is a child of a rank instead of a rank of its own."""
    mark = environ.get(RANK_PROCESS)
    if mark is None:
        return
    pid, _, identity = mark.partition(";")
    if pid != str(os.getpid()) and identity == _launch_identity(environ):
        raise RuntimeError(
            f"this process is a child of process {pid}, which is a rank of an MPI job; only the "
            "processes that mpirun itself "
            f"started can be ranks. Leave communication to the parent, or remove {RANK_PROCESS} "
            "and what the launcher set "
            f"({identity}) from the child's environment to give it a world of its own."
        )


def check_timeout(timeout: timedelta | None) -> timedelta:
    """The timeout to use, in PyTorch's type.

    Raises
    ------
    TypeError
        If it is not a ``datetime.timedelta``.
    ValueError
        If it is not positive.
    """
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    if timeout <= timedelta(0):
        raise ValueError(f"timeout must be positive, got {timeout}")
    return timeout


def check_rendezvous(init_method: str | None, store: Any, rank: int, world_size: int) -> None:
    """Refuse what PyTorch refuses, and a store, which nobody here would read."""
    if store is not None:
        if init_method is not None:
            raise ValueError("Cannot specify both init_method and store.")
        raise ValueError(
            "store= is not supported: ranks meet through mpirun or run_local and need no store"
        )
    if init_method is not None:
        scheme = str(init_method).partition("://")[0]
        if scheme not in ("env", "tcp", "file") or "://" not in str(init_method):
            raise ValueError(
                f"No rendezvous handler for {init_method}; use env:// or leave init_method out"
            )
    for name, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an int, got {value!r}")


def check_claims(
    actual_rank: int,
    actual_size: int,
    reason: str,
    rank: int = -1,
    world_size: int = -1,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Compare what arguments and environment claim with what is the case.

    Parameters
    ----------
    actual_rank, actual_size : int
        What is the case.
    reason : str
        Why it is the case, for the message.
    rank, world_size : int
        Arguments of ``init_process_group``; -1 claims nothing.
    environ : mapping, optional
        Where to look for ``RANK`` and ``WORLD_SIZE``; by default nowhere.

    Raises
    ------
    ValueError
        Naming the false claim and what to do.
    """
    claims = []
    if world_size != -1:
        claims.append((f"world_size={world_size}", world_size, actual_size, world_size))
    if rank != -1:
        claims.append((f"rank={rank}", rank, actual_rank, world_size))
    for name, actual in (("WORLD_SIZE", actual_size), ("RANK", actual_rank)):
        text = (environ or {}).get(name)
        if text is None:
            continue
        if not text.strip().lstrip("-").isdigit():
            raise ValueError(f"the environment variable {name}={text!r} is not a number")
        wanted = int((environ or {}).get("WORLD_SIZE", "-1") or -1)
        claims.append((f"the environment variable {name}={text}", int(text), actual, wanted))
    for claim, claimed, actual, wanted in claims:
        if claimed != actual:
            count = wanted if wanted > 1 else "N"
            master = (
                " MASTER_ADDR and MASTER_PORT are not used."
                if environ and "MASTER_ADDR" in environ
                else ""
            )
            raise ValueError(
                f"init_process_group: {claim}, but {reason}.{master} Remove it, or, for that "
                f"world, {_START.format(n=count)}."
            )
