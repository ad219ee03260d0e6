"""`trace(path)`: record what all ranks do, and put it into one file.

Costs of the recording itself: about a microsecond per event and rank. Of its start and its stop: a
few round trips per rank to compare clocks (clocks.py); at the stop every rank's events travel to
rank 0 (gather of pickled lists).
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

from . import core_events, instrument
from .chrome import write
from .clocks import Mapping, Offset, measure_offsets
from .events import Event, Timeline
from .recorder import Recorder, current, set_current

__all__ = ["trace"]


class trace:
    """Record a timeline of all ranks.

    Entering and leaving are collective calls when a process group exists: every rank of it traces
    the same stretch. Rank 0 writes the file. Forward, backward, optimizer steps, waits for data,
    gradients and buckets becoming ready, collectives and the waits for them are recorded without
    further ado; `record_function` adds names of your own.

    If the body raises, nobody is asked any more, since other ranks may be anywhere: each rank that
    raised writes what it has, rank 0 to `path`, rank r to `path` with ``.rank<r>`` before the
    suffix, and the exception goes on.

    Parameters
    ----------
    path : path, optional
        Where to write the Chrome trace; None keeps it in memory only.
    process_group : ProcessGroup, optional
        The default group if None and one exists; otherwise a world of one is recorded.
    metadata : dict, optional
        Stored in the file, for `summarize` to show; what JSON can hold.

    Attributes
    ----------
    timeline : Timeline
        After leaving: on rank 0 the events of all ranks, on the others their own.

    Raises
    ------
    RuntimeError
        This rank records already.

    Examples
    --------
    >>> from minitorch import profiler
    >>> with profiler.trace() as recording:
    ...     with profiler.record_function("nothing"):
    ...         pass
    >>> [event.name for event in recording.timeline.events]
    ['nothing']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        process_group: Any = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.process_group = process_group
        self.metadata = dict(metadata or {})
        self.timeline = Timeline()
        self._offsets: dict[int, Offset] = {}

    def __enter__(self) -> trace:
        if current() is not None:
            raise RuntimeError(
                "profiler.trace: this rank is recording already; traces do not nest."
            )
        # This room lies below minitorch.distributed and does not import it. If nobody has, there is
        # no group either.
        loaded = sys.modules.get("minitorch.distributed")
        self._dist: Any = loaded if loaded is not None and loaded.is_initialized() else None
        self._world = self._dist.get_world_size(self.process_group) if self._dist else 1
        rank = self._dist.get_rank(self.process_group) if self._dist else 0
        if self._world > 1:
            self._offsets = measure_offsets(self._dist, self.process_group)
        self._recorder = Recorder(rank)
        instrument.install()
        try:
            core_events.start(self._dist, self.process_group)
        except BaseException:
            instrument.remove()
            raise
        set_current(self._recorder)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        set_current(None)
        instrument.remove()
        events = self._recorder.finished() + core_events.stop(
            self._recorder.rank, self._dist, self.process_group
        )
        events.sort(key=lambda event: (event.begin, -event.end))
        self.timeline = Timeline(events, self._described(), complete=True)
        if kind is not None:
            self._write_alone()
            return
        if self._world > 1:
            try:
                self._gather(events)
            except BaseException:
                self._write_alone()
                raise
        if self.path is not None and self._recorder.rank == 0:
            write(self.timeline, self.path)

    def _described(self) -> dict[str, Any]:
        return {"world_size": self._world} | self.metadata

    def _gather(self, events: list[Event]) -> None:
        """Bring all events to rank 0, on rank 0's clock."""
        dist, group = self._dist, self.process_group
        size, root = dist.get_world_size(group), dist.get_process_group_ranks(group)[0]
        stop = measure_offsets(dist, group)
        mine = (platform.node(), events)
        if self._recorder.rank != 0:
            dist.gather_object(mine, None, dst=root, group=group)
            return
        gathered: list[Any] = [None] * size
        dist.gather_object(mine, gathered, dst=root, group=group)
        merged = list(events)
        for rank in range(1, size):
            clock = Mapping(self._offsets[rank], stop[rank])
            merged += [e.moved(clock(e.begin) - e.begin) for e in gathered[rank][1]]
        merged.sort(key=lambda event: (event.begin, -event.end))
        self.timeline.events = merged
        self.timeline.metadata["hosts"] = [host for host, _ in gathered]
        self.timeline.metadata["clock_error_ns"] = max(
            o.error for o in (*self._offsets.values(), *stop.values())
        )

    def _write_alone(self) -> None:
        """Write this rank's part, whatever the others do; never replaces the exception that is
        under way.
        """
        self.timeline.complete = self._world == 1
        self.timeline.metadata["ended_by"] = "an exception"
        if self.path is None:
            return
        rank = self._recorder.rank
        path = (
            self.path
            if rank == 0
            else self.path.with_name(f"{self.path.stem}.rank{rank}{self.path.suffix}")
        )
        try:
            write(self.timeline, path)
        except OSError as error:
            warnings.warn(
                f"profiler.trace could not write {path}: {error}", RuntimeWarning, stacklevel=3
            )
