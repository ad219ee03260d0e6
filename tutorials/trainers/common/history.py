"""Curves of a run, the best epoch and its weights, and when to stop."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import minitorch.distributed as dist


class History:
    """One row of figures per epoch; `watched` decides which epoch was the best: the lower, the better.

    What it holds is part of the checkpoint, so that a resumed run draws whole curves and goes back
    to the same best weights.
    """

    def __init__(self, watched: str, patience: int | None = None) -> None:
        self.watched, self.patience = watched, patience
        self.rows: list[dict[str, float]] = []
        self.best_epoch = 0
        self.best_weights: dict[str, Any] = {}

    @property
    def best(self) -> float:
        """The best value of the watched figure; infinite before the first epoch."""
        return self.rows[self.best_epoch - 1][self.watched] if self.best_epoch else math.inf

    @property
    def is_over(self) -> bool:
        """Whether the watched figure has not improved for `patience` epochs."""
        return self.patience is not None and len(self.rows) - self.best_epoch >= self.patience

    def add(self, model: Any, **figures: float) -> bool:
        """Add an epoch; return whether it is the best so far, in which case the weights are kept."""
        better = figures[self.watched] < self.best
        self.rows.append(figures)
        if better:
            self.best_epoch = len(self.rows)
            state = model.state_dict()
            self.best_weights = {
                name: value.clone() if hasattr(value, "clone") else value
                for name, value in state.items()
            }
        return better

    def curve(self, name: str) -> list[float]:
        """One figure over the epochs."""
        return [row[name] for row in self.rows]

    def record(self, task: str, **figures: float) -> dict[str, Any]:
        """What the JSON file of a run holds: the best epoch, figures of its weights, all epochs."""
        best = {"best_epoch": self.best_epoch, "valid": self.best}
        return {
            "task": task,
            "ranks": dist.get_world_size(),
            **best,
            **figures,
            "epochs": self.rows,
        }

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {
            "rows": [dict(row) for row in self.rows],
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.rows = [dict(row) for row in state["rows"]]
        self.best_epoch = int(state["best_epoch"])
        self.best_weights = dict(state["best_weights"])


def write_json(path: Path | None, content: dict[str, Any]) -> None:
    """Write a file of figures, whole or not at all; rank 0 does."""
    if path is None or dist.get_rank() != 0:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
