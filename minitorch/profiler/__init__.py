"""Timelines of a training run, all ranks in one picture, and what they say about it.

>>> from minitorch import profiler
>>> with profiler.trace() as recording:               # or trace("timeline.json"): opens in
ui.perfetto.dev ...     with profiler.record_function("my own part"): ...         pass

`summarize("timeline.json")` gives the sums (communication: hidden, exposed), `draw_timeline` a
picture, and `minitorch trace timeline.json` prints the former. The rooms: `tracing.py` start and
stop, `instrument.py` where Python events come from, `core_events.py` those of the C++ core,
`clocks.py` several machines on one axis, `chrome.py` the file, `overlap.py` and `intervals.py` the
arithmetic, `draw.py`, `meters.py`.
"""

from .chrome import load
from .draw import draw_timeline
from .events import Event, Timeline
from .meters import Average, Throughput
from .overlap import Step, Summary, summarize
from .recorder import record_function
from .tracing import trace

__all__ = [
    "Average",
    "Event",
    "Step",
    "Summary",
    "Throughput",
    "Timeline",
    "draw_timeline",
    "load",
    "record_function",
    "summarize",
    "trace",
]
