"""How ranks start, and how they divide the work."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import threadpool_limits

import minitorch.distributed as dist
from minitorch.distributed._environment import launcher_evidence
from minitorch.nn.parallel import DistributedDataParallel

from .show import Summary

# How many ranks run on this machine, in the words of MPICH and of Open MPI.
_RANKS_HERE = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")

Main = Callable[[int, argparse.Namespace], Summary]


def launch(main: Main, args: argparse.Namespace, command: argparse.ArgumentParser) -> Summary:
    """Run `main(rank, args)` on every rank; return what this process's (first) rank returned."""
    if args.threads is None:
        dist.init_process_group(link=args.link)
        neighbours = next((int(os.environ[n]) for n in _RANKS_HERE if n in os.environ), 1)
        try:
            with shared_cores(neighbours):
                return main(dist.get_rank(), args)
        finally:
            # After an error the others are not asked: the group's own guard ends the job on all
            # ranks and says why.
            if sys.exc_info()[0] is None or dist.get_world_size() == 1:
                dist.destroy_process_group()
    evidence = launcher_evidence()
    if evidence is not None:
        command.error(
            f"--threads starts ranks in this process, which mpirun has started as one rank of "
            f"several ({evidence}): use either of the two"
        )
    with shared_cores(args.threads):
        return dist.run_local(main, args.threads, args=(args,), link=args.link)[0]


def shared_cores(ranks: int) -> AbstractContextManager[object]:
    """Let matrix products of each rank use its share of the cores, unless the user has decided.

    By default every rank's BLAS takes all cores, and ranks on one machine slow each other down
    several times over. `minitorch launch` sets the same by environment variable.
    """
    if any(name in os.environ for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")):
        return nullcontext()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return threadpool_limits(max(1, cores // ranks), user_api="blas")


def share_of_batch(args: argparse.Namespace) -> int:
    """Return how many samples of a step fall to one rank."""
    world = dist.get_world_size()
    if args.batch_size % world:
        raise SystemExit(
            f"--batch-size {args.batch_size} is the batch of all ranks together, and {world} ranks "
            f"cannot share it equally"
        )
    return args.batch_size // world


def data_parallel(model: Any, args: argparse.Namespace) -> Any:
    """Wrap `model` so that its gradients agree on all ranks; rank 0's weights are sent to all."""
    return DistributedDataParallel(
        model, bucket_cap_mb=args.bucket_cap_mb, gradient_as_bucket_view=True
    )


def rebuild_buckets_now(ddp: Any, inputs: Any) -> None:
    """Let DDP have its first backward before training begins.

    That one has a single bucket per dtype; the next forward rebuilds the buckets in the order in
    which gradients came. With three ranks or more, the rounding of a sum depends on where in its
    bucket a gradient lies: without this, the first step of a resumed run would differ from the same
    step of a run that was never interrupted. Nothing is updated here, and in evaluation mode
    neither statistics nor random numbers are used up.
    """
    training = ddp.training
    ddp.eval()
    output = ddp(inputs)
    scores = output[0] if isinstance(output, tuple) else output  # beside them, a recurrent state
    scores.sum().backward()
    ddp.zero_grad(set_to_none=True)
    ddp.train(training)
