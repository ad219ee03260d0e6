"""Worker under mpiexec: our collectives and MPI's own. Rank 0 is spoken to, the others follow.

Others wait for orders by probing with a pause, not inside a collective: MPI's waiting would burn
the core on which something else is being measured.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from protocol import answer, channel, serve, timed  # type: ignore[import-not-found]

ANSWERS = channel()  # before MPI starts: it may print warnings

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402
from overlap import OverlapRun  # type: ignore[import-not-found]  # noqa: E402
from reducing import ReducingRun  # type: ignore[import-not-found]  # noqa: E402

import minitorch as torch  # noqa: E402
import minitorch.distributed as dist  # noqa: E402

ORDERS = MPI.COMM_WORLD.Dup()


def allreduce(who: str, size: int, number: int) -> float:
    """Seconds per all-reduce of `size` bytes; `who` is ours, in_place or out_of_place."""
    data, result = np.zeros(size // 4, dtype=np.float32), np.zeros(size // 4, dtype=np.float32)
    tensor = torch.from_numpy(data)
    step = {
        "ours": lambda: dist.all_reduce(tensor),
        "in_place": lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, data),
        "out_of_place": lambda: MPI.COMM_WORLD.Allreduce(data, result),
    }[who]
    ORDERS.Barrier()
    step()
    ORDERS.Barrier()
    return timed(step, number)


def about() -> dict[str, Any]:
    """Which MPI this is."""
    library = " ".join(MPI.Get_library_version().split("\n")[0].strip("\x00 ").split())
    return {"mpi": library, "ranks": MPI.COMM_WORLD.Get_size(), "host": MPI.Get_processor_name()}


def main() -> None:
    """Serve on rank 0, follow on the others."""
    dist.init_process_group(backend="mpi")
    rank, size = ORDERS.Get_rank(), ORDERS.Get_size()
    handlers: dict[str, Any] = {
        "allreduce": allreduce,
        "about": about,
        **OverlapRun().handlers(),
        **ReducingRun().handlers(),
    }

    def on_all(name: str) -> Any:
        def ask(**arguments: Any) -> Any:
            for peer in range(1, size):
                ORDERS.send({"do": name, **arguments}, dest=peer)
            return handlers[name](**arguments)

        return ask

    if rank == 0:
        serve({name: on_all(name) for name in handlers}, ANSWERS)
        for peer in range(1, size):
            ORDERS.send(None, dest=peer)
    else:
        while True:
            while not ORDERS.Iprobe(source=0):
                time.sleep(0.001)
            request = ORDERS.recv(source=0)
            if request is None:
                break
            outcome = answer(handlers, request)
            if "error" in outcome:
                print(outcome["traceback"], file=sys.stderr, flush=True)
                os._exit(1)  # the other ranks are inside a collective that will not end
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
