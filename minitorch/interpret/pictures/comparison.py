"""The same prediction explained by several methods, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minitorch.interpret.pictures.colors import Palette
from minitorch.interpret.pictures.figures import color_bar, new_figure, tidy
from minitorch.interpret.pictures.images import show_image, show_segments
from minitorch.interpret.pictures.layout import NAMES, is_line
from minitorch.interpret.pictures.segments import brightness, check_grid, chosen, history
from minitorch.interpret.pictures.sentence import ROW, draw_sentence
from minitorch.interpret.tree import Tree

__all__ = ["comparison"]


def comparison(
    trees: Mapping[str, Tree],
    image: Any = None,
    *,
    panels: int = 4,
    width: float = 10.0,
    title: str | None = None,
    theme: str = "light",
) -> Any:
    """Draw trees of the same input, one method per row.

    For words, each row is a sentence tree. For images, it holds the single units' scores as a map,
    then the segments of some rounds. Methods measure different things (logits, drops of logits,
    gradients), so each row has a colour scale of its own.

    Parameters
    ----------
    trees : mapping of str to Tree
        By the name of the method.
    image : Tensor or array_like, optional
        For trees over a plane: the picture, as in :func:`image_panels`.
    panels : int
        How many rounds to show at most (images).
    width : float
        Of the figure, in inches (words).
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
        If there are no trees, they are of inputs of different shapes, or the image is missing.
    """
    if not trees:
        raise ValueError("comparison: there are no trees to compare")
    shapes = {tree.layout.shape for tree in trees.values()}
    if len(shapes) > 1:
        raise ValueError(f"comparison: the trees are of different inputs: {sorted(shapes)}")
    first = next(iter(trees.values()))
    if is_line(first):
        figure = _sentences(trees, width, theme)
    else:
        if image is None:
            raise ValueError("comparison: trees over a plane are drawn on their image; give image=")
        figure = _images(trees, image, panels, theme)
    if title:
        color = Palette(1.0, theme).theme.text
        figure.suptitle(title, color=color, fontsize=10)
    return figure


def _sentences(trees: Mapping[str, Tree], width: float, theme: str) -> Any:
    heights = [tree.height + 1.6 for tree in trees.values()]
    figure = new_figure(width, ROW * sum(heights) + 0.5, Palette(1.0, theme))
    rows = figure.subplots(len(trees), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, tree) in zip(rows, trees.items(), strict=True):
        palette = Palette.of((group.score for group in tree), theme=theme)
        draw_sentence(axes, tree, palette, (width - 1.3) * 72, True)
        color = palette.theme.text
        axes.set_title(NAMES.get(name, name), color=color, fontsize=9, loc="left")
        color_bar(figure, axes, palette, "score")
    return figure


def _images(trees: Mapping[str, Tree], image: Any, panels: int, theme: str) -> Any:
    for tree in trees.values():
        check_grid(tree, "comparison")
    shape = tuple(n for n in next(iter(trees.values())).layout.shape if n > 1)
    pixels = brightness(image, shape)
    found = [chosen(history(tree), panels) for tree in trees.values()]
    count = 2 + max(map(len, found))
    figure = new_figure(1.55 * count + 0.6, 1.75 * len(trees) + 0.4, Palette(1.0, theme))
    grid = figure.subplots(len(trees), count, squeeze=False)
    for row, (name, tree) in enumerate(trees.items()):
        flat = np.array([leaf.score for leaf in tree.leaves])[tree.layout].reshape(shape)
        palette = Palette.of(flat.ravel(), theme=theme)
        for axes in grid[row]:
            tidy(axes, palette)
        text = {"color": palette.theme.text, "fontsize": 8}
        show_image(grid[row, 0], pixels)
        grid[row, 0].set_ylabel(NAMES.get(name, name).replace(" ", "\n"), **text)
        grid[row, 1].imshow(palette.array(flat), interpolation="nearest")
        grid[row, 1].set(xticks=[], yticks=[])
        if row == 0:
            grid[row, 0].set_title("input", **text)
            grid[row, 1].set_title("units alone", **text)
        for axes, each in zip(grid[row, 2:], found[row], strict=False):
            show_segments(axes, pixels, each)
            axes.set_title(f"round {each.order}", **text)
        for axes in grid[row, 2 + len(found[row]) :]:
            axes.set_axis_off()
    return figure
