"""Which segments an image had after each round, and images as arrays of brightness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.interpret.pictures.layout import is_line
from minitorch.interpret.tree import Tree

__all__ = ["Segments", "brightness", "check_grid", "chosen", "history"]


@dataclass(frozen=True)
class Segments:
    """The segments after a round.

    Attributes
    ----------
    order : int
        The number of the round.
    labels : numpy.ndarray of int
        Shaped like the tree's layout: 0 outside all segments, else the segment's number, which it
        keeps over the rounds.
    scores : dict of int to numpy.ndarray
        For each number the scores ``(classes,)``.
    """

    order: int
    labels: np.ndarray
    scores: dict[int, np.ndarray]


def check_grid(tree: Tree, name: str) -> None:
    """Raise a ValueError if the units do not lie in a plane."""
    if is_line(tree) or sum(length > 1 for length in tree.layout.shape) != 2:
        raise ValueError(
            f"{name} draws units that lie in a plane, and this tree's lie in {tree.layout.shape}; "
            f"words are drawn with sentence_tree"
        )


def history(tree: Tree) -> list[Segments]:
    """Return the segments after each round in which there were some.

    From the tree's record of its steps; a tree from a file has none, and then from its groups (of
    two units and more: who was picked alone is only in the record).
    """
    if tree.steps:
        found = [
            Segments(order, step.labels[tree.layout], step.scores)
            for order, step in enumerate(tree.steps)
            if step.labels.any()
        ]
        # Scoring repeats the last round's segments where nothing was left to pick.
        return [
            each
            for at, each in enumerate(found)
            if at == 0 or not np.array_equal(each.labels, found[at - 1].labels)
        ]
    numbers = _numbers(tree)
    out = []
    for order in sorted({group.order for group in tree if group.size > 1}):
        alive = [group for group in tree.alive(order) if group.size > 1]
        labels = np.zeros(tree.num_units, np.int64)
        for group in alive:
            labels[list(group.members)] = numbers[group.id]
        scores = {numbers[group.id]: group.scores for group in alive}
        out.append(Segments(order, labels[tree.layout], scores))
    return out


def _numbers(tree: Tree) -> dict[int, int]:
    """Give each larger group the number of its first larger child, or a fresh one."""
    numbers: dict[int, int] = {}
    for group in tree:
        if group.size > 1:
            inherited = [numbers[child] for child in group.children if child in numbers]
            numbers[group.id] = min(inherited, default=max(numbers.values(), default=0) + 1)
    return numbers


def chosen(found: list[Segments], most: int) -> list[Segments]:
    """Return at most so many of them, evenly spread, the first and the last included."""
    if most < 1:
        raise ValueError(f"at least one panel must be drawn, not {most}")
    places = np.linspace(len(found) - 1 if most == 1 else 0, len(found) - 1, min(most, len(found)))
    return [found[at] for at in np.unique(places.round().astype(int))]


def brightness(image: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an image as ``(H, W)`` or ``(H, W, 3)`` between 0 and 1.

    Parameters
    ----------
    image : Tensor or array_like
        ``(H, W)`` with any axes of length 1 before it, or ``(3, H, W)``; any range of values.
    shape : tuple of int
        What (H, W) must be.

    Raises
    ------
    ValueError
        If it is no such image, or does not lie under the tree's units.
    """
    array = np.asarray(getattr(image, "_array", image), dtype=float)
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 3 and array.shape[0] == 3:
        array = np.moveaxis(array, 0, -1)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[-1] != 3):
        raise ValueError(f"expected one image (H, W) or (3, H, W), got an array {array.shape}")
    if array.shape[:2] != shape:
        raise ValueError(f"the image is {array.shape[:2]}, and the tree's units lie in {shape}")
    low, high = float(array.min()), float(array.max())
    scaled: np.ndarray = (array - low) / (high - low) if high > low else np.zeros_like(array)
    return scaled
