"""Where groups lie in a drawing, one row per level and one column per unit; names of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minitorch.interpret.tree import Group, Tree

__all__ = [
    "NAMES",
    "Cell",
    "cells",
    "check_line",
    "columns",
    "is_line",
    "leaf_order",
    "number",
    "runs",
    "score_name",
]

NAMES = {
    "cd": "contextual decomposition",
    "occlusion": "occlusion",
    "build_up": "build-up",
    "gradient_x_input": "gradient × input",
    "integrated_gradients": "integrated gradients",
    "shapley": "Shapley sampling",
}


@dataclass(frozen=True)
class Cell:
    """A run of neighbouring columns that belong to one group.

    A group with gaps has several.
    """

    group: Group
    row: int
    start: int
    stop: int


def number(score: float) -> str:
    """A score as it is printed, always with its sign: digits for small ones, none for large."""
    return f"{score:+.2f}" if abs(score) < 99.995 else f"{score:+.0f}"


def score_name(tree: Tree) -> str:
    """What a scale of a tree's scores is called."""
    return "CD score" if tree.method == "cd" else f"{NAMES.get(tree.method, tree.method)} score"


def leaf_order(tree: Tree) -> list[int]:
    """Return the units in the order of a walk through the tree: every group is one run of it."""
    order: list[int] = []
    waiting = [tree.root.id]
    while waiting:
        group = tree[waiting.pop()]
        if group.children:
            waiting.extend(reversed(group.children))
        else:
            order.append(group.members[0])
    return order


def columns(tree: Tree) -> list[int]:
    """Return the units by column: as they come for words, so that groups are runs for images."""
    return list(range(tree.num_units)) if is_line(tree) else leaf_order(tree)


def is_line(tree: Tree) -> bool:
    """Whether the units lie in one row, as words and time steps do."""
    return sum(length > 1 for length in tree.layout.shape) < 2


def check_line(tree: Tree, name: str) -> None:
    """Raise a ValueError if the units do not lie in one row."""
    if not is_line(tree):
        raise ValueError(
            f"{name} draws units in a row, and this tree's lie in {tree.layout.shape}; "
            f"draw it with image_panels"
        )


def runs(places: np.ndarray) -> list[tuple[int, int]]:
    """Return the runs of neighbouring numbers in a sorted array, as (first, one past the last)."""
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(places, cuts) if len(run)]


def cells(tree: Tree) -> list[Cell]:
    """Return where all groups are drawn: leaves in row 0, the root in the last row."""
    place = np.empty(tree.num_units, np.int64)
    place[columns(tree)] = np.arange(tree.num_units)
    return [
        Cell(group, group.level, start, stop)
        for group in tree
        for start, stop in runs(np.sort(place[list(group.members)]))
    ]
