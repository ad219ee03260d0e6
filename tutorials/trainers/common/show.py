"""What rank 0 prints: progress while it runs, a table at the end. The other ranks are silent."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

import minitorch.distributed as dist


class Show:
    """A live bar on a terminal, plain lines elsewhere."""

    def __init__(self, rank: int) -> None:
        self.console = Console(quiet=rank != 0, highlight=False, soft_wrap=not sys.stdout.isatty())
        self._progress: Progress | None = None
        self._task: Any = None
        if rank == 0 and self.console.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )

    def __enter__(self) -> Show:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def line(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(text, markup=False)

    def steps(self, total: int, done: int = 0) -> None:
        """Begin a bar of `total` steps."""
        if self._progress is not None:
            self._task = self._progress.add_task("steps", total=total, completed=done, note="")

    def step(self, note: Callable[[], str]) -> None:
        """One step more; `note` is only called where it is shown."""
        if self._progress is not None:
            self._progress.update(self._task, advance=1, note=note())


@dataclass
class Summary:
    """What a run came to: `rows` for people, `values` for programs, and what to try next."""

    rows: list[tuple[str, str]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    next_step: str = ""

    def show(self, show: Show, title: str) -> None:
        """Print the table."""
        table = Table(title=title, title_justify="left", show_header=False)
        for row in self.rows:
            table.add_row(*row)
        show.console.print(table)
        if self.next_step:
            show.line(f"Next: {self.next_step}")


def communication_rows(ddp: Any) -> list[tuple[str, str]]:
    """Describe what DDP measured, without the first reduction (which is one bucket)."""
    if dist.get_world_size() == 1:
        return [("communication", "none: one rank")]
    facts = ddp._get_ddp_logging_data()
    total = facts.get("avg_backward_comm_time", 0)
    if not total:
        return [("communication", "not measured: too few steps")]
    hidden = facts["avg_backward_compute_comm_overlap_time"]
    exposed = facts["avg_backward_comm_exposed_time"]
    return [
        (
            "communication",
            f"{total / 1e6:.2f} ms per step, in {facts['num_buckets_reduced']} buckets",
        ),
        ("  hidden under backward", f"{hidden / total:.0%} of it"),
        ("  waited for", f"{exposed / 1e6:.2f} ms per step"),
    ]


def where(path: Path | None) -> str:
    """Say where a file is."""
    return "not written" if path is None else os.path.relpath(path)
