"""Who records, and the one thing that user code calls while it runs: `record_function`.

A recorder belongs to a rank, that is to a thread. Where none is active, recording costs one look at
a thread-local.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from .events import COMPUTE, Event

__all__ = ["Recorder", "current", "now_ns", "record_function"]

# CLOCK_MONOTONIC on Linux: the clock that the C++ core's steady_clock reads too, so that both
# sides' events can be put on one axis.
now_ns = time.perf_counter_ns

_local = threading.local()


class Recorder:
    """Collects the Python-side events of one rank, on that rank's clock."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.events: list[tuple[str, str, str, int, int, dict[str, Any]]] = []
        self.depth: dict[
            str, int
        ] = {}  # how many of a kind are open, to tell an outermost call from a nested one

    def add(
        self, name: str, category: str, begin: int, end: int, track: str = COMPUTE, **args: Any
    ) -> None:
        """Record one event; times as `now_ns` gives them."""
        self.events.append((track, name, category, begin, end, args))

    def finished(self) -> list[Event]:
        """Return what was recorded so far."""
        return [Event(self.rank, *event) for event in self.events]


def current() -> Recorder | None:
    """Return the recorder of this thread, or None."""
    return getattr(_local, "recorder", None)


def set_current(recorder: Recorder | None) -> Recorder | None:
    """Make `recorder` this thread's; returns the one before."""
    before = current()
    _local.recorder = recorder
    return before


class record_function:
    """Give a stretch of code a name on the timeline; a context manager and a decorator.

    Does nothing, at next to no cost, while no `trace` is recording.

    Parameters
    ----------
    name : str
    args : str, optional
        Free text shown with the event.

    Examples
    --------
    >>> with record_function("augment"):
    ...     pass
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[tuple[Recorder | None, int]] = []

    def __enter__(self) -> record_function:
        self._open.append((current(), now_ns()))
        return self

    def __exit__(self, *exception: object) -> None:
        recorder, begin = self._open.pop()
        if recorder is not None:
            extra = {} if self.args is None else {"args": self.args}
            recorder.add(self.name, "user", begin, now_ns(), **extra)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `function`: each call is an event."""

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded
