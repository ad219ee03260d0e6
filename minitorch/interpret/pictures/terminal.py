"""A tree as rich text: for terminals with colours, and readable without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.interpret.pictures.colors import Palette, hex_color, segment_color
from minitorch.interpret.pictures.layout import cells, is_line, number
from minitorch.interpret.pictures.segments import brightness, check_grid, history
from minitorch.interpret.tree import Group, Tree

__all__ = ["terminal"]

BAR = 12  # characters of the longest bar


def terminal(
    tree: Tree,
    image: Any = None,
    *,
    width: int = 100,
    limit: float | None = None,
    theme: str = "dark",
) -> Any:
    """Return a tree as something that a rich console prints.

    Words: the rows of the sentence tree if they fit into `width`, and below the hierarchy with
    scores, bars and texts. Images: the picture beside the last round's segments, two pixels to a
    character, and the hierarchy of the larger groups.

    Parameters
    ----------
    tree : Tree
    image : Tensor or array_like, optional
        For a tree over a plane, as in :func:`image_panels`.
    width : int
        Characters per line.
    limit : float, optional
        The score of the strongest colours; by default the largest there is.
    theme : {"light", "dark"}
        The terminal's background.

    Examples
    --------
    >>> import minitorch
    >>> from minitorch import interpret, nn
    >>> from rich.console import Console
    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = model.weight.data.copy_(minitorch.tensor([[2.0, -3.0]]))
    >>> tree = interpret.agglomerate(model, minitorch.ones(1, 2), 0, names=["good", "bad"])
    >>> Console(width=40, color_system=None).print(terminal(tree, width=10))  # no room for rows
    -1.00 ▁▁▁▁ good bad
    ├── +2.00 ▇▇▇▇▇▇▇▇ good
    └── -3.00 ▁▁▁▁▁▁▁▁▁▁▁▁ bad
    """
    from rich.console import Group as Lines
    from rich.text import Text

    palette = Palette.of((group.score for group in tree), limit, theme)
    parts: list[Any] = []
    if is_line(tree):
        rows = _rows(tree, palette)
        if max(row.cell_len for row in rows) <= width:
            parts += [*rows, Text()]
    elif image is not None:
        parts += [*_picture(tree, image), Text()]
    parts.append(_hierarchy(tree, palette))
    return Lines(*parts)


def _rows(tree: Tree, palette: Palette) -> list[Any]:
    """The sentence tree, the whole sentence first."""
    from rich.text import Text

    words = [tree.text(leaf) for leaf in tree.leaves]
    widths = [len(word) + 2 for word in words]
    rows = [[" " * wide for wide in widths] for _ in range(tree.height + 1)]
    colors = [[""] * len(words) for _ in rows]
    for cell in cells(tree):
        style = f"{palette.ink(cell.group.score)} on {palette(cell.group.score)}"
        for unit in range(cell.start, cell.stop):
            rows[cell.row][unit] = f" {words[unit]} "
            colors[cell.row][unit] = style
    return [
        Text.assemble(*zip(row, styles, strict=True), no_wrap=True)
        for row, styles in zip(reversed(rows), reversed(colors), strict=True)
    ]


def _label(tree: Tree, group: Group, palette: Palette) -> Any:
    from rich.text import Text

    long = round(BAR * min(abs(group.score) / palette.limit, 1.0))
    # Light and dark blocks: the sign shows without colours as well.
    bar = ("▇" if group.score > 0 else "▁") * long
    text = tree.text(group) if is_line(tree) else f"{group.size} units"
    color = palette(group.score)
    return Text.assemble(number(group.score), " ", (bar, color), " " if bar else "", text)


def _hierarchy(tree: Tree, palette: Palette) -> Any:
    """Groups under groups; of images, those of several units only."""
    from rich.tree import Tree as Branches

    root = Branches(_label(tree, tree.root, palette), guide_style="dim")
    waiting = [(root, tree.root)]
    while waiting:
        branch, group = waiting.pop()
        shown = [tree[child] for child in group.children]
        if not is_line(tree):
            shown = [child for child in shown if child.size > 1]
        waiting += [(branch.add(_label(tree, child, palette)), child) for child in shown]
    return root


def _picture(tree: Tree, image: Any) -> list[Any]:
    """The image, and the segments of the last round in which there were several."""
    from rich.text import Text

    check_grid(tree, "terminal")
    shape = tuple(n for n in tree.layout.shape if n > 1)
    pixels = brightness(image, shape)
    gray = pixels if pixels.ndim == 2 else pixels.mean(axis=-1)
    left = [[hex_color([value] * 3) for value in row] for row in gray]
    rounds = history(tree)
    several = [each for each in rounds if len(each.scores) > 1]
    shown = (several or rounds)[-1:] if len(tree) > tree.num_units else []
    right: list[list[str]] = [[] for _ in left]
    for each in shown:
        labels = each.labels.reshape(shape)
        right = [
            [
                segment_color(int(name)) if name else shade
                for name, shade in zip(names, shades, strict=True)
            ]
            for names, shades in zip(labels, left, strict=True)
        ]
    lines = []
    for upper in range(0, shape[0], 2):
        line = Text(no_wrap=True)
        for side in (left, right):
            under = side[upper + 1] if upper + 1 < shape[0] else [None] * len(side[upper])
            for above, below in zip(side[upper], under, strict=True):
                line.append("▀", f"{above} on {below}" if below else above)
            line.append("  ")
        lines.append(line)
    for each in shown:
        target = tree.target if tree.target is not None else 0
        legend = Text("round " + str(each.order) + ":")
        for name, scores in sorted(each.scores.items()):
            legend.append(f"  {name} ")
            legend.append("██", segment_color(name))
            legend.append(f" {number(float(np.asarray(scores)[target]))}")
        lines.append(legend)
    return lines
