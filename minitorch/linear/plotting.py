"""A picture of convergence: what a run's checks say, against passes over the data or seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .solver import Check

__all__ = ["convergence_plot"]

# Okabe and Ito's palette: told apart by colour-blind readers.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_AXES = {"passes": "passes over the data", "epoch": "epochs", "seconds": "seconds"}


def convergence_plot(
    runs: Mapping[str, Sequence[Check]],
    against: str = "passes",
    *,
    optimum: float | None = None,
    axes: Any = None,
) -> Any:
    """Draw how runs approach the optimum.

    Parameters
    ----------
    runs : mapping of str to list of Check
        Histories, as estimators have them in ``history_``.
    against : {"passes", "epoch", "seconds"}
    optimum : float, optional
        If it is known, ``objective - optimum`` is drawn, and the certified gap dashed; otherwise
        the certified gap, or without a penalty the relative gradient.
    axes : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    if against not in _AXES:
        raise ValueError(f"against must be one of {', '.join(_AXES)}, got {against!r}")
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "the convergence plot needs matplotlib: pip install matplotlib"
        ) from error
    if axes is None:
        _, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    label = "objective - optimum (dashed: certified gap)"
    for number, (name, history) in enumerate(runs.items()):
        color = _COLORS[number % len(_COLORS)]
        x = [getattr(check, against) for check in history]
        gaps = np.array([check.gap for check in history])
        certified = bool(np.isfinite(gaps).any())
        if optimum is not None:
            above = np.array([check.objective for check in history]) - optimum
            _line(axes, x, above, color=color, label=name, marker=".", ms=4)
            if certified:
                _line(axes, x, gaps, color=color, ls="--", lw=1)
        elif certified:
            label = "certified gap: objective - optimum at most"
            _line(axes, x, gaps, color=color, label=name, marker=".", ms=4)
        else:
            label = "relative gradient"
            relative = np.array([check.relative for check in history])
            _line(axes, x, relative, color=color, label=name, marker=".", ms=4)
    axes.set(yscale="log", xlabel=_AXES[against], ylabel=label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes.figure


def _line(axes: Any, x: Sequence[float], y: np.ndarray, **style: Any) -> None:
    """A line where y is positive: what rounding has made zero or negative has no logarithm."""
    axes.plot(x, np.where((y > 0) & np.isfinite(y), y, np.nan), **style)
