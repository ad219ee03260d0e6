"""The two pictures of the report: learning curves, and gradients through time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .tables import rates_text

_COLOURS = {"none": "tab:blue", "recurrent-dropout": "tab:green", "zoneout": "tab:orange"}


def draw(results: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Write what there are results for; return file names by picture."""
    folder.mkdir(parents=True, exist_ok=True)
    out = {}
    begun = [task for task in results["tasks"].values() if any(_runs(task))]
    if begun:
        out["curves"] = "zoneout_curves.png"
        _curves(begun).savefig(folder / out["curves"], dpi=80)
    if results["gradients"]:
        out["gradients"] = "zoneout_gradients.png"
        _gradients(results["gradients"]).savefig(folder / out["gradients"], dpi=80)
    return out


def _label(method: str, rates: list[float]) -> str:
    return f"{method} {rates_text(rates)}".strip()


def _runs(task: Mapping[str, Any]) -> list[Any]:
    return [method["runs"] for method in task["methods"].values()]


def _curves(tasks: Sequence[Mapping[str, Any]]) -> Figure:
    """One panel per task; the band spans the seeds."""
    figure = Figure(figsize=(5.6 * len(tasks), 4), layout="constrained")
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        factor = task["factor"]
        same_unit = factor == 1.0  # else the training loss is in another unit than the errors
        shown: list[np.ndarray] = []
        for method, content in task["methods"].items():
            if not content["runs"]:
                continue
            colour = _COLOURS[method]
            valid = factor * np.array([run["valid_curve"] for run in content["runs"]])
            epochs = np.arange(1, valid.shape[1] + 1)
            label = _label(method, content["rates"])
            shown.append(valid[:, len(epochs) // 10 :])
            axes.plot(epochs, valid.mean(axis=0), color=colour, label=label)
            axes.fill_between(
                epochs, valid.min(axis=0), valid.max(axis=0), color=colour, alpha=0.2, lw=0
            )
            if same_unit:
                train = np.array([run["train_curve"] for run in content["runs"]])
                axes.plot(epochs, train.mean(axis=0), ":", color=colour)
        axes.set(title=task["title"], xlabel="epoch", ylabel=task["unit"])
        # The first epochs fall steeply, and would leave no room for the differences.
        axes.set_ylim(top=1.02 * max(late.max() for late in shown))
        axes.legend()
    return figure


def _gradients(gradients: Mapping[str, Any]) -> Figure:
    """Hidden state and cell side by side."""
    figure = Figure(figsize=(11.2, 4), layout="constrained")
    for axes, state, name in zip(figure.subplots(1, 2), ("hidden", "cell"), "hc", strict=True):
        for method, content in gradients.items():
            norms = np.array(content[state])
            norms[norms == 0] = np.nan  # the last cell has no gradient: nothing reads it
            label = _label(method, content["rates"])
            axes.plot(norms / np.nansum(norms), color=_COLOURS[method], label=label)
        axes.set(
            title=f"‖∂L/∂{name}_t‖, summed over one epoch",
            xlabel="time step t",
            ylabel="share of the sum",
        )
        axes.set_yscale("log")
        axes.legend()
    return figure
