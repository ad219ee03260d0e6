"""The agglomeration exactly as the published code runs it (PyPI ``acd`` 0.0.2), for comparison.

What differs from ``agglomeration.py``:

======  ========================================================================================
words   fixed percentiles for the last five candidates; beside two groups the later one decides;
        the rounds stop at ``num_iters`` and nothing is joined after them
images  15 percent more once a third is picked; after the last round the units picked by it are
        left out; any two groups are joined, whether they touch or not; at most 11 labels are
        kept from round to round
======  ========================================================================================

None of the published code's failures is repeated: token id 0, any block size, several groups to
join under occlusion all work.
"""

from __future__ import annotations

import numpy as np

from minitorch.interpret.grow import Grower, join_pairs, steady_labels
from minitorch.interpret.tree import Step, Tree

__all__ = ["collapsed", "grow_grid", "grow_line"]

# How many candidates are left -> the percentile the published code then uses for words.
_LAST_WORDS = {5: 59.0, 4: 49.0, 3: 59.0, 2: 49.0, 1: 0.0}
_MOST_LABELS = 11


def _whole(grower: Grower) -> np.ndarray:
    """Return the scores of the whole input: its prediction, for all methods but CD."""
    return grower.full() if grower.scorer.name == "cd" else grower.scorer.logits


def grow_line(grower: Grower) -> list[Step]:
    """Run the published ``agg_1d.agglomerate``."""
    units = grower.units
    priorities = grower.value(grower.singles()).astype(float)

    def best() -> np.ndarray:
        left = int((~np.isnan(priorities)).sum())
        return grower.best(priorities, _LAST_WORDS.get(left))

    picked = best()
    none = np.zeros(units.count, np.int64)
    steps = [Step(priorities.copy(), picked, none, {0: _whole(grower)})]
    for _ in range(grower.num_iters):
        labels = units.components(picked)
        own, around, gains = grower.survey([labels == name for name in range(1, labels.max() + 1)])
        # In this order: the later group overwrites what the earlier one offered.
        priorities[np.concatenate(around)] = gains
        priorities[picked] = np.nan
        new = best()
        picked = picked | new
        steps.append(Step(priorities.copy(), picked, labels, dict(enumerate(own, 1))))
        if not new.any():
            break
    return steps


def grow_grid(grower: Grower) -> list[Step]:
    """Run the published ``agg_2d.agglomerate``."""
    units = grower.units
    grower.absolute = False
    priorities = grower.value(grower.singles()).astype(float)

    def best() -> np.ndarray:
        gone = np.isnan(priorities).sum()
        percentile = grower.percentile - (15 if gone > priorities.size / 3 else 0)
        return grower.best(priorities, max(percentile, 0))

    picked = best()
    labels = np.zeros(units.count, np.int64)
    steps = [Step(priorities.copy(), picked, labels, {0: _whole(grower)})]
    for number in range(grower.num_iters):
        if picked.all():
            break
        found = units.components(picked)
        try:
            labels = found if number == 0 else steady_labels(labels, found, _MOST_LABELS)
        except ValueError:
            labels = found
        names = np.unique(labels[labels > 0])
        own, around, gains = grower.survey([labels == name for name in names])
        priorities[np.concatenate(around)] = gains
        priorities[picked] = np.nan
        picked = grower.filled(picked | best())
        scores = dict(zip(names.tolist(), own, strict=True))
        steps.append(Step(priorities.copy(), picked, labels, scores))
    return steps + join_pairs(grower, steps[-1], any_pair=True)


def collapsed(tree: Tree) -> tuple[list[np.ndarray], list[dict[int, float]]]:
    """Return the rows that the published ``collapse_tree`` would draw for words.

    Each row numbers its groups, 0 for none, and gives their scores. Like the published one it
    counts unpicked words as a part, puts groups of several words from the first round into the
    row of words, and drops rows above an empty one.
    """
    count = tree.num_units
    steps = tree.steps
    rows = [np.zeros(count, np.int64) for _ in steps]
    rows[0] = np.arange(count)
    scores: list[dict[int, float]] = [{0: 0.0} for _ in steps]
    levels: list[dict[int, int]] = [{0: 0} for _ in steps]
    for order, step in enumerate(steps[1:], 1):
        for name, own in step.scores.items():
            group = step.labels == name
            if group.sum() == 1:
                levels[order][name] = 0
                continue
            parts = np.unique(steps[order - 1].labels[group])
            below = [levels[order - 1][int(part)] for part in parts]
            level = below[0] if len(parts) == 1 else max(below) + 1
            levels[order][name] = level
            number = int(rows[level].max()) + 1
            rows[level][group] = number
            scores[level][number] = _value(tree, own)
    filled = 0
    while filled < len(rows) and rows[filled].any():
        filled += 1
    return rows[:filled], scores[:filled]


def _value(tree: Tree, scores: np.ndarray) -> float:
    target = tree.target or 0
    if tree.options["contrast"]:
        return float(scores[target] - scores[1 - target])
    return float(scores[target])
