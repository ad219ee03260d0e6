"""Which runs the comparison consists of.

For each task and method, every candidate of the method's rates is trained with seed 0; the
candidate with the best validation figure is then trained with the other seeds. Methods that have a
rate get equally many candidates. Without a regularizer there is nothing to choose.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRAINERS = Path(__file__).parents[2] / "trainers"
METHODS = ("none", "recurrent-dropout", "zoneout")

Rates = tuple[float, ...]


@dataclass(frozen=True)
class Run:
    """One training, or one measurement of gradients: a command that writes a file of results."""

    task: str
    method: str
    rates: Rates
    seed: int
    epochs: int
    script: Path
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What its files are called."""
        return "-".join(
            [self.task, self.method, *(f"{r:g}" for r in self.rates), f"seed{self.seed}"]
        )

    def settings(self) -> dict[str, Any]:
        """What the file of results must say about the run."""
        settings = {"regularizer": self.method, "rates": list(self.rates), "seed": self.seed}
        return settings | {"epochs": self.epochs} | dict(self.options)

    def command(self, folder: Path) -> list[str]:
        """How to start it; what an interrupted one left in `folder` is gone on from."""
        out = [sys.executable, str(self.script), "--history", str(folder / f"{self.name}.json")]
        out += ["--checkpoint", str(folder / f"{self.name}.pt"), "--resume"]
        out += ["--seed", str(self.seed), "--epochs", str(self.epochs)]
        out += ["--regularizer", self.method]
        for flag, rate in zip(("--rate", "--hidden-rate"), self.rates):
            out += [flag, f"{rate:g}"]
        for name, value in self.options.items():
            out += ["--" + name.replace("_", "-"), str(value)]
        if self.task != "gradients":
            out += ["--trace", "none", "--curve", "none"]
        return out + (["--sample", "0"] if self.task == "characters" else [])


@dataclass(frozen=True)
class Task:
    """Something to learn. `unit` and `factor` are for showing the figure that is compared."""

    name: str
    script: Path
    epochs: int
    options: Mapping[str, Any]
    candidates: Mapping[str, tuple[Rates, ...]]
    title: str
    unit: str
    factor: float = 1.0

    def run(self, method: str, rates: Rates, seed: int) -> Run:
        """One of its runs."""
        return Run(self.name, method, rates, seed, self.epochs, self.script, self.options)


@dataclass(frozen=True)
class Study:
    """All tasks, and how many seeds the chosen rates are trained with."""

    tasks: tuple[Task, ...]
    seeds: int
    gradients: tuple[Run, ...] = field(default=())
    quick: bool = False

    def first(self, task: Task) -> list[Run]:
        """A task's runs that depend on no choice: all candidates, and the plain network's seeds."""
        tuning = [
            task.run(method, rates, 0) for method in METHODS for rates in task.candidates[method]
        ]
        return tuning + [task.run("none", (), seed) for seed in range(1, self.seeds)]

    def second(self, task: Task, results: Mapping[str, Any]) -> list[Run]:
        """The other seeds of the chosen rates; `results` holds those of the first runs."""
        return [
            run
            for method in METHODS
            if method != "none"
            for run in self.seeds_of(task, method, self.choice(task, method, results))[1:]
        ]

    def seeds_of(self, task: Task, method: str, rates: Rates) -> list[Run]:
        """A method's runs that are compared."""
        return [task.run(method, rates, seed) for seed in range(self.seeds)]

    def choice(self, task: Task, method: str, results: Mapping[str, Any]) -> Rates:
        """The rates with the best validation figure among the finished candidates.

        Raises
        ------
        LookupError
            If none is finished.
        """
        finished = [
            (results[run.name]["valid"], run.rates)
            for run in (task.run(method, rates, 0) for rates in task.candidates[method])
            if run.name in results
        ]
        if not finished:
            raise LookupError(f"no run of {task.name} with {method} is finished")
        return min(finished)[1]

    def size(self) -> tuple[int, int]:
        """How many runs there are, and how many epochs they take together."""
        tuned = (len(METHODS) - 1) * (self.seeds - 1)
        counts = [(len(self.first(task)) + tuned, task.epochs) for task in self.tasks]
        runs = len(self.gradients) + sum(count for count, _ in counts)
        epochs = sum(run.epochs for run in self.gradients)
        return runs, epochs + sum(count * each for count, each in counts)


def study(quick: bool = False) -> Study:
    """The comparison in full, or a short one with which to see that everything works."""
    characters = {"characters": 200_000, "steps": 64, "embedding": 64, "hidden": 128}
    images = {"rows": 14, "order": 0, "hidden": 100}
    epochs = {"characters": 60, "images": 100}
    if quick:
        characters["characters"], images["rows"] = 100_000, 7
        epochs = {"characters": 15, "images": 15}
    dropout = ((0.1,), (0.25,), (0.5,))
    tasks = (
        Task(
            "characters",
            TRAINERS / "characters.py",
            epochs["characters"],
            characters | {"batch_size": 16, "lr": 0.002, "clip": 1.0},
            {
                "none": ((),),
                "recurrent-dropout": dropout,
                "zoneout": ((0.25, 0.05), (0.5, 0.05), (0.5, 0.2)),
            },
            "Characters of Shakespeare",
            "bits per character",
        ),
        Task(
            "sequential-images",
            TRAINERS / "sequential_images.py",
            epochs["images"],
            images | {"data": "mnist-subset", "batch_size": 50, "lr": 0.001, "clip": 1.0},
            {
                "none": ((),),
                "recurrent-dropout": dropout,
                "zoneout": ((0.05, 0.05), (0.15, 0.15), (0.3, 0.3)),
            },
            "Permuted sequential images",
            "errors in percent",
            100.0,
        ),
    )
    measured = (("none", ()), ("recurrent-dropout", (0.5,)), ("zoneout", (0.5, 0.5)))
    gradients = tuple(
        Run("gradients", method, rates, 0, 1, Path(__file__).with_name("gradients.py"), images)
        for method, rates in measured
    )
    return Study(tasks, 3, gradients, quick)
