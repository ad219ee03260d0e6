"""Colours of scores and of segments, for light and dark backgrounds.

Scores run from red through the background's own shade to blue: a pair that readers with any of the
common colour deficiencies tell apart. Equal distances from zero get equal strength, whatever the
sign, since the limits are symmetric. Segments have Okabe and Ito's palette, made for the same
readers, and its lighter or darker shades after that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["THEMES", "Palette", "Theme", "hex_color", "segment_color"]

Rgb = tuple[float, float, float]


@dataclass(frozen=True)
class Theme:
    """Background, text, lines, and the stops of the diverging scale from -1 to 1."""

    background: str
    text: str
    faint: str
    line: str
    stops: tuple[str, ...]


THEMES = {
    "light": Theme(
        "#ffffff",
        "#1a1a1a",
        "#767676",
        "#1a1a1a",
        ("#67001f", "#b51f2e", "#dd6f59", "#f7b799", "#f7f7f7")
        + ("#a7d0e4", "#4c99c6", "#2369ad", "#053061"),
    ),
    "dark": Theme(
        "#15171c",
        "#ededed",
        "#9a9a9a",
        "#c8c8c8",
        ("#ffb59c", "#f4775c", "#c33c3a", "#772029", "#2b2c30")
        + ("#1b4a78", "#2c74b3", "#5aa5dc", "#a9d6f5"),
    ),
}

# Okabe and Ito, without black; then the same, mixed with white.
_SEGMENTS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")


def rgb(color: str) -> Rgb:
    """Turn "#rrggbb" into three numbers from 0 to 1."""
    return tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))  # type: ignore[return-value]


def hex_color(color: Iterable[float]) -> str:
    """Turn three numbers from 0 to 1 into "#rrggbb"."""
    return "#" + "".join(f"{round(255 * min(max(float(part), 0.0), 1.0)):02x}" for part in color)


def luminance(color: str) -> float:
    """Relative luminance, 0 for black to 1 for white (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast of two colours, 1 (none) to 21 (black and white); text needs 4.5 (WCAG 2)."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def segment_color(number: int) -> str:
    """Return the colour of segment 1, 2, ...; 21 are distinct, then they repeat."""
    round_, place = divmod((number - 1) % (3 * len(_SEGMENTS)), len(_SEGMENTS))
    base = np.array(rgb(_SEGMENTS[place]))
    mixed = (base, base + 0.5 * (1 - base), base * 0.55)[round_]
    return hex_color(mixed)


class Palette:
    """Colours of scores.

    Parameters
    ----------
    limit : float
        The score of the strongest colour, as is its negative; larger scores get it as well.
    theme : {"light", "dark"}

    Examples
    --------
    >>> palette = Palette(2.0)
    >>> palette(0.0), palette(2.0), palette(-9.0)
    ('#f7f7f7', '#053061', '#67001f')
    """

    def __init__(self, limit: float, theme: str = "light") -> None:
        if theme not in THEMES:
            raise ValueError(f"theme must be one of {', '.join(THEMES)}, not {theme!r}")
        if not 0 <= limit < float("inf"):
            raise ValueError(f"limit must be a finite number from 0 up, not {limit}")
        self.limit = float(limit) or 1.0
        self.theme = THEMES[theme]
        self._stops = np.array([rgb(stop) for stop in self.theme.stops])

    @classmethod
    def of(
        cls, scores: Iterable[float], limit: float | None = None, theme: str = "light"
    ) -> Palette:
        """Make one whose limit is the largest absolute score, unless it is given."""
        if limit is None:
            limit = max((abs(float(score)) for score in scores), default=0.0)
        return cls(limit, theme)

    def array(self, scores: np.ndarray) -> np.ndarray:
        """Return the colours of an array of scores, ``(*scores.shape, 3)`` from 0 to 1."""
        places = (np.clip(np.asarray(scores, float) / self.limit, -1, 1) + 1) / 2
        at = places * (len(self._stops) - 1)
        low = np.minimum(at.astype(np.int64), len(self._stops) - 2)
        share = (at - low)[..., None]
        mixed: np.ndarray = self._stops[low] * (1 - share) + self._stops[low + 1] * share
        return mixed

    def __call__(self, score: float) -> str:
        """Return the colour of a score as "#rrggbb"."""
        return hex_color(self.array(np.array(score)))

    def ink(self, score: float) -> str:
        """Return the colour of text on that colour: black or white, whichever is easier to read."""
        ground = self(score)
        return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, ground))
