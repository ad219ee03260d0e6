"""Does communication hide under backward? Eight equal layers, a link on which both take the same
time, two processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from .launching import mpi_worker
from .measure import Figure, alternate, ratio_of
from .registry import Settings, benchmark

TARGET = 1.15


@benchmark(
    "overlap",
    "backward with DDP, 8 equal layers, shaped link: at most 1.15 x (longer part + last bucket)",
)
def overlap(settings: Settings) -> Iterator[Figure]:
    """Calibrate a link, then measure on it."""
    with mpi_worker(settings) as worker:
        total = worker.ask("prepare")
        compute = median(worker.ask("compute") for _ in range(5 if settings.quick else 9))
    # With two ranks a ring sends each bucket's bytes once in each direction.
    link = f"{total / compute / 1e6:.3f}MB/s,50us"
    with mpi_worker(settings, link=link) as worker:
        worker.ask("prepare")
        details: list[dict[str, float]] = []

        def both() -> float:
            details.append(worker.ask("both"))
            return details[-1]["seconds"]

        timers = {
            "compute": lambda: worker.ask("compute"),
            "both": both,
            "wire": lambda: worker.ask("wire"),
            "last": lambda: worker.ask("last"),
        }
        rounds = settings.pick(15, 5)
        times = alternate(timers, rounds, warmup=1)
    ideal = [
        max(c, w) + last
        for c, w, last in zip(times["compute"], times["wire"], times["last"], strict=True)
    ]
    ratio, low, high = ratio_of(times["both"], ideal)
    own = {
        part: median(d[part] for d in details[-rounds:]) * 1e3
        for part in ("backward", "communication", "hidden", "exposed")
    }
    alone = {part: median(times[part]) * 1e3 for part in ("compute", "wire", "last")}
    note = (
        f"emulated link {link}, {int(details[-1]['buckets'])} buckets; alone: "
        f"compute {alone['compute']:.0f} ms, wire {alone['wire']:.0f} ms, last bucket "
        f"{alone['last']:.0f} ms; in the step, by clocks of their own: compute "
        f"{own['backward']:.0f}, communication {own['communication']:.0f}, hidden "
        f"{own['hidden']:.0f}, exposed {own['exposed']:.0f} ms"
    )
    yield Figure(
        "overlap",
        "start of backward to last gradient",
        median(times["both"]),
        median(ideal),
        "longer + last bucket",
        ratio,
        low,
        high,
        TARGET,
        True,
        note,
    )
