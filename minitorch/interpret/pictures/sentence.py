"""The sentence tree: a row per level, a column per word, every cell coloured by its group's score.

The picture of Singh, Murdoch, Yu (ICLR 2019), figure 2: the words' own scores at the bottom, under
a thick line; above, phrases as they grow; the whole sentence at the top.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.interpret.pictures.colors import Palette
from minitorch.interpret.pictures.figures import color_bar, new_figure
from minitorch.interpret.pictures.layout import cells, check_line, number, score_name
from minitorch.interpret.tree import Tree

__all__ = ["draw_sentence", "sentence_tree"]

FONT = 10.0  # points, where there is room
SMALLEST = 5.5
ROW = 0.44  # inches
CHARACTER = 0.62  # width of a character over the font's size, on average, with a little air
WIDEST = 18.0  # inches, of a figure whose width is not given


def sentence_tree(
    tree: Tree,
    *,
    width: float | None = None,
    limit: float | None = None,
    scores: bool = True,
    title: str | None = None,
    theme: str = "light",
) -> Any:
    """Draw a tree over words (or time steps).

    Parameters
    ----------
    tree : Tree
    width : float, optional
        Of the figure, in inches; by default what the words need, 18 at most. Letters shrink to fit.
    limit : float, optional
        The score of the strongest colours; by default the largest there is.
    scores : bool
        Whether groups show their scores as numbers.
    title : str, optional
    theme : {"light", "dark"}

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: show it in a notebook, or ``figure.savefig(path)``.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        If the units do not lie in a row.
    """
    check_line(tree, "sentence_tree")
    palette = Palette.of((group.score for group in tree), limit, theme)
    characters = float(column_widths(tree, scores).sum())
    if width is None:
        width = min(max(characters * FONT * CHARACTER / 72 + 1.3, 5.0), WIDEST)
    if not 0 < width < float("inf"):
        raise ValueError(f"width must be positive, not {width}")
    figure = new_figure(width, ROW * (tree.height + 1) + (0.75 if title else 0.45), palette)
    axes = figure.subplots()
    draw_sentence(axes, tree, palette, (width - 1.3) * 72, scores)
    if title:
        axes.set_title(title, color=palette.theme.text, fontsize=FONT, loc="left")
    color_bar(figure, axes, palette, score_name(tree))
    return figure


def column_widths(tree: Tree, scores: bool) -> np.ndarray:
    """Return how many characters wide each word's column is."""
    least = 4.0 if scores else 2.0  # the score of a single word, in smaller letters
    return np.array([max(len(tree.text(leaf)), least) + 1.0 for leaf in tree.leaves])


def draw_sentence(axes: Any, tree: Tree, palette: Palette, points: float, scores: bool) -> None:
    """Draw into given axes that are `points` wide."""
    from matplotlib.patches import Rectangle

    widths = column_widths(tree, scores)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    font = float(np.clip(points / (edges[-1] * CHARACTER), SMALLEST, FONT))
    words = [tree.text(leaf) for leaf in tree.leaves]
    named: set[int] = set()
    for cell in cells(tree):
        group, left, right = cell.group, edges[cell.start], edges[cell.stop]
        color, ink = palette(group.score), palette.ink(group.score)
        gap = 0.06 * widths.mean()
        box = Rectangle(
            (left + gap, cell.row + 0.03),
            right - left - 2 * gap,
            0.94,
            facecolor=color,
            edgecolor=palette.theme.faint,
            linewidth=0.5,
        )
        box.set_gid(f"group-{group.id}")
        axes.add_patch(box)
        style = {"ha": "center", "va": "center", "color": ink}
        height = 0.66 if scores else 0.5
        for unit in range(cell.start, cell.stop):
            middle = (edges[unit] + edges[unit + 1]) / 2
            axes.text(middle, cell.row + height, words[unit], fontsize=font, **style)
        if scores and group.id not in named:
            named.add(group.id)
            text = number(group.score)
            axes.text((left + right) / 2, cell.row + 0.25, text, fontsize=0.78 * font, **style)
    axes.axhline(1.0, color=palette.theme.line, linewidth=2.0)
    axes.set(xlim=(0, edges[-1]), ylim=(-0.05, tree.height + 1.05))
    axes.set_axis_off()
