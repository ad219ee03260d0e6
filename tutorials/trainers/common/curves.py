"""Learning curves: a picture where Matplotlib is installed, one line of blocks everywhere."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import minitorch.distributed as dist

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 48) -> str:
    """Draw values as blocks between their smallest and largest, at most `width` of them."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return ""
    step = max(1, math.ceil(len(values) / width))
    low, high = min(finite), max(finite)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(
        _BLOCKS[round((v - low) * scale)] if math.isfinite(v) else " " for v in values[::step]
    )


def draw_curves(
    path: Path | None, curves: Mapping[str, Sequence[float]], ylabel: str, best: int | None = None
) -> str:
    """Draw curves over epochs into a PNG file; return what became of it, for the final table.

    `best` is the epoch to mark. Rank 0 draws; Matplotlib is optional.
    """
    if path is None or dist.get_rank() != 0:
        return "not written"
    if importlib.util.find_spec("matplotlib") is None:
        return "not drawn: that takes Matplotlib (pip install matplotlib)"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for label, values in curves.items():
        axes.plot(range(1, len(values) + 1), values, label=label)
    if best:
        axes.axvline(best, color="gray", linestyle=":", label=f"best epoch: {best}")
    axes.set(xlabel="epoch", ylabel=ylabel)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    return str(path)
