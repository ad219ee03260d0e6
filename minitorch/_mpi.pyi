"""The MPI transport (csrc/bindings/mpi_module.cpp). Import ``mpi4py.MPI`` first."""

from minitorch._core import Transport

def mpi_transport(
    data_comm: int,
    control_comm: int,
    count_limit: int = ...,
    *,
    local_rank: int = ...,
    local_world_ranks: list[int] = ...,
    outboxes: list[int] = ...,
    token: int = ...,
) -> Transport: ...
def outbox_bytes(local_size: int) -> int: ...
def library_version() -> str: ...
def comm_handle_bytes() -> int: ...
def thread_level() -> str: ...
