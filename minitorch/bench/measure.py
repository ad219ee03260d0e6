"""Measuring two things against each other on a machine that does other things too.

Contenders take turns (A, B, A, B, ...), so that both see the same weather; each round gives one
ratio, and the median of the ratios is the result. What a single figure is worth is said by the
spread of the rounds: `low` and `high` are the quartiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

__all__ = ["Figure", "alternate", "compare", "enough", "ratio_of"]

Timer = Callable[[], float]


def alternate(
    contenders: Mapping[str, Timer], rounds: int, warmup: int = 1
) -> dict[str, list[float]]:
    """Let each contender measure itself once per round; the first `warmup` rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warmup + rounds):
        for name, timer in contenders.items():
            seconds = timer()
            if number >= warmup:
                times[name].append(seconds)
    return times


def enough(run: Callable[[int], float], seconds: float = 0.05, most: int = 10_000) -> int:
    """Return how many repetitions make one measurement last about `seconds`; `run(number)` gives
    seconds per repetition.
    """
    number = 1
    while True:
        each = max(run(number), 1e-9)
        if each * number >= seconds / 4 or number >= most:
            return max(1, min(most, round(seconds / each)))
        number = min(most, number * 4)


def ratio_of(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Return median, lower and upper quartile of a[i] / b[i]."""
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    if len(ratios) < 2:
        return ratios[0], ratios[0], ratios[0]
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return median(ratios), low, high


@dataclass(frozen=True)
class Figure:
    """One line of the result.

    `ratio` is what `target` speaks of; `most` says whether it is an upper limit (a time over a
    time) or a lower one (a speed-up). Without a peer to compare with, `ratio` is None and only
    `ours` (seconds) is told.
    """

    benchmark: str
    name: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    target: float | None = None
    most: bool = True
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without target or ratio."""
        if self.ratio is None or self.target is None:
            return None
        return self.ratio <= self.target if self.most else self.ratio >= self.target

    def as_json(self) -> dict[str, Any]:
        """Everything, for a file."""
        return asdict(self) | {"met": self.met}


def compare(
    benchmark: str,
    name: str,
    times: Mapping[str, list[float]],
    ours: str,
    peer: str,
    *,
    target: float | None = None,
    most: bool = True,
    note: str = "",
) -> Figure:
    """Make a figure of two contenders: ours / peer where `target` is a limit on time, peer / ours
    for a speed-up.
    """
    a, b = (times[ours], times[peer]) if most else (times[peer], times[ours])
    ratio, low, high = ratio_of(a, b)
    return Figure(
        benchmark,
        name,
        median(times[ours]),
        median(times[peer]),
        peer,
        ratio,
        low,
        high,
        target,
        most,
        note,
    )
