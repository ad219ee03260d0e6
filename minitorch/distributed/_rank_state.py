"""Who am I? The default group and its surroundings, kept per rank, that is per thread.

In PyTorch a rank is a process and its default group a global. Here a rank may also be a thread
(``run_local``), so the state hangs on the thread:

* a thread that ``run_local`` started is bound to the state of its rank;
* any other thread (the main one, a user's helper) sees the state of the process, as in PyTorch;
* a helper thread of a ``run_local`` rank joins its rank by ``inherit(current())``. Rank and group
  are inherited, grad mode and generator are not.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from ..random.callers import set_rank_lookup

if TYPE_CHECKING:
    from .process_group import ProcessGroup


class Seat(Protocol):
    """A place in a world that someone else (``run_local``) has already laid out."""

    rank: int
    world_size: int

    def start(self) -> Any:
        """Return a fresh ``_core.Engine``; the n-th calls of all ranks belong together."""


class RankState:
    """What is global in PyTorch.

    Attributes
    ----------
    default_group : ProcessGroup or None
        What ``group=None`` means.
    groups : list of ProcessGroup
        Every live group of this rank, the default one first.
    engine : _core.Engine or None
        The communication engine that all groups of this rank share.
    seat : Seat or None
        Set for a rank of ``run_local``.
    announced : bool
        Whether the script itself has called ``init_process_group`` (``run_local`` does it
        beforehand).
    backend : str
        What ``get_backend`` answers.
    guard : object or None
        Ends the job when this rank fails (processes only, see ``_failure.py``).
    in_flight : list
        Works that were started and perhaps never waited for; the end of the rank waits.
    parent : _core.Work or None
        While a continuation runs: what it continues. Collectives it launches are numbered under
        that one, so that they cannot cross what other ranks launch next.
    keep : object
        Whatever must live as long as the engine, such as MPI communicators.
    """

    __slots__ = (
        "announced",
        "backend",
        "default_group",
        "engine",
        "groups",
        "guard",
        "in_flight",
        "keep",
        "parent",
        "seat",
    )

    def __init__(self, seat: Seat | None = None) -> None:
        self.default_group: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.engine: Any = None
        self.seat = seat
        self.announced = False
        self.backend = "undefined"
        self.guard: Any = None
        self.in_flight: list[Any] = []
        self.parent: Any = None
        self.keep: Any = None

    def started(self, native: Any) -> None:
        """Remember a work until it is over; nobody may ever wait for it."""
        works = self.in_flight
        works.append(native)
        if len(works) % 64 == 0:
            works[:] = [work for work in works if not work.is_completed()]

    def finish(self) -> None:
        """Wait for whatever was started and is not over: a peer may still need it.

        Raises
        ------
        CollectiveError
            If some of it fails.
        """
        works, self.in_flight = self.in_flight, []
        for work in works:
            if not work.is_completed():
                work.wait()


PROCESS = RankState()


class _Current(threading.local):
    # A class attribute: what a thread sees to which nobody has bound a state of its own.
    state: RankState = PROCESS


_current = _Current()


def current() -> RankState:
    """The state of the rank to which the calling thread belongs."""
    return _current.state


def inherit(state: RankState) -> None:
    """Make the calling thread a helper of the rank that owns ``state``."""
    _current.state = state


def release() -> None:
    """Undo :func:`inherit`: the calling thread sees the process's state again."""
    _current.state = PROCESS


def _default_rank() -> int:
    group = _current.state.default_group
    return 0 if group is None else max(group.rank(), 0)


# Layers that draw by address (``random/callers.py``) ask which rank they are on.
set_rank_lookup(_default_rank)
