"""What init_process_group refuses under mpirun; each case ends in the same call, that all ranks
make.
"""

import os
import sys
import time
from datetime import timedelta

import minitorch.distributed as dist

case = sys.argv[1]
rank = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "-1")))
if case == "rank":
    os.environ["RANK"] = "0"
    dist.init_process_group("gloo")  # true on rank 0 only
    dist.barrier()
elif case == "size":
    dist.init_process_group("gloo", rank=rank, world_size=5)
elif case == "late":
    if rank == 1:
        time.sleep(20)
    dist.init_process_group(timeout=timedelta(seconds=1.5))
elif case == "late_after_mpi":
    from mpi4py import MPI  # noqa: F401 - the script starts MPI by itself

    if rank == 1:
        time.sleep(20)
    dist.init_process_group(timeout=timedelta(seconds=1))
elif case == "true":
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT="29500")
    dist.init_process_group("mpi", init_method="env://", rank=rank, world_size=2)
    assert dist.get_backend() == "mpi"
    assert dist.is_mpi_available()
    dist.barrier()
    print(f"rank {dist.get_rank()} fine", flush=True)
