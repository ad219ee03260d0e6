"""What options and safeguards of DistributedDataParallel cost, on two processes: unused-parameter
search, fingerprints, and what gradient_as_bucket_view saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from .launching import mpi_worker
from .measure import Figure, alternate, compare, ratio_of
from .registry import Settings, benchmark

MIB = 2**20
FIND_UNUSED_TARGET = 1.05
FINGERPRINT_TARGET = 0.01
VIEW_TARGET = 0.5


@benchmark(
    "find-unused", "DDP step of a CNN with find_unused_parameters: at most 5 % more than without"
)
def find_unused(settings: Settings) -> Iterator[Figure]:
    """Alternate steps of two wrappers of the same network in the same processes."""
    with mpi_worker(settings) as worker:
        times = alternate(
            {
                option: lambda option=option: worker.ask("ddp_step", option=option)  # type: ignore[misc]
                for option in ("find_unused", "plain")
            },
            settings.pick(31, 7),
            warmup=2,
        )
    yield compare(
        "find-unused",
        "forward and backward, batch 64",
        times,
        "find_unused",
        "plain",
        target=FIND_UNUSED_TARGET,
        note="with one parameter that is never used",
    )


@benchmark("fingerprint", "what every collective checks: less than 1 % of an all-reduce of 1 MiB")
def fingerprint(settings: Settings) -> Iterator[Figure]:
    """The fingerprint alone, against an all-reduce that contains one."""
    with mpi_worker(settings) as worker:
        times = alternate(
            {
                "fingerprint": lambda: worker.ask("fingerprint"),
                "all-reduce": lambda: worker.ask("allreduce", who="ours", size=MIB, number=20),
            },
            settings.pick(15, 5),
        )
    ratio, low, high = ratio_of(times["fingerprint"], times["all-reduce"])
    yield Figure(
        "fingerprint",
        "digest, header, comparison",
        median(times["fingerprint"]),
        median(times["all-reduce"]),
        "all-reduce 1 MiB",
        ratio,
        low,
        high,
        FINGERPRINT_TARGET,
        True,
        "two ranks: each makes one and checks one; 32 bytes before the first 4064 of the data",
    )


@benchmark(
    "bucket-view", "gradient_as_bucket_view: one copy less of all gradients, in time and memory"
)
def bucket_view(settings: Settings) -> Iterator[Figure]:
    """Steps in turn, then what they copied and held."""
    with mpi_worker(settings) as worker:
        times = alternate(
            {
                option: lambda option=option: worker.ask("ddp_step", option=option)  # type: ignore[misc]
                for option in ("view", "plain")
            },
            settings.pick(15, 5),
            warmup=2,
        )
        view, plain = (worker.ask("ddp_copies", option=option) for option in ("view", "plain"))
    size = plain["gradients"]
    yield compare(
        "bucket-view",
        "forward and backward, batch 64",
        times,
        "view",
        "plain",
        note=f"held by NumPy after backward: {(plain['held'] - view['held']) / size:.2f} gradient "
        f"sizes less, at the peak {(plain['peak'] - view['peak']) / size:.2f} less",
    )
    ratio = view["copied"] / plain["copied"]
    yield Figure(
        "bucket-view",
        "bytes copied, as traced",
        median(times["view"]),
        median(times["plain"]),
        "plain",
        ratio,
        ratio,
        ratio,
        VIEW_TARGET,
        True,
        f"{view['copied'] / size:.2f} against {plain['copied'] / size:.2f} gradient sizes per step",
    )
