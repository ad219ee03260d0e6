"""What a timeline is made of: events, each on one track of one rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["COMMUNICATION", "COMPUTE", "Event", "Timeline", "lanes"]

COMPUTE = "compute"
COMMUNICATION = "communication"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that took place on one rank between two moments.

    Parameters
    ----------
    rank : int
    track : str
        `"compute"` is the rank's own thread, `"communication"` its engine; anything else is a track
        of that name.
    name : str
    category : str
        What colours and sums go by: ``forward``, ``backward``, ``optimizer``, ``data``, ``ready``,
        ``wait``, ``communication``, ``user``, ...
    begin, end : int
        Nanoseconds on rank 0's steady clock. ``begin == end`` is an instant.
    args : dict
        Whatever else is known: ``bucket``, ``bytes``, ``operation``.
    """

    rank: int
    track: str
    name: str
    category: str
    begin: int
    end: int
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> int:
        """Length in nanoseconds."""
        return self.end - self.begin

    @property
    def interval(self) -> tuple[int, int]:
        """`(begin, end)`, for `profiler.intervals`."""
        return self.begin, self.end

    def moved(self, nanoseconds: int) -> Event:
        """Return the same event on a clock that runs `nanoseconds` ahead."""
        return replace(self, begin=self.begin + nanoseconds, end=self.end + nanoseconds)


@dataclass
class Timeline:
    """The events of one recording, of all ranks that could be reached.

    `complete` is False when the recording ended with an exception: then only this rank's events are
    there.
    """

    events: list[Event] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    @property
    def ranks(self) -> list[int]:
        """The ranks that recorded something."""
        return sorted({event.rank for event in self.events})

    def of(
        self, rank: int | None = None, category: str | None = None, track: str | None = None
    ) -> list[Event]:
        """Select by rank, category and track, in order of beginning (an outer event before what it
        contains).
        """
        chosen = [
            event
            for event in self.events
            if (rank is None or event.rank == rank)
            and (category is None or event.category == category)
            and (track is None or event.track == track)
        ]
        return sorted(chosen, key=lambda event: (event.begin, -event.end))


def lanes(events: list[Event]) -> list[list[Event]]:
    """Spread the events of one track over as few lanes as a viewer needs.

    Within a lane two events are either apart or one inside the other; viewers draw an event that
    *half* overlaps another one wrongly. Several collectives may be in flight at a time, so the
    communication track needs this.
    """
    spread: list[list[Event]] = []
    open_ends: list[
        list[int]
    ] = []  # per lane, the ends of the events that are still open, outermost first
    for event in sorted(events, key=lambda e: (e.begin, -e.end)):
        for lane, ends in zip(spread, open_ends, strict=True):
            while ends and ends[-1] <= event.begin:
                ends.pop()
            if not ends or event.end <= ends[-1]:
                lane.append(event)
                ends.append(event.end)
                break
        else:
            spread.append([event])
            open_ends.append([event.end])
    return spread
