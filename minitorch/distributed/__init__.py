"""``minitorch.distributed``: PyTorch's API for ranks that work together, over our own ring.

The map of this folder, from the ground up:

* ``_native.py`` - the compiled core, or the remedy when it is missing
* ``_rank_state.py`` - whose default group? state per rank, that is per thread
* ``futures.py``, ``work.py`` - ``Future`` and its continuations; a collective in flight
* ``process_group.py`` - ``ProcessGroup``, ``ReduceOp``, who is who
* ``_tensors.py`` - from tensors to arrays that the core takes, and back
* ``collectives.py`` - all_reduce, all_gather, reduce_scatter, barrier
* ``rooted.py`` - broadcast, reduce, gather, scatter
* ``exchange.py`` - all_to_all
* ``point_to_point.py``, ``objects.py`` - send, recv; the same for Python objects
* ``world.py``, ``groups.py`` - init_process_group, destroy_process_group; new_group
* ``_environment.py`` - what arguments and environment claim about the world
* ``_mpi_start.py``, ``_mpi_check.py`` - the world of ``mpirun``; do the MPIs fit together?
* ``_failure.py`` - how one rank's failure ends the job
* ``local.py`` - the world of ``run_local``: ranks as threads
* ``_link.py`` - emulated slower wires
* ``_debug.py`` - how much errors say
* ``ddp.py`` - DistributedDataParallel, the baseline of all methods
* ``join.py`` - uneven inputs
* ``saga.py`` - SAGA and its relatives with samples on several ranks

``run_local``, ``meter``, ``reset_meter`` and the ``link=`` argument are this package's own;
everything else has PyTorch's name and means what it means there.
"""

from __future__ import annotations

import os
from typing import Any

from ._debug import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from ._link import Link, parse_link
from ._native import CollectiveError, CollectiveMismatch, CollectiveTimeout, available
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    barrier,
    monitored_barrier,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)
from .exchange import all_to_all, all_to_all_single
from .futures import Future
from .groups import new_group, new_subgroups, new_subgroups_by_enumeration
from .local import run_local
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .process_group import (
    GroupMember,
    ProcessGroup,
    ReduceOp,
    _get_default_group,
    default_pg_timeout,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
)
from .rooted import broadcast, gather, reduce, scatter
from .work import Work
from .world import destroy_process_group, init_process_group, is_initialized

__all__ = [
    "CollectiveError",
    "CollectiveMismatch",
    "CollectiveTimeout",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "Future",
    "GroupMember",
    "Link",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_debug_level",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "meter",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "parse_link",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "reset_meter",
    "run_local",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
]

# The names by which PyTorch scripts catch what a failed collective raises.
DistError = DistBackendError = CollectiveError


def is_available() -> bool:
    """Whether communication can be used, that is whether the compiled core is there."""
    return available()


def is_mpi_available() -> bool:
    """Whether ranks can be processes started by ``mpirun``; looks for mpi4py and the extension,
    imports neither.
    """
    from importlib.util import find_spec

    return (
        available() and find_spec("mpi4py") is not None and find_spec("minitorch._mpi") is not None
    )


def is_gloo_available() -> bool:
    """Whether ``backend="gloo"`` works: it names whatever transport is there."""
    return available()


def is_nccl_available() -> bool:
    """``False``: the only device is the CPU."""
    return False


def is_ucc_available() -> bool:
    """``False``."""
    return False


def is_xccl_available() -> bool:
    """``False``."""
    return False


def is_torchelastic_launched() -> bool:
    """``False``: ranks are started by ``mpirun``, ``minitorch launch`` or ``run_local``."""
    return False


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank's number on its machine, as the launcher says.

    Raises
    ------
    RuntimeError
        If no launcher said it and there is no ``fallback_rank``.
    """
    for name in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work."
    )


def meter() -> dict[str, dict[str, int]]:
    """What the calling rank has sent and received since it joined, or since :func:`reset_meter`.

    Returns
    -------
    dict
        By operation ("all_reduce", "broadcast", ...): ``calls``, ``messages_sent``, ``bytes_sent``,
        ``bytes_received`` (data only), ``header_bytes``.

    Examples
    --------
    >>> import minitorch as torch, minitorch.distributed as dist
    >>> def program(rank):
    ...     dist.all_reduce(torch.ones(1000))
    ...     return dist.meter()["all_reduce"]["bytes_sent"]
    >>> dist.run_local(program, 2)
    [4000, 4000]
    """
    return _get_default_group()._engine.meter()


def reset_meter() -> None:
    """Set the calling rank's meter to zero."""
    _get_default_group()._engine.reset_meter()


def __getattr__(name: str) -> Any:
    # A face, resolved late: the model wrapper sits on top of this package.
    if name == "DistributedDataParallel":
        from .ddp import DistributedDataParallel

        return DistributedDataParallel
    if name == "GradBucket":
        from ._ddp.hooks import GradBucket

        return GradBucket
    if name == "BuiltinCommHookType":
        from ._ddp.builtin_hooks import BuiltinCommHookType

        return BuiltinCommHookType
    if name == "_compute_bucket_assignment_by_size":
        from ._ddp.bucketing import compute_bucket_assignment_by_size

        return compute_bucket_assignment_by_size
    raise AttributeError(f"module 'minitorch.distributed' has no attribute {name!r}")
