"""Benchmarks of interpretation: the agglomeration against the published package.

Both sides grow the same groups (it is checked before anything is measured), in processes of their
own with one thread each. The peer is optional: PyPI `acd` 0.0.2 with its own needs (scikit-image,
scipy, tqdm) where `--torch-python` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from .measure import Figure, alternate, compare, enough
from .peers import Worker, WorkerError
from .registry import Settings, benchmark

OURS, PEER = "minitorch", "acd"
_SIZES = (("text", "15 words, LSTM 300-128", 20.0), ("image", "28 x 28 pixels, CNN", 2.0))


@benchmark("acd", "the agglomeration against the published package: 20 x (text), 2 x (MNIST)")
def agglomeration(settings: Settings) -> Iterator[Figure]:
    """The same groups on both sides."""
    rounds = settings.pick(7, 3)
    with Worker.script("agglomeration.py", "minitorch", python=settings.python) as mine:
        peer = _reference(settings)
        try:
            for name, size, target in _SIZES:
                workers = {OURS: mine} if peer is None else {OURS: mine, PEER: peer}
                groups = {side: each.ask("groups", workload=name) for side, each in workers.items()}
                same = len({str(each) for each in groups.values()}) == 1
                timers = {
                    side: _timer(worker, name, 0.1 if settings.quick else 0.5)
                    for side, worker in workers.items()
                }
                times = alternate(timers, rounds)
                if peer is None:
                    note = "no acd 0.0.2 to compare with (--torch-python): absolute time"
                    yield Figure("acd", size, median(times[OURS]), target=target, note=note)
                    continue
                note = "" if same else f"{size}: the two sides grew different groups"
                yield compare("acd", size, times, OURS, PEER, target=target, most=False, note=note)
        finally:
            if peer is not None:
                peer.close()


def _timer(worker: Worker, workload: str, seconds: float) -> Callable[[], float]:
    """Return a measurement of one workload that lasts about so long."""

    def run(number: int) -> float:
        return worker.ask("run", workload=workload, number=number)

    number = enough(run, seconds)
    return lambda: run(number)


def _reference(settings: Settings) -> Worker | None:
    if settings.torch_python is None:
        return None
    try:
        return Worker.script("agglomeration.py", "reference", python=settings.torch_python)
    except WorkerError:
        return None
