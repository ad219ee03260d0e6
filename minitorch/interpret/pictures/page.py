"""One HTML file with the whole tree: point at a group to see its text or pixels, score and members.

It holds its data, style and script (from ``assets/``) and loads nothing. A slider goes through the
rounds, a button between light and dark; the keyboard reaches every group, and screen readers hear
its text and score.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from minitorch.interpret.pictures.colors import THEMES, Palette
from minitorch.interpret.pictures.images import class_names
from minitorch.interpret.pictures.layout import NAMES, Cell, cells, columns, is_line, number
from minitorch.interpret.pictures.segments import brightness, check_grid
from minitorch.interpret.tree import Group, Tree

__all__ = ["html_page"]

_PAGE = Template("""<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$css</style>
</head>
<body>
<h1>$title</h1>
<p class="faint">$subtitle</p>
<div class="controls">
<label>rounds up to <input type="range" id="round" min="0" max="$rounds" value="$rounds">
<output id="round-number">$rounds</output></label>
<span class="scale">against $low <i style="$scale"></i> $high for</span>
<button id="theme" type="button">light / dark</button>
</div>
<div class="scroll">
<div class="tree $kind" style="grid-template-columns: $widths">
$cells
</div>
</div>
<div class="panes">
$picture<div id="detail" aria-live="polite"></div>
</div>
<script type="application/json" id="data">$data</script>
<script>
$script</script>
</body>
</html>
""")


def html_page(
    tree: Tree,
    image: Any = None,
    *,
    classes: Sequence[str] | None = None,
    title: str | None = None,
    limit: float | None = None,
    path: str | Path | None = None,
) -> str:
    """Return an interactive page as one string of HTML.

    Parameters
    ----------
    tree : Tree
    image : Tensor or array_like, optional
        For a tree over a plane: the picture, as in :func:`image_panels`.
    classes : sequence of str, optional
        What the classes are called.
    title : str, optional
    limit : float, optional
        The score of the strongest colours; by default the largest there is.
    path : path, optional
        Where to write it as well.

    Raises
    ------
    ValueError
        If the image is missing or does not fit, or there is not one name per class.
    """
    names = class_names(tree, classes)
    words = is_line(tree)
    shown = cells(tree)
    picture: dict[str, Any] | None = None
    if not words:
        check_grid(tree, "html_page")
        if image is None:
            raise ValueError("html_page: a tree over a plane is drawn on its image; give image=")
        shape = tuple(n for n in tree.layout.shape if n > 1)
        pixels = (255 * brightness(image, shape)).round().astype(int)
        picture = {"pixels": pixels.tolist(), "layout": tree.layout.reshape(shape).tolist()}
    palettes = {
        theme: Palette.of((group.score for group in tree), limit, theme) for theme in THEMES
    }
    bound = palettes["light"].limit
    unit = "words" if words else "units"
    data = {
        "groups": [_facts(tree, group, words) for group in tree],
        "classes": names,
        "target": tree.target,
        "unit": unit,
        "image": picture,
    }
    if title is None:
        title = tree.text(tree.root) if words else f"An image explained, {tree.num_units} units"
    column = "minmax(max-content, 1fr)" if words else "minmax(0, 1fr)"
    page = _PAGE.substitute(
        title=html.escape(title),
        subtitle=html.escape(_subtitle(tree, names)),
        css=_asset("tree.css"),
        script=_asset("tree.js"),
        rounds=max(group.order for group in tree),
        low=number(-bound),
        high=number(bound),
        scale=";".join(
            f"--{theme}: linear-gradient(to right, {', '.join(THEMES[theme].stops)})"
            for theme in THEMES
        ),
        kind="words" if words else "pixels",
        widths=f"repeat({tree.num_units}, {column})",
        cells=_grid(tree, shown, palettes, words),
        picture='<canvas id="picture" role="img" aria-label="the image"></canvas>\n'
        if picture
        else "",
        data=_embedded(data),
    )
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(page, encoding="utf-8")
    return page


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever the words are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _subtitle(tree: Tree, names: list[str]) -> str:
    predicted = names[int(np.argmax(tree.logits))]
    explained = "" if tree.target is None else f"; scores are for {names[tree.target]}"
    if tree.target is not None and tree.options.get("contrast"):
        explained += f" against {names[1 - tree.target]}"
    return f"predicted: {predicted}{explained}; by {NAMES.get(tree.method, tree.method)}"


def _facts(tree: Tree, group: Group, words: bool) -> dict[str, Any]:
    text = tree.text(group)
    if not words:
        text = f"unit {group.members[0]}" if group.size == 1 else f"{group.size} units"
    return {
        "text": text,
        "score": round(float(group.score), 6),
        "scores": [round(float(score), 6) for score in group.scores],
        "members": list(group.members),
        "children": list(group.children),
        "order": group.order,
    }


def _grid(tree: Tree, shown: list[Cell], palettes: dict[str, Palette], words: bool) -> str:
    """The cells; the whole input in the first row, units in the last."""
    lines = []
    top = tree.height
    if top:
        lines.append(f'<div class="leaf-line" style="grid-row: {top + 1}"></div>')
    order = columns(tree)
    for cell in sorted(shown, key=lambda cell: (-cell.row, cell.start)):
        group = cell.group
        # Row top + 1 is the line between the units and everything else.
        row = top - cell.row + 1 if cell.row else top + (2 if top else 1)
        style = [f"grid-area: {row} / {cell.start + 1} / auto / {cell.stop + 1}"]
        for theme, palette in palettes.items():
            style.append(f"--{theme}: {palette(group.score)}")
            style.append(f"--{theme}-ink: {palette.ink(group.score)}")
        text, inside = tree.text(group), ""
        if words:
            units = order[cell.start : cell.stop]
            inside = "".join(f"<span>{html.escape(tree.text(tree[unit]))}</span>" for unit in units)
        else:
            text = f"{group.size} units"
        label = html.escape(f"{text}: {number(group.score)}", quote=True)
        # All pixels of an image would be too many stops on the way to the groups.
        stop = ' tabindex="0"' if words or group.size > 1 else ""
        lines.append(
            f'<div class="cell" data-group="{group.id}" data-order="{group.order}"{stop} '
            f'role="img" aria-label="{label}" style="{"; ".join(style)}">{inside}</div>'
        )
    return "\n".join(lines)
