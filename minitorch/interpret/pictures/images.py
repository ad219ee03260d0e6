"""Image panels: the picture, its segments as they grow, and what each says about each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.interpret.pictures.colors import Palette, rgb, segment_color
from minitorch.interpret.pictures.figures import new_figure, tidy
from minitorch.interpret.pictures.layout import number, score_name
from minitorch.interpret.pictures.segments import Segments, brightness, check_grid, chosen, history
from minitorch.interpret.tree import Tree

__all__ = ["image_panels", "show_segments"]

OPACITY = 0.7


def image_panels(
    tree: Tree,
    image: Any,
    *,
    classes: Sequence[str] | None = None,
    panels: int = 5,
    most: int = 4,
    title: str | None = None,
    theme: str = "light",
) -> Any:
    """Draw how segments grow, round by round, and their scores per class.

    Parameters
    ----------
    tree : Tree
        Over pixels, blocks or superpixels.
    image : Tensor or array_like
        ``(H, W)``, ``(1, H, W)``, ``(3, H, W)`` or one more axis of length 1.
    classes : sequence of str, optional
        What the classes are called.
    panels : int
        How many rounds to show at most, evenly spread; the last is always there.
    most : int
        Bars are drawn for the segments with the largest scores, at most so many per panel.
    title : str, optional
    theme : {"light", "dark"}

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        If the tree is not over a plane, or image or classes do not fit.
    """
    check_grid(tree, "image_panels")
    shape = tuple(n for n in tree.layout.shape if n > 1)
    pixels = brightness(image, shape)
    names = class_names(tree, classes)
    found = chosen(history(tree), panels) if len(tree) > tree.num_units else []
    palette = Palette.of(tree.logits, theme=theme)
    count = len(found) + 1
    figure = new_figure(1.9 * count + 0.3, 4.1 + (0.3 if title else 0.0), palette)
    grid = figure.subplots(2, count, squeeze=False, height_ratios=(1.15, 1))
    for axes in grid.flat:
        tidy(axes, palette)
    top, bottom = grid[0, 0], grid[1, 0]
    show_image(top, pixels)
    top.set_title("input", color=palette.theme.text, fontsize=9)
    bars(bottom, names, {0: tree.logits}, {0: palette.theme.faint}, palette, tree.target)
    bottom.set_title("logits", color=palette.theme.text, fontsize=9)
    drawn: list[np.ndarray] = []
    for column, each in enumerate(found, 1):
        axes, below = grid[:, column]
        show_segments(axes, pixels, each)
        axes.set_title(f"round {each.order}", color=palette.theme.text, fontsize=9)
        picked = strongest(each, tree, most)
        colors = {name: segment_color(name) for name in picked}
        bars(below, names, picked, colors, palette, tree.target)
        every = len(each.scores)
        shown = f"{len(picked)} of {every}" if len(picked) < every else f"{every}"
        shown += " segment" if every == 1 else " segments"
        below.set_title(shown, color=palette.theme.text, fontsize=9)
        drawn += [*picked.values()]
    if found:
        low, high = min(0.0, *map(np.min, drawn)), max(0.0, *map(np.max, drawn))
        for below in grid[1, 1:]:  # one scale, so that rounds can be compared
            below.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    grid[1, 0].set_ylabel(score_name(tree), color=palette.theme.text, fontsize=8)
    if title:
        figure.suptitle(title, color=palette.theme.text, fontsize=10)
    return figure


def class_names(tree: Tree, classes: Sequence[str] | None) -> list[str]:
    """Return what the classes are called."""
    count = tree.logits.size
    if classes is None:
        return [str(each) for each in range(count)]
    if len(classes) != count:
        raise ValueError(f"{len(classes)} names for {count} classes")
    return list(classes)


def strongest(segments: Segments, tree: Tree, most: int) -> dict[int, np.ndarray]:
    """Return the segments with the largest absolute scores for the target, by number."""
    target = tree.target if tree.target is not None else 0
    order = sorted(segments.scores, key=lambda name: -abs(segments.scores[name][target]))
    return {name: segments.scores[name] for name in sorted(order[:most])}


def show_image(axes: Any, pixels: np.ndarray) -> None:
    """Show the picture in its own shades, without ticks."""
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])


def show_segments(axes: Any, pixels: np.ndarray, segments: Segments) -> None:
    """Lay the segments over the picture, each with its number."""
    show_image(axes, pixels)
    labels = segments.labels.reshape(pixels.shape[:2])
    over = np.zeros((*labels.shape, 4))
    for name in np.unique(labels[labels > 0]):
        over[labels == name] = (*rgb(segment_color(int(name))), OPACITY)
    axes.imshow(over, interpolation="nearest")
    for name in np.unique(labels[labels > 0]):
        rows, columns = np.nonzero(labels == name)
        # The pixel of the segment nearest to its middle: a bent one's middle may lie outside it.
        nearest = np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2)
        style = {"ha": "center", "va": "center", "fontsize": 7, "fontweight": "bold"}
        box = {"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.75}
        axes.text(columns[nearest], rows[nearest], str(name), color="black", bbox=box, **style)


def bars(
    axes: Any,
    names: list[str],
    scores: dict[int, np.ndarray],
    colors: dict[int, str],
    palette: Palette,
    target: int | None,
) -> None:
    """Draw one bar per class and segment; the target's class name is bold."""
    places = np.arange(len(names))
    width = 0.86 / max(len(scores), 1)
    for at, (segment, values) in enumerate(scores.items()):
        left = places - 0.43 + (at + 0.5) * width
        edge = palette.theme.background
        label = f"segment {segment}: {number(float(values[target or 0]))}"
        axes.bar(left, values, width, color=colors[segment], edgecolor=edge, lw=0.2, label=label)
    axes.axhline(0, color=palette.theme.faint, lw=0.8)
    long = max(map(len, names)) * len(names) > 24
    axes.set_xticks(places, names, rotation=90 if long else 0, fontsize=7)
    if target is not None:
        axes.get_xticklabels()[target].set(fontweight="bold", color=palette.theme.text)
    axes.margins(x=0.02)
