"""Two meters that every trainer wants: a weighted average, a rate that forgives the start."""

from __future__ import annotations

from collections.abc import Callable

from .recorder import now_ns

__all__ = ["Average", "Throughput"]


class Average:
    """A weighted running mean.

    Examples
    --------
    >>> loss = Average()
    >>> loss.update(2.0, weight=3)
    >>> loss.update(6.0, weight=1)
    >>> loss.value
    3.0
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.total, self.weight = 0.0, 0.0

    def update(self, value: float, weight: float = 1) -> None:
        """Add `value`, counted `weight` times (a batch's mean, its size)."""
        self.total += float(value) * weight
        self.weight += weight

    @property
    def value(self) -> float:
        """The mean; nan before the first update."""
        return self.total / self.weight if self.weight else float("nan")


class Throughput:
    """Items per second of the time that is spent between `start` and `stop`.

    Parameters
    ----------
    skip : int
        So many updates are left out at first, together with their time: caches are cold, buckets
        not yet rebuilt.
    clock : callable
        Nanoseconds; replaced in tests.
    """

    def __init__(self, skip: int = 1, clock: Callable[[], int] = now_ns) -> None:
        self.skip, self.clock = skip, clock
        self.items, self.nanoseconds, self.updates = 0, 0, 0
        self._since: int | None = None

    def start(self) -> None:
        """Let the clock run."""
        self._since = self.clock()

    def stop(self) -> None:
        """Hold the clock, e.g. for an evaluation. What `update` has not seen is not counted."""
        self._since = None

    def update(self, items: int) -> None:
        """Count what was done since the last update or start."""
        if self._since is None:
            raise RuntimeError("Throughput.update() without start(): the clock is not running.")
        now = self.clock()
        self.updates += 1
        if self.updates > self.skip:
            self.items += items
            self.nanoseconds += now - self._since
        self._since = now

    @property
    def per_second(self) -> float:
        """Items per second; nan while nothing counts."""
        return self.items / (self.nanoseconds / 1e9) if self.nanoseconds else float("nan")
