"""A timeline as a Chrome trace file, and back. Opens in https://ui.perfetto.dev and in
chrome://tracing.

The format is Google's "Trace Event Format": `traceEvents` is a list of objects, of which five kinds
(`ph`) are used:

- ``M`` metadata: the names and the order of processes (ranks) and threads (tracks),
- ``X`` a complete event: `ts` and `dur` in microseconds; an event inside another one is drawn under
  it,
- ``i`` an instant,
- ``s`` / ``f`` the tail and the head of an arrow, paired by `id`, here from "bucket ready" to that
  bucket's collective.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from .events import COMMUNICATION, COMPUTE, Event, Timeline, lanes

__all__ = ["arrows", "load", "to_chrome", "write"]

FORMAT = 1  # of what stands under "minitorch" in the file


def arrows(events: list[Event]) -> list[tuple[Event, Event]]:
    """Pair each "bucket ready" with the collective that it set off, per rank and bucket, in order
    of time.

    A bucket of which one side is missing (the recording began or ended in between) gets no arrow.
    """
    waiting: dict[tuple[int, Any], list[Event]] = defaultdict(list)
    pairs = []
    for event in sorted(
        events, key=lambda e: (e.end if e.category == "ready" else e.begin, e.category != "ready")
    ):
        bucket = event.args.get("bucket")
        if bucket is None:
            continue
        if event.category == "ready":
            waiting[event.rank, bucket].append(event)
        elif event.track == COMMUNICATION and waiting[event.rank, bucket]:
            # The newest: an older one that got no collective belongs to a backward that raised.
            pairs.append((waiting[event.rank, bucket][-1], event))
            waiting[event.rank, bucket].clear()
    return pairs


def _tracks(events: list[Event]) -> dict[str, list[list[Event]]]:
    """Per track its lanes, compute first, communication second."""
    by_track: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_track[event.track].append(event)
    order = sorted(by_track, key=lambda track: (track != COMPUTE, track != COMMUNICATION, track))
    return {track: lanes(by_track[track]) for track in order}


def to_chrome(timeline: Timeline) -> dict[str, Any]:
    """Return the JSON object of a Chrome trace: process = rank, thread = track."""
    out: list[dict[str, Any]] = []
    origin = min((event.begin for event in timeline.events), default=0)
    place: dict[int, tuple[int, int]] = {}  # id(event) -> (pid, tid)

    def micro(nanoseconds: int) -> float:
        return (nanoseconds - origin) / 1000

    for rank in timeline.ranks:
        out.append(
            {
                "ph": "M",
                "pid": rank,
                "tid": 0,
                "name": "process_name",
                "args": {"name": f"rank {rank}"},
            }
        )
        out.append(
            {
                "ph": "M",
                "pid": rank,
                "tid": 0,
                "name": "process_sort_index",
                "args": {"sort_index": rank},
            }
        )
        tid = 0
        for track, spread in _tracks(timeline.of(rank=rank)).items():
            for number, lane in enumerate(spread):
                tid += 1
                name = track if number == 0 else f"{track} ({number + 1})"
                out.append(
                    {
                        "ph": "M",
                        "pid": rank,
                        "tid": tid,
                        "name": "thread_name",
                        "args": {"name": name},
                    }
                )
                out.append(
                    {
                        "ph": "M",
                        "pid": rank,
                        "tid": tid,
                        "name": "thread_sort_index",
                        "args": {"sort_index": tid},
                    }
                )
                for event in lane:
                    place[id(event)] = (rank, tid)
                    entry: dict[str, Any] = {
                        "pid": rank,
                        "tid": tid,
                        "name": event.name,
                        "cat": event.category,
                    }
                    if event.end > event.begin:
                        entry |= {"ph": "X", "ts": micro(event.begin), "dur": event.duration / 1000}
                    else:
                        entry |= {"ph": "i", "s": "t", "ts": micro(event.begin)}
                    out.append(entry | {"args": event.args | {"track": track}})
    for number, (ready, collective) in enumerate(arrows(timeline.events)):
        # An arrow's head binds to the slice that encloses its time stamp ("bp": "e").
        for ph, event, moment in (("s", ready, ready.end), ("f", collective, collective.begin)):
            pid, tid = place[id(event)]
            arrow = {
                "ph": ph,
                "pid": pid,
                "tid": tid,
                "ts": micro(moment),
                "id": number,
                "name": "ready",
                "cat": "flow",
            }
            out.append(arrow | ({"bp": "e"} if ph == "f" else {}))
    described = timeline.metadata | {
        "format": FORMAT,
        "complete": timeline.complete,
        "origin_ns": origin,
    }
    return {"traceEvents": out, "displayTimeUnit": "ms", "minitorch": described}


def write(timeline: Timeline, path: str | os.PathLike[str]) -> None:
    """Write `timeline` to `path`, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(to_chrome(timeline), separators=(",", ":")))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Timeline:
    """Read a Chrome trace that `trace` wrote.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is not a Chrome trace, or not one of ours.
    """
    try:
        content = json.loads(Path(path).read_text())
        described = dict(content["minitorch"])
        events = []
        for entry in content["traceEvents"]:
            if entry["ph"] not in "Xi":
                continue
            args = dict(entry["args"])
            begin = round(entry["ts"] * 1000) + described["origin_ns"]
            end = begin + round(entry.get("dur", 0) * 1000)
            events.append(
                Event(
                    entry["pid"], args.pop("track"), entry["name"], entry["cat"], begin, end, args
                )
            )
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{path} is not a timeline written by minitorch.profiler.trace ({reason})"
        ) from error
    for key in ("format", "origin_ns"):
        described.pop(key, None)
    return Timeline(events, complete=described.pop("complete", True), metadata=described)
