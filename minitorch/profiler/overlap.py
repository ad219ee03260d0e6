"""What a timeline says about its steps: how long each part took, how much was hidden.

A *step* is a backward pass that communicated. Three things are measured, each on events of its own:

- **communication**: the time in which at least one of the step's collectives was on the wire (a
  union: two at once count once),
- **hidden**: the part of it that lay under backward's own computation, that is inside the backward
  event and outside every wait,
- **exposed**: the part that lay under a wait; this is what the step pays for.

None is computed from the others, so that `hidden + exposed` close to `communication` is a check.

The first step is left out of the averages: until buckets are rebuilt there is one bucket per dtype,
and nothing can overlap (PyTorch's rule as well).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from .chrome import load
from .events import COMMUNICATION, COMPUTE, Event, Timeline
from .intervals import Interval, intersect, measure, subtract

__all__ = ["Step", "Summary", "steps_of", "summarize"]


@dataclass(frozen=True)
class Step:
    """One communicating backward pass of one rank; all times in nanoseconds."""

    rank: int
    number: int
    begin: int
    backward: int  # computation only: without the waits
    communication: int
    hidden: int
    exposed: int
    collectives: int
    bytes: int
    forward: int = 0
    optimizer: int = 0
    data: int = 0
    period: int = 0  # from this backward to the next; 0 for the last one


def steps_of(timeline: Timeline, rank: int) -> list[Step]:
    """Cut one rank's events into steps."""
    backwards = timeline.of(rank=rank, category="backward", track=COMPUTE)
    collectives = [e for e in timeline.of(rank=rank, track=COMMUNICATION) if "bucket" in e.args]
    waits = timeline.of(rank=rank, category="wait")
    rest = {
        name: timeline.of(rank=rank, category=name, track=COMPUTE)
        for name in ("forward", "optimizer", "data")
    }
    steps: list[Step] = []
    after = 0
    for i, backward in enumerate(backwards):
        mine = _inside(collectives, backward)
        until = backwards[i + 1].begin if i + 1 < len(backwards) else None
        if not mine:
            continue
        waiting = [wait.interval for wait in _inside(waits, backward)]
        wire: list[Interval] = [event.interval for event in mine]
        computing = subtract([backward.interval], waiting)
        steps.append(
            Step(
                rank=rank,
                number=len(steps),
                begin=backward.begin,
                backward=measure(computing),
                communication=measure(wire),
                hidden=measure(intersect(wire, computing)),
                exposed=measure(intersect(wire, waiting)),
                collectives=len(mine),
                bytes=sum(int(event.args.get("bytes", 0)) for event in mine),
                # What leads to this backward, and what it leads to. Nested events (a layer inside a
                # forward) do not count twice: a union again.
                forward=_between(rest["forward"], after, backward.begin),
                data=_between(rest["data"], after, backward.begin),
                optimizer=_between(rest["optimizer"], backward.end, until),
                period=0 if until is None else until - backward.begin,
            )
        )
        after = backward.end
    return steps


def _inside(events: list[Event], outer: Event) -> list[Event]:
    return [event for event in events if outer.begin <= event.begin < outer.end]


def _between(events: list[Event], begin: int, end: int | None) -> int:
    return measure(
        e.interval for e in events if e.begin >= begin and (end is None or e.begin < end)
    )


@dataclass(frozen=True)
class Summary:
    """Per rank the averages over its steps without the first. Prints as a table."""

    steps: dict[int, list[Step]]
    metadata: dict[str, Any]
    complete: bool = True

    def mean(self, what: str, rank: int | None = None) -> float:
        """Average of one field of `Step` in seconds, over ranks and steps that count; nan without
        any.
        """
        values = [getattr(step, what) for step in self._counted(rank)]
        if what == "period":
            values = [value for value in values if value]
        return fmean(values) / 1e9 if values else float("nan")

    def share_hidden(self, rank: int | None = None) -> float:
        """Hidden over communication, both summed; nan if nothing was communicated."""
        counted = self._counted(rank)
        total = sum(step.communication for step in counted)
        return sum(step.hidden for step in counted) / total if total else float("nan")

    def collectives(self) -> int:
        """Buckets per step, after the rebuild."""
        return max((step.collectives for step in self._counted(None)), default=0)

    def _counted(self, rank: int | None) -> list[Step]:
        chosen = self.steps.values() if rank is None else [self.steps[rank]]
        return [step for steps in chosen for step in (steps[1:] if len(steps) > 1 else steps)]

    def rows(self) -> list[tuple[str, list[str]]]:
        """Return the lines of the table: a label, and a text for each rank."""
        columns: list[tuple[str, Callable[[int], str]]] = [
            ("steps", lambda r: str(len(self.steps[r]))),
            (
                "buckets per step",
                lambda r: str(max((s.collectives for s in self.steps[r][1:]), default=0)),
            ),
            ("gradients, KiB per step", lambda r: f"{self.mean('bytes', r) * 1e9 / 1024:.1f}"),
        ]
        for label, what in (
            ("data wait", "data"),
            ("forward", "forward"),
            ("backward (compute)", "backward"),
            ("optimizer", "optimizer"),
            ("communication", "communication"),
            ("  hidden under backward", "hidden"),
            ("  exposed (waited for)", "exposed"),
            ("step to step", "period"),
        ):
            columns.append((f"{label}, ms", lambda r, what=what: f"{self.mean(what, r) * 1e3:.3f}"))  # type: ignore[misc]
        columns.append(("share hidden", lambda r: f"{self.share_hidden(r):.0%}"))
        return [
            (label, [text(rank).replace("nan", "-") for rank in self.steps])
            for label, text in columns
        ]

    def __str__(self) -> str:
        if not any(self.steps.values()):
            return "no step: the timeline holds no backward pass that communicated"
        head = ("means without the first step", [f"rank {rank}" for rank in self.steps])
        lines = [
            f"{label:<28}" + "".join(f"{text:>12}" for text in texts)
            for label, texts in (head, *self.rows())
        ]
        if not self.complete:
            lines.append("the recording ended with an exception: other ranks' events are missing")
        return "\n".join(lines)


def summarize(source: str | os.PathLike[str] | Timeline) -> Summary:
    """Return the sums over a timeline, or over the file that holds it.

    Parameters
    ----------
    source : path or Timeline

    Raises
    ------
    FileNotFoundError, ValueError
        No such file; not one of our timelines.
    """
    timeline = source if isinstance(source, Timeline) else load(source)
    steps = {rank: steps_of(timeline, rank) for rank in timeline.ranks}
    return Summary(steps, dict(timeline.metadata), timeline.complete)
