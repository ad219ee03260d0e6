"""``link="1Gbit/s,50us"``: how fast and how far an emulated wire is.

A shaped link delays the messages of any transport in software, so that one machine behaves like
several on a slow network. It is an emulation and every output that depends on one should say so.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_PREFIXES = {
    "": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30,
}  # fmt: skip
_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = r"(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)"
# As the field has it: a lower-case b is a bit, an upper-case B a byte.
_RATE = re.compile(_NUMBER + r"\s*(?P<prefix>[kKmMgG]i|[kKmMgG]?)(?P<unit>bit|b|B)(?:/s|ps)")
_TIME = re.compile(_NUMBER + r"\s*(?P<unit>ns|us|µs|ms|s)")

ENVIRONMENT = "MINITORCH_LINK"


@dataclass(frozen=True)
class Link:
    """A shaped wire.

    Attributes
    ----------
    bytes_per_second : float
        What each rank can send and, at the same time, receive; ``inf`` for an unlimited rate.
    latency : float
        Seconds from the last byte's departure to its arrival.
    """

    bytes_per_second: float
    latency: float

    def __str__(self) -> str:
        rate = (
            "unlimited"
            if self.bytes_per_second == float("inf")
            else f"{self.bytes_per_second * 8 / 1e9:g}Gbit/s"
        )
        return f"{rate},{self.latency * 1e6:g}us (emulated)"


def parse_link(text: str, source: str = "link") -> Link:
    """Read ``"RATE,LATENCY"``; either may stand alone.

    Parameters
    ----------
    text : str
        A rate in ``bit/s``, ``kbit/s``, ``Mbit/s``, ``Gbit/s``, ``B/s``, ``kB/s``, ``MB/s``,
        ``GB/s`` (or ``KiB/s``, ...), a latency in ``ns``, ``us``, ``ms``, ``s``.
    source : str
        What to blame in an error message.

    Raises
    ------
    ValueError
        If a part is not understood, is given twice, or is not positive.

    Examples
    --------
    >>> parse_link("1Gbit/s,50us").bytes_per_second
    125000000.0
    """
    rate: float | None = None
    latency: float | None = None
    for part in str(text).split(","):
        part = part.strip()
        if match := _RATE.fullmatch(part):
            if rate is not None:
                raise ValueError(f"{source}={text!r} gives two rates")
            size = 1.0 if match["unit"] == "B" else 1 / 8
            rate = float(match["number"]) * _PREFIXES[match["prefix"].lower()] * size
            if rate <= 0:
                raise ValueError(f"{source}={text!r}: a rate must be positive")
        elif match := _TIME.fullmatch(part):
            if latency is not None:
                raise ValueError(f"{source}={text!r} gives two latencies")
            latency = float(match["number"]) * _TIME_UNITS[match["unit"]]
        else:
            raise ValueError(
                f"{source}={text!r}: cannot read {part!r}. A link is RATE,LATENCY such as "
                "'1Gbit/s,50us'; rates are in "
                "kbit/s, Mbit/s, Gbit/s, kB/s, MB/s or GB/s, latencies in ns, us, ms or s."
            )
    return Link(float("inf") if rate is None else rate, latency or 0.0)


def chosen_link(link: str | Link | None) -> Link | None:
    """The link to use: the argument, else what ``MINITORCH_LINK`` says, else none."""
    if isinstance(link, Link):
        return link
    if link is not None:
        return parse_link(link)
    text = os.environ.get(ENVIRONMENT, "").strip()
    return parse_link(text, ENVIRONMENT) if text else None
