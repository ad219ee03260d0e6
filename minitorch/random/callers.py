"""Parts of an address that a layer cannot know by itself: which rank asks, and for which time.

A layer with masks of its own (``addressed.py``) draws anew at every call, differently on every
rank, and repeats its draws when a run is resumed or when a checkpointed function is run a second
time. :class:`CallCounter` numbers the calls; :func:`rank` names the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["CallCounter", "rank", "recorded_calls", "replayed_calls", "set_rank_lookup"]


def _alone() -> int:
    return 0


_lookup: Callable[[], int] = _alone


def set_rank_lookup(lookup: Callable[[], int]) -> None:
    """Say how the calling thread's rank is found; ``minitorch.distributed`` does, when imported."""
    global _lookup
    _lookup = lookup


def rank() -> int:
    """The calling thread's rank in the default group; 0 without one."""
    return _lookup()


class _Tape(threading.local):
    """What the calling thread is recording, and what it is replaying."""

    def __init__(self) -> None:
        self.recordings: list[list[int]] = []
        self.replay: Iterator[int] | None = None


_tape = _Tape()


class CallCounter:
    """Numbers the calls of one layer: 0, 1, 2, ... and the old numbers again in a replay.

    Attributes
    ----------
    count : int
        How many numbers have been given out; set it to resume.
    """

    __slots__ = ("count",)

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def take(self) -> int:
        """Return the number of this call."""
        number = None if _tape.replay is None else next(_tape.replay, None)
        if number is None:
            number = self.count
            self.count += 1
        for recording in _tape.recordings:
            recording.append(number)
        return number


@contextmanager
def recorded_calls() -> Iterator[list[int]]:
    """Collect the numbers that this thread's calls get meanwhile."""
    numbers: list[int] = []
    _tape.recordings.append(numbers)
    try:
        yield numbers
    finally:
        # By identity: an inner recording that is still empty equals an outer one.
        _tape.recordings[:] = [each for each in _tape.recordings if each is not numbers]


@contextmanager
def replayed_calls(numbers: list[int]) -> Iterator[None]:
    """Give this thread's calls these numbers again, in order; counters stand still."""
    before, _tape.replay = _tape.replay, iter(numbers)
    try:
        yield
    finally:
        _tape.replay = before
