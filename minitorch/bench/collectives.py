"""All-reduce between two processes of one machine, against the same MPI's own and against gloo."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from .launching import mpi_worker
from .measure import Figure, alternate, compare, enough
from .peers import Worker
from .registry import Settings, benchmark

KiB, MiB = 2**10, 2**20
# bytes, target against MPI: (ratio, is it an upper limit on time?)
SIZES: tuple[tuple[int, tuple[float, bool] | None], ...] = (
    (4, (3.0, True)),
    (KiB, None),
    (64 * KiB, None),
    (MiB, (1.0, True)),
    (16 * MiB, (1.4, False)),
    (64 * MiB, (1.4, False)),
)
GLOO_SPEEDUP = 3.0


def size_text(size: int) -> str:
    """4 B, 64 KiB, 16 MiB."""
    for unit, text in ((MiB, "MiB"), (KiB, "KiB")):
        if size >= unit:
            return f"{size // unit} {text}"
    return f"{size} B"


class Gloo:
    """Two PyTorch processes over gloo; asked together."""

    def __init__(self, stack: ExitStack, python: str) -> None:
        store = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "store"
        # A worker is ready only when all have met, so all are started before the first is waited
        # for.
        with ThreadPoolExecutor(2) as pool:
            starting = [
                pool.submit(Worker.script, "gloo.py", str(rank), "2", str(store), python=python)
                for rank in range(2)
            ]
        self.workers = [stack.enter_context(future.result()) for future in starting]

    def allreduce(self, size: int, number: int) -> float:
        """Seconds per all-reduce, of the slower rank."""
        for worker in self.workers:
            worker.send("allreduce", size=size, number=number)
        return max(worker.receive() for worker in self.workers)


@benchmark(
    "allreduce",
    "all-reduce, 2 processes, against MPI_Allreduce (the better of in place and not) and gloo",
)
def allreduce(settings: Settings) -> Iterator[Figure]:
    """Yield two figures per size."""
    with ExitStack() as stack:
        mpi = stack.enter_context(mpi_worker(settings))
        library = mpi.ask("about")["mpi"]
        gloo = Gloo(stack, settings.torch_python) if settings.torch_python else None
        for size, target in SIZES if not settings.quick else SIZES[:-1]:
            yield from _one_size(settings, mpi, gloo, size, target, library)


def _one_size(
    settings: Settings,
    mpi: Worker,
    gloo: Gloo | None,
    size: int,
    target: tuple[float, bool] | None,
    library: str,
) -> Iterator[Figure]:
    def run(who: str, number: int) -> float:
        return mpi.ask("allreduce", who=who, size=size, number=number)

    number = enough(lambda n: run("out_of_place", n), 0.03 if settings.quick else 0.1, most=5000)
    timers: dict[str, Any] = {
        who: lambda who=who: run(who, number) for who in ("ours", "in_place", "out_of_place")
    }
    if gloo is not None:
        few = enough(lambda n: gloo.allreduce(size, n), 0.03 if settings.quick else 0.1, most=5000)
        timers["gloo"] = lambda: gloo.allreduce(size, few)
    times = alternate(timers, settings.pick(15, 5), warmup=2)
    better = min(("in_place", "out_of_place"), key=lambda who: median(times[who]))
    limit, most = target or (None, True)
    named = dict(times) | {"MPI": times[better]}
    text = size_text(size)
    yield compare(
        "allreduce",
        f"{text} vs MPI",
        named,
        "ours",
        "MPI",
        target=limit,
        most=most,
        note=f"{better}, {library}"[:60],
    )
    if gloo is not None:
        yield compare(
            "allreduce", f"{text} vs gloo", named, "ours", "gloo", target=GLOO_SPEEDUP, most=False
        )
