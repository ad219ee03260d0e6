"""What all figures share: how they begin, and the colour bar."""

from __future__ import annotations

from typing import Any

from minitorch.interpret.pictures.colors import Palette

__all__ = ["color_bar", "new_figure", "tidy"]


def new_figure(width: float, height: float, palette: Palette) -> Any:
    """Return an empty figure in the palette's theme.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained", facecolor=palette.theme.background)


def tidy(axes: Any, palette: Palette) -> None:
    """Put axes into the theme: its colours, and no frame above and to the right."""
    axes.set_facecolor(palette.theme.background)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.theme.faint)
    axes.tick_params(colors=palette.theme.faint, labelsize=7, length=2)


def color_bar(figure: Any, axes: Any, palette: Palette, label: str) -> Any:
    """Add the scale of a palette beside axes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    scale = LinearSegmentedColormap.from_list("scores", palette.theme.stops)
    mapped = ScalarMappable(Normalize(-palette.limit, palette.limit), scale)
    bar = figure.colorbar(mapped, ax=axes, fraction=0.05, pad=0.015, aspect=12)
    bar.set_label(label, color=palette.theme.text, fontsize=8)
    bar.ax.tick_params(colors=palette.theme.faint, labelsize=7)
    bar.outline.set_edgecolor(palette.theme.faint)
    return bar
