"""Units: what groups are made of, where they lie in the input, and which of them are neighbours.

A *layout* is an array of unit numbers that broadcasts over the input: ``(1, T)`` for token ids,
``(T, 1)`` for a sequence of vectors, ``(H, W)`` for an image of any number of channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.ops._typing import Tensor

__all__ = ["Units", "grid", "line", "segments", "units_of"]


@dataclass(frozen=True)
class Units:
    """The units of an input.

    Attributes
    ----------
    layout : numpy.ndarray of int
        Unit numbers, broadcasting over the input.
    edges : numpy.ndarray of int
        ``(edges, 2)``: pairs of neighbours, each once; candidates for joining.
    touching : numpy.ndarray of int
        ``(edges, 2)``: pairs that belong to one component when both are picked; on grids with
        diagonal contact more than `edges`.
    grid : tuple of int or None
        Rows and columns of units, for images.
    """

    layout: np.ndarray
    edges: np.ndarray
    touching: np.ndarray
    grid: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        """How many units there are."""
        return int(self.layout.max()) + 1 if self.layout.size else 0

    def masks(self, groups: np.ndarray) -> np.ndarray:
        """Turn groups, bool ``(groups, units)``, into masks ``(groups, *layout.shape)``."""
        return groups[:, self.layout]

    def components(self, picked: np.ndarray) -> np.ndarray:
        """Label the connected components of the picked units 1, 2, ... by their first unit."""
        label = np.where(picked, np.arange(self.count), self.count)
        a, b = self.touching[picked[self.touching].all(axis=1)].T
        while True:
            low = np.minimum(label[a], label[b])
            if (label[a] == low).all() and (label[b] == low).all():
                break
            np.minimum.at(label, a, low)
            np.minimum.at(label, b, low)
            # Take the label of the label's own unit: a chain shrinks by half in each round.
            label[picked] = label[label[picked]]
        numbers = np.zeros(self.count + 1, np.int64)
        first = np.unique(label[picked])
        numbers[first] = np.arange(1, len(first) + 1)
        return numbers[label]

    def around(self, group: np.ndarray) -> np.ndarray:
        """Return the neighbours of a group, bool ``(units,)``, that are not in it, ascending."""
        a, b = self.edges.T
        return np.unique(np.concatenate([b[group[a] & ~group[b]], a[group[b] & ~group[a]]]))


def line(count: int, layout: np.ndarray) -> Units:
    """Return units in a row, such as words: each has the one before and after as neighbours."""
    numbers = np.arange(max(count - 1, 0))
    edges = np.stack([numbers, numbers + 1], axis=1)
    return Units(layout, edges, edges)


def grid(height: int, width: int, block: int = 1) -> Units:
    """Return the blocks of an image, row by row; the last ones may be smaller.

    Four neighbours are candidates, eight make a component.
    """
    if block < 1:
        raise ValueError(f"block must be at least 1, not {block}")
    rows, columns = -(-height // block), -(-width // block)
    numbers = np.arange(rows * columns).reshape(rows, columns)
    down = np.stack([numbers[:-1].ravel(), numbers[1:].ravel()], axis=1)
    right = np.stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()], axis=1)
    edges = np.concatenate([down, right])
    falling = np.stack([numbers[:-1, :-1].ravel(), numbers[1:, 1:].ravel()], axis=1)
    rising = np.stack([numbers[:-1, 1:].ravel(), numbers[1:, :-1].ravel()], axis=1)
    layout = numbers[np.arange(height)[:, None] // block, np.arange(width) // block]
    return Units(layout, edges, np.concatenate([edges, falling, rising]), (rows, columns))


def segments(labels: Any) -> Units:
    """Return given segments, such as superpixels: any integers, neighbours if pixels touch."""
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iu" or not labels.size:
        raise ValueError("segments must be a non-empty array of integers")
    _, layout = np.unique(labels, return_inverse=True)
    layout = layout.reshape(labels.shape)
    pairs = []
    for axis in range(layout.ndim):
        before = np.moveaxis(layout, axis, 0)[:-1].ravel()
        after = np.moveaxis(layout, axis, 0)[1:].ravel()
        differs = before != after
        pairs.append(np.stack([before[differs], after[differs]], axis=1))
    edges = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
    return Units(layout, edges, edges)


def units_of(input: Tensor, units: Any = None, block: int = 1) -> Units:
    """Return the units of an input.

    Parameters
    ----------
    input : Tensor
        Token ids ``(T,)``, ``(1, T)`` or ``(T, 1)``; images ``(C, H, W)`` or ``(1, C, H, W)``;
        sequences of vectors ``(T, E)``, ``(1, T, E)`` or ``(T, 1, E)``; features ``(F,)`` or
        ``(1, F)``.
    units : None, "words", "time", "pixels", array of int, or Units
        None: words for integers, pixels for 4-d floating input, time for 2-d and 3-d, one unit per
        feature for a single row. An array of segment numbers broadcasts over the input.
    block : int
        Side of a square of pixels, or number of words or time steps, that make one unit.

    Raises
    ------
    ValueError
        If there is more than one sample, or `units` does not fit.
    """
    if isinstance(units, Units):
        return units
    shape = tuple(input.shape)
    if units is not None and not isinstance(units, str):
        made = segments(units)
        try:
            np.broadcast_to(made.layout, shape)
        except ValueError:
            raise ValueError(
                f"units of shape {made.layout.shape} do not broadcast over the input's {shape}"
            ) from None
        return made
    if units is None:
        is_ids = input._array.dtype.kind in "iub"
        flat = input.dim() < 2 or (input.dim() == 2 and shape[0] == 1)
        units = "words" if is_ids or flat else "pixels" if input.dim() == 4 else "time"
    if block < 1:
        raise ValueError(f"block must be at least 1, not {block}")
    if units == "words":
        if sum(n > 1 for n in shape) > 1:
            raise ValueError(f"one text at a time: expected a single row or column, got {shape}")
        layout = (np.arange(input.numel()) // block).reshape(shape)
        return line(-(-input.numel() // block), layout)
    if units == "time":
        if input.dim() < 2 or (input.dim() == 3 and 1 not in shape[:2]) or input.dim() > 3:
            raise ValueError(f'units="time" needs one sequence (T, E) or (1, T, E), got {shape}')
        axis = 0 if input.dim() == 2 or shape[0] != 1 else 1
        steps = shape[axis]
        layout = (np.arange(steps) // block).reshape(steps, *(1,) * (input.dim() - 1 - axis))
        return line(-(-steps // block), layout)
    if units == "pixels":
        if input.dim() not in (3, 4) or (input.dim() == 4 and shape[0] != 1):
            raise ValueError(
                f'units="pixels" needs one image (C, H, W) or (1, C, H, W), got {shape}'
            )
        return grid(shape[-2], shape[-1], block)
    raise ValueError(f'units must be "words", "time", "pixels" or segments, not {units!r}')
