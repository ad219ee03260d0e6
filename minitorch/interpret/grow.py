"""The rounds of the agglomeration: who is asked, who is picked, who is joined.

``agglomeration.py`` is the function users call; ``reference.py`` runs the same rounds as the
published code does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch.interpret.scorers import Scorer
from minitorch.interpret.tree import Step
from minitorch.interpret.units import Units

__all__ = ["Grower", "grow", "join_pairs", "steady_labels"]


@dataclass
class Grower:
    """What a run of the agglomeration works with."""

    scorer: Scorer
    units: Units
    target: int
    percentile: float
    top_k: int | None
    num_iters: int
    absolute: bool
    contrast: bool
    smooth: bool
    leaf_scores: Any = None
    ahead: int = 0
    known: dict[bytes, np.ndarray] = field(default_factory=dict)

    def value(self, scores: np.ndarray) -> Any:
        """Return the explained class's score from scores ``(..., classes)``."""
        if self.contrast:
            return scores[..., self.target] - scores[..., 1 - self.target]
        return scores[..., self.target]

    def scores(self, groups: np.ndarray) -> np.ndarray:
        """Return the scores ``(groups, classes)`` of groups, bool ``(groups, units)``.

        Those not asked about before are scored together; most of a round's are known from the
        round before. Words have few neighbours, so what the next rounds may ask is scored along:
        a text's passes cost much the same for four groups and for ten.
        """
        keys = [row.tobytes() for row in np.packbits(groups, axis=1)]
        if any(key not in self.known for key in keys):
            asked = groups
            for _ in range(self.ahead):
                asked = np.unique(np.concatenate([asked, self.grown(asked)]), axis=0)
            rows = {row.tobytes(): at for at, row in enumerate(np.packbits(asked, axis=1))}
            unknown = [(key, at) for key, at in rows.items() if key not in self.known]
            found = self.scorer(asked[[at for _, at in unknown]])
            if not np.isfinite(self.value(found)).all():
                raise ValueError(
                    f"agglomerate: the method {self.scorer.name!r} gave scores that are not finite "
                    "and cannot be ranked; look for nan and inf in the model's weights and input "
                    f"(its logits are {self.scorer.logits.tolist()})"
                )
            self.known.update(zip([key for key, _ in unknown], found, strict=True))
        return np.stack([self.known[key] for key in keys])

    def grown(self, groups: np.ndarray) -> np.ndarray:
        """Return each group with each of its neighbours, bool ``(grown groups, units)``."""
        a, b = self.units.edges.T
        pairs = [(groups[:, a] & ~groups[:, b], b), (groups[:, b] & ~groups[:, a], a)]
        out = []
        for beside, neighbour in pairs:
            group, edge = np.nonzero(beside)
            grown = groups[group]
            grown[np.arange(len(group)), neighbour[edge]] = True
            out.append(grown)
        return np.concatenate(out)

    def singles(self) -> np.ndarray:
        """Score every unit; returns ``(units, classes)``."""
        count = self.units.count
        groups = np.concatenate([np.eye(count, dtype=bool), np.ones((1, count), bool)])
        self.leaf_scores = self.scores(groups)[:count]
        return self.leaf_scores

    def full(self) -> np.ndarray:
        """Return the scores of the whole input."""
        return self.scores(np.ones((1, self.units.count), bool))[0]

    def best(self, priorities: np.ndarray, percentile: float | None = None) -> np.ndarray:
        """Return which candidates (those not NaN) are picked in this round."""
        values = np.abs(priorities) if self.absolute else priorities
        left = ~np.isnan(values)
        if not left.any():
            return left
        if self.top_k is not None:
            order = np.argsort(np.where(left, -values, np.inf), kind="stable")
            picked = np.zeros(len(values), bool)
            picked[order[: self.top_k]] = True
            return picked & left
        threshold = np.nanpercentile(values, self.percentile if percentile is None else percentile)
        with np.errstate(invalid="ignore"):
            return left & (values >= threshold)

    def filled(self, picked: np.ndarray) -> np.ndarray:
        """On a grid, add units three of whose four neighbours are picked."""
        if not self.smooth:
            return picked
        a, b = self.units.edges.T
        count = np.bincount(a[picked[b]], minlength=len(picked))
        count += np.bincount(b[picked[a]], minlength=len(picked))
        return picked | (count >= 3)

    def survey(self, groups: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """Score groups and each group with one more neighbour, all at once.

        Returns the groups' scores ``(groups, classes)``, for each group its neighbours, and what
        each neighbour adds, one after the other.
        """
        around = [self.units.around(group) for group in groups]
        asked = [group[None] for group in groups]
        for group, neighbours in zip(groups, around, strict=True):
            grown = np.repeat(group[None], len(neighbours), axis=0)
            grown[np.arange(len(neighbours)), neighbours] = True
            asked.append(grown)
        scores = self.scores(np.concatenate(asked))
        own = scores[: len(groups)]
        gains = self.value(scores[len(groups) :]) - np.repeat(
            self.value(own), [len(neighbours) for neighbours in around]
        )
        return own, around, gains


def grow(grower: Grower) -> list[Step]:
    """Run the algorithm of the paper and return its record.

    A unit beside several groups takes the best gain any of them offers, as candidates compete: the
    largest, or with `absolute` the farthest from zero. The first entry is the start: the units' own
    scores, what was picked from them, and the whole input's score.
    """
    units = grower.units
    priorities = grower.value(grower.singles()).astype(float)
    picked = grower.best(priorities)
    labels = np.zeros(units.count, np.int64)
    steps = [Step(priorities, picked, labels, {0: grower.full()})]
    if grower.num_iters == 0:
        return steps
    for number in range(grower.num_iters + 1):
        labels = steady_labels(labels, units.components(picked))
        names = np.unique(labels[labels > 0])
        own, around, gains = grower.survey([labels == name for name in names])
        priorities = np.where(picked, np.nan, priorities)
        if not picked.all():
            neighbours = np.concatenate(around)
            order = np.argsort(np.abs(gains) if grower.absolute else gains, kind="stable")
            priorities[neighbours[order]] = gains[order]  # the last one, the best, stays
        scores = dict(zip(names.tolist(), own, strict=True))
        last = number == grower.num_iters or picked.all()
        after = picked if last else grower.filled(picked | grower.best(priorities))
        steps.append(Step(priorities, after, labels, scores))
        picked = after
        if last:
            break
    return steps + join_pairs(grower, steps[-1])


def join_pairs(grower: Grower, step: Step, any_pair: bool = False) -> list[Step]:
    """Join groups two by two until one is left, and return a record entry for each.

    The pair whose joint score exceeds the larger of its two scores most comes first; pairs that
    touch come before those that do not (unless `any_pair`).
    """
    labels, scores = step.labels, dict(step.scores)
    steps = []
    joint: dict[tuple[int, int], np.ndarray] = {}
    while len(scores) > 1:
        names = sorted(scores)
        pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
        unknown = [pair for pair in pairs if pair not in joint]
        groups = np.stack([np.isin(labels, pair) for pair in unknown])
        joint.update(zip(unknown, grower.scores(groups), strict=True))
        close = pairs if any_pair else _touching(grower.units, labels, pairs) or pairs
        gains = [
            grower.value(joint[a, b]) - max(grower.value(scores[a]), grower.value(scores[b]))
            for a, b in close
        ]
        kept, gone = close[int(np.argmax(gains))]
        scores[kept] = joint[kept, gone]
        del scores[gone]
        labels = np.where(labels == gone, kept, labels)
        joint = {pair: each for pair, each in joint.items() if not {kept, gone} & set(pair)}
        steps.append(Step(step.priorities, step.picked, labels, dict(scores)))
    return steps


def _touching(units: Units, labels: np.ndarray, pairs: list) -> list:
    ends = np.sort(labels[units.touching], axis=1)
    found = {(a, b) for a, b in np.unique(ends, axis=0).tolist() if 0 < a < b}
    return [pair for pair in pairs if pair in found]


def steady_labels(old: np.ndarray, new: np.ndarray, most: int | None = None) -> np.ndarray:
    """Rename components so that each keeps the label of what it grew from.

    One that grew from several takes the smallest of their labels, one that is new the smallest
    free one.

    Raises
    ------
    ValueError
        If a label is wanted twice, or beyond `most` labels are needed.
    """
    out = np.zeros_like(new)
    count = int(new.max(initial=0))
    limit = most if most is not None else int(old.max(initial=0)) + count
    free = list(range(1, limit + 1))
    fresh = []
    for name in range(1, count + 1):
        component = new == name
        before = np.unique(old[component])
        before = before[before > 0]
        if not before.size:
            fresh.append(component)
            continue
        out[component] = before[0]
        free.remove(int(before[0]))
    for component in reversed(fresh):
        out[component] = free.pop(0) if free else _no_label(most)
    return out


def _no_label(most: int | None) -> int:
    raise ValueError(f"more than {most} labels are needed")
