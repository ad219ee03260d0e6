"""Benchmarks of one process: the autograd engine and three training steps against PyTorch, and what
DDP adds.

Both sides run the same lines (workers/workloads.py) in processes of their own, with one BLAS thread
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from .measure import Figure, alternate, compare, enough
from .peers import Worker
from .registry import Settings, benchmark
from .workers.workloads import AUTOGRAD_OPS

PYTORCH, OURS = "PyTorch", "minitorch"


def _against_torch(
    settings: Settings,
    name: str,
    what: str,
    target: float,
    rounds: int,
    per: int = 1,
    note: str = "",
) -> Iterator[Figure]:
    with ExitStack() as stack:
        workers = {
            OURS: stack.enter_context(
                Worker.script("framework.py", "minitorch", python=settings.python)
            )
        }
        if settings.torch_python:
            workers[PYTORCH] = stack.enter_context(
                Worker.script("framework.py", "torch", python=settings.torch_python)
            )
        number = enough(
            lambda n: workers[OURS].ask("run", workload=name, number=n),
            0.1 if settings.quick else 0.3,
        )
        timers = {
            side: lambda worker=worker: worker.ask("run", workload=name, number=number) / per
            for side, worker in workers.items()
        }
        times = alternate(timers, rounds, warmup=2)
    if PYTORCH in times:
        yield compare(name, what, times, OURS, PYTORCH, target=target, note=note)
    else:
        absolute = "no PyTorch to compare with (--torch-python): absolute time"
        yield Figure(name, what, median(times[OURS]), target=target, note=absolute)


@benchmark(
    "autograd", "8x8 tensors, per op forward and backward, against PyTorch eager: at most 1.0 x"
)
def autograd(settings: Settings) -> Iterator[Figure]:
    """The engine's own overhead."""
    yield from _against_torch(
        settings, "autograd", "8x8, per op", 1.0, settings.pick(15, 5), per=AUTOGRAD_OPS
    )


@benchmark("mlp", "training step of 784-512-512-10, batch 64, against PyTorch: at most 1.15 x")
def mlp(settings: Settings) -> Iterator[Figure]:
    """Matrix products."""
    yield from _against_torch(
        settings, "mlp", "784-512-512-10, batch 64", 1.15, settings.pick(15, 5)
    )


@benchmark("lstm", "LSTM cell over 100 steps, batch 32, 64 -> 128, against PyTorch: at most 1.15 x")
def lstm(settings: Settings) -> Iterator[Figure]:
    """Many small ops."""
    yield from _against_torch(settings, "lstm", "100 steps, batch 32", 1.15, settings.pick(15, 5))


@benchmark(
    "cnn", "training step of the images trainer's CNN, batch 64, against PyTorch: at most 2 x"
)
def cnn(settings: Settings) -> Iterator[Figure]:
    """Convolutions."""
    yield from _against_torch(
        settings, "cnn", "images trainer, batch 64", 2.0, settings.pick(11, 3)
    )


@benchmark(
    "ddp-overhead",
    "the CNN in DDP over one rank, nothing bypassed, against the bare CNN: at most 1.05 x",
)
def ddp_overhead(settings: Settings) -> Iterator[Figure]:
    """Hooks, buckets and a ring of one."""
    with Worker.script("framework.py", "minitorch", python=settings.python) as worker:
        number = 2 if settings.quick else 5
        timers = {
            name: lambda workload=workload: worker.ask("run", workload=workload, number=number)
            for name, workload in (("DDP", "ddp_cnn"), ("bare", "cnn"))
        }
        times = alternate(timers, settings.pick(21, 5), warmup=2)
    yield compare(
        "ddp-overhead", "CNN, one rank, gradient views", times, "DDP", "bare", target=1.05
    )
