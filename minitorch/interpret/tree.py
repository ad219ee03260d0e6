"""The explicit tree that agglomeration returns: groups of units, their scores, how they grew.

A *unit* is what is never taken apart: a word, a time step, a pixel, a block, a superpixel. Leaves
are single units; every other group is the union of its children, so groups are nested, and the
root holds all units. Groups are numbered in the order of their birth, leaves first: children always
have smaller numbers than their parent, and ``tree.groups[i].id == i``.

Next rooms: ``agglomeration.py`` grows trees; ``units.py`` says what the units of an input are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Group", "Step", "Tree", "TreeBuilder"]


@dataclass(frozen=True)
class Group:
    """One node of the tree.

    Attributes
    ----------
    id : int
        Its place in ``tree.groups``.
    members : tuple of int
        Unit numbers, ascending.
    score : float
        The score for the explained class.
    scores : numpy.ndarray
        ``(classes,)``: the score for every class.
    children : tuple of int
        Ids of the groups it was joined from, in the order of their first unit; empty for a leaf.
    order : int
        The step that made it: 0 for leaves, then 1, 2, ...
    level : int
        0 for leaves, else one more than the highest child: the row of a drawing.
    """

    id: int
    members: tuple[int, ...]
    score: float
    scores: np.ndarray
    children: tuple[int, ...]
    order: int
    level: int

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.members)


@dataclass(frozen=True)
class Step:
    """What one round of the agglomeration saw and decided.

    Attributes
    ----------
    priorities : numpy.ndarray
        ``(units,)``: what joining each unit would add; NaN for units that had been picked.
    picked : numpy.ndarray of bool
        ``(units,)``: all units picked so far, this round's included.
    labels : numpy.ndarray of int
        ``(units,)``: which component each unit belonged to when the round began; 0 for none.
    scores : dict of int to numpy.ndarray
        For each label the scores ``(classes,)`` of that component.
    """

    priorities: np.ndarray
    picked: np.ndarray
    labels: np.ndarray
    scores: dict[int, np.ndarray]


@dataclass(frozen=True)
class Tree:
    """A hierarchy of groups with scores for one prediction.

    Attributes
    ----------
    groups : list of Group
        Leaves first (group ``i`` is unit ``i``), then by birth; the last one is the root.
    layout : numpy.ndarray of int
        Over the positions of the input, such as ``(T,)`` or ``(H, W)``: which unit each belongs to.
    target : int or None
        The explained class; None if scores were differences or came from one output.
    logits : numpy.ndarray
        ``(classes,)``: the model's prediction for the whole input.
    method : str
        The name of the score, such as ``"cd"``.
    steps : list of Step
        The record of the rounds.
    names : list of str or None
        What the units are called, for instance the words.
    options : dict
        The settings the tree was grown with.
    """

    groups: list[Group]
    layout: np.ndarray
    target: int | None
    logits: np.ndarray
    method: str
    steps: list[Step] = field(default_factory=list)
    names: list[str] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __getitem__(self, index: int) -> Group:
        return self.groups[index]

    def __repr__(self) -> str:
        return (
            f"Tree({self.num_units} units, {len(self.groups)} groups, height {self.height}, "
            f"method={self.method!r}, target={self.target})"
        )

    # -- reading ---------------------------------------------------------------------------------

    @property
    def root(self) -> Group:
        """The group of all units."""
        return self.groups[-1]

    @property
    def num_units(self) -> int:
        """How many units (and leaves) there are."""
        return self.root.size

    @property
    def leaves(self) -> list[Group]:
        """The single units, by number."""
        return self.groups[: self.num_units]

    @property
    def height(self) -> int:
        """The root's level."""
        return self.root.level

    def parents(self) -> list[int | None]:
        """Return for each group the id of its parent, None for the root."""
        result: list[int | None] = [None] * len(self.groups)
        for group in self.groups:
            for child in group.children:
                result[child] = group.id
        return result

    def rows(self) -> list[list[Group]]:
        """Return the groups of each level, from the leaves up, ordered by their first unit."""
        rows: list[list[Group]] = [[] for _ in range(self.height + 1)]
        for group in self.groups:
            rows[group.level].append(group)
        return [sorted(row, key=lambda group: group.members) for row in rows]

    def find(self, members: Sequence[int]) -> Group | None:
        """Return the group with exactly these units, if there is one."""
        wanted = tuple(sorted(members))
        return next((group for group in self.groups if group.members == wanted), None)

    def mask(self, group: Group | int) -> np.ndarray:
        """Return a bool array over the input's positions: True inside the group."""
        if isinstance(group, int):
            group = self.groups[group]
        return np.isin(self.layout, group.members)

    def text(self, group: Group | int, separator: str = " ") -> str:
        """Return the names of a group's units; a gap between them reads ``...``."""
        if isinstance(group, int):
            group = self.groups[group]
        words: list[str] = []
        for before, unit in zip((None, *group.members), group.members, strict=False):
            if before is not None and unit != before + 1:
                words.append("...")
            words.append(self.names[unit] if self.names else str(unit))
        return separator.join(words)

    def alive(self, order: int) -> list[Group]:
        """Return the groups that existed after step `order` and had not been joined by then."""
        born = [group for group in self.groups if group.order <= order]
        joined = {child for group in born for child in group.children}
        return [group for group in born if group.id not in joined]

    # -- files -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the tree, without the step record, as plain Python for JSON."""
        return {
            "groups": [
                {
                    "members": list(group.members),
                    "score": float(group.score),
                    "scores": group.scores.tolist(),
                    "children": list(group.children),
                    "order": group.order,
                    "level": group.level,
                }
                for group in self.groups
            ],
            "layout": self.layout.tolist(),
            "target": self.target,
            "logits": self.logits.tolist(),
            "method": self.method,
            "names": self.names,
            "options": self.options,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tree:
        """Return the tree that :meth:`to_dict` wrote down."""
        groups = [
            Group(
                number,
                tuple(entry["members"]),
                entry["score"],
                np.asarray(entry["scores"], dtype=float),
                tuple(entry["children"]),
                entry["order"],
                entry["level"],
            )
            for number, entry in enumerate(data["groups"])
        ]
        return cls(
            groups,
            np.asarray(data["layout"], dtype=np.int64),
            data["target"],
            np.asarray(data["logits"], dtype=float),
            data["method"],
            [],
            data["names"],
            data["options"],
        )

    def save(self, path: str | Path) -> None:
        """Write the tree to a JSON file."""
        Path(path).write_text(json.dumps(self.to_dict()), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Tree:
        """Read a tree that :meth:`save` wrote."""
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))


class TreeBuilder:
    """Collects groups from the leaves up; children are found, not told.

    Parameters
    ----------
    leaf_scores : numpy.ndarray
        ``(units, classes)``.
    value : callable
        Turns the scores ``(classes,)`` of a group into its score for the explained class.
    """

    def __init__(self, leaf_scores: np.ndarray, value: Any) -> None:
        self._value = value
        self.groups: list[Group] = []
        # The group each unit currently belongs to: the largest one so far.
        self._top = list(range(len(leaf_scores)))
        for unit, scores in enumerate(leaf_scores):
            self._append((unit,), scores, (), 0, 0)

    def _append(
        self,
        members: tuple[int, ...],
        scores: Any,
        children: tuple[int, ...],
        order: int,
        level: int,
    ) -> None:
        scores = np.array(scores, copy=True)
        score = float(self._value(scores))
        self.groups.append(Group(len(self.groups), members, score, scores, children, order, level))

    def add(self, members: Sequence[int], scores: np.ndarray, order: int) -> None:
        """Add the group of these units unless it is there already.

        Raises
        ------
        ValueError
            If it would cut through an existing group.
        """
        members = tuple(sorted(int(unit) for unit in members))
        tops = {self._top[unit]: None for unit in members}
        children = sorted(tops, key=lambda number: self.groups[number].members)
        if len(children) == 1 and self.groups[children[0]].members == members:
            return
        if sum(self.groups[number].size for number in children) != len(members):
            raise ValueError(f"the group of the units {members} cuts through an existing group")
        level = 1 + max(self.groups[number].level for number in children)
        for unit in members:
            self._top[unit] = len(self.groups)
        self._append(members, scores, tuple(children), order, level)

    def tops(self) -> list[Group]:
        """Return the groups that belong to no other yet, ordered by their first unit."""
        return sorted(
            (self.groups[number] for number in set(self._top)), key=lambda group: group.members
        )
