"""The C++ core's part of a timeline: what the engine put on the wire and when.

Each rank's engine has a recorder of its own (csrc/trace), switched on only between `start` and
`stop`. Its clock is the one that Python's `perf_counter_ns` reads, so both kinds of events share an
axis.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .events import COMMUNICATION, Event

__all__ = ["start", "stop"]

# How the reducer labels the collective of a bucket: "bucket 3 [fc1.weight, fc1.bias]".
_BUCKET = re.compile(r"bucket (\d+)(?: \[(.*)\])?")


def _recorder(dist: Any, group: Any) -> Any:
    """Return the engine's recorder, None where there is no engine."""
    if dist is None or not dist.is_initialized():
        return None
    return (group or dist.group.WORLD)._engine.trace


def start(dist: Any, group: Any) -> None:
    """Begin to record, with an empty list."""
    recorder = _recorder(dist, group)
    if recorder is not None:
        recorder.clear()
        recorder.enable()


def stop(rank: int, dist: Any, group: Any) -> list[Event]:
    """End it; return what was recorded."""
    recorder = _recorder(dist, group)
    if recorder is None:
        return []
    recorder.disable()
    events = [_event(rank, *fields) for fields in recorder.events()]
    recorder.clear()
    return events


def _event(
    rank: int, name: str, category: str, track: str, begin: int, end: int, args: str
) -> Event:
    described: dict[str, Any] = json.loads(args) if args else {}
    if track.startswith(COMMUNICATION):
        # The engine numbers its lanes; `events.lanes` makes its own, for all tracks alike.
        track = COMMUNICATION
        bucket = _BUCKET.match(name)
        if bucket is not None:
            described |= {"bucket": int(bucket[1]), "parameters": bucket[2]}
            name = f"{described.get('operation', '')} bucket {bucket[1]}".strip()
    return Event(rank, track, name, category, begin, end, described)
