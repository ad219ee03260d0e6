"""A timeline as a picture: two rows per rank, computation above, the wire below.

Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import os
from typing import Any

from .chrome import arrows, load
from .events import COMMUNICATION, COMPUTE, Event, Timeline, lanes
from .overlap import steps_of

__all__ = ["COLORS", "draw_timeline"]

# Distinguishable for colour-blind readers (Okabe & Ito's palette), light enough for text in them.
COLORS = {
    "data": "#bbbbbb",
    "forward": "#56b4e9",
    "backward": "#7aa6d8",
    "wait": "#d55e00",
    "optimizer": "#009e73",
    "communication": "#f2a65a",
    "ready": "#000000",
    "user": "#cc79a7",
}


def draw_timeline(
    source: str | os.PathLike[str] | Timeline, step: int | None = -1, width: float = 11
) -> Any:
    """Draw a timeline, by default its last step.

    Parameters
    ----------
    source : path or Timeline
    step : int or None
        Which communicating step, counted as in a list (-1: the last one); None draws everything.
    width : float
        Of the figure, in inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        Without matplotlib.
    IndexError
        There is no such step.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing a timeline needs matplotlib: pip install matplotlib") from error
    timeline = source if isinstance(source, Timeline) else load(source)
    begin, end = _window(timeline, step)
    events = [e for e in timeline.events if e.end >= begin and e.begin <= end]
    ranks = timeline.ranks
    figure, axes = plt.subplots(figsize=(width, 0.8 + 1.1 * max(len(ranks), 1)))

    place: dict[int, tuple[float, float]] = {}  # id(event) -> its upper and lower edge
    for row, rank in enumerate(ranks):
        for track, top in ((COMPUTE, -row), (COMMUNICATION, -row - 0.42)):
            mine = [e for e in events if e.rank == rank and e.track == track]
            spread = lanes(mine)
            for number, lane in enumerate(spread):
                height = 0.36 / len(spread)
                upper = top - number * height
                open_until: dict[
                    str, int
                ] = {}  # per category: an event inside one of its kind is nested
                for event in lane:
                    place[id(event)] = (upper, upper - height)
                    nested = event.begin < open_until.get(event.category, begin)
                    if not nested:
                        open_until[event.category] = event.end
                    _bar(axes, event, (begin, end), upper - height, height, nested)
    for ready, collective in arrows(events):
        tail, head = place.get(id(ready)), place.get(id(collective))
        if tail and head:
            axes.annotate(
                "",
                xy=((collective.begin - begin) / 1e6, head[0]),
                xytext=((ready.end - begin) / 1e6, tail[1]),
                arrowprops={"arrowstyle": "->", "lw": 0.8, "color": "#444444"},
            )
    positions = [y for row in range(len(ranks)) for y in (-row - 0.18, -row - 0.6)]
    labels = [text for rank in ranks for text in (f"rank {rank}  compute", "wire")]
    axes.set_yticks(positions, labels)
    axes.set(xlim=(0, (end - begin) / 1e6), ylim=(-len(ranks) + 0.1, 0.1), xlabel="ms")
    present = [name for name in COLORS if any(e.category == name for e in events)]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLORS[name]) for name in present]
    names = ["gradient or bucket ready" if name == "ready" else name for name in present]
    axes.legend(
        handles,
        names,
        ncols=len(present),
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        fontsize=8,
        frameon=False,
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    return figure


def _window(timeline: Timeline, step: int | None) -> tuple[int, int]:
    """From where to where to draw: a step reaches from its forward to the end of its optimizer, on
    all ranks.
    """
    if not timeline.events:
        raise ValueError("the timeline is empty")
    if step is None:
        return min(e.begin for e in timeline.events), max(e.end for e in timeline.events)
    begins, ends = [], []
    for rank in timeline.ranks:
        steps = steps_of(timeline, rank)
        if not steps:
            continue
        try:
            chosen = steps[step]
        except IndexError:
            raise IndexError(f"step {step} of {len(steps)} in the timeline") from None
        next_begins = [s.begin for s in steps if s.begin > chosen.begin]
        before = [
            e
            for e in timeline.of(rank=rank, category="forward", track=COMPUTE)
            if e.end <= chosen.begin
        ]
        outermost = [
            e
            for e in before
            if not any(o is not e and o.begin <= e.begin and e.end <= o.end for o in before)
        ]
        # The forward, and the loss that came after it, are the last ones before backward.
        earlier = max((s.begin for s in steps if s.begin < chosen.begin), default=0)
        begins.append(min((e.begin for e in outermost if e.begin > earlier), default=chosen.begin))
        until = min(next_begins, default=None)
        after = [
            e.end
            for e in timeline.of(rank=rank, track=COMPUTE)
            if e.category in ("backward", "optimizer", "wait")
            and e.begin >= chosen.begin
            and (until is None or e.begin < until)
        ]
        ends.append(max(after))
    if not begins:
        return _window(timeline, None)
    return min(begins), max(ends)


def _bar(
    axes: Any, event: Event, window: tuple[int, int], bottom: float, height: float, nested: bool
) -> None:
    """One event: a line for what becomes ready, a bar for the rest, lower where it is nested."""
    left, right = max(event.begin, window[0]), min(event.end, window[1])
    color = COLORS.get(event.category, "#dddddd")
    x, width = (left - window[0]) / 1e6, (right - left) / 1e6
    if event.end == event.begin or event.category == "ready":
        lines = 1.4 if "bucket" in event.args else 0.6
        axes.plot([x + width] * 2, [bottom, bottom + height], color=color, lw=lines, zorder=4)
        return
    inset = height * 0.25 if nested or event.category in ("wait", "user") else 0
    axes.broken_barh(
        [(x, width)],
        (bottom + inset, height - 2 * inset),
        facecolor=color,
        edgecolor="white",
        lw=0.4,
    )
    # A letter takes about 0.75 % of the axis.
    if not nested and (right - left) > 0.0075 * len(event.name) * (window[1] - window[0]):
        middle = bottom + height / 2
        style = {"ha": "center", "va": "center", "fontsize": 7, "zorder": 5}
        axes.text(x + width / 2, middle, event.name, **style)
