"""What the runs came to: one small dictionary of results, and a page of Markdown from it alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .plan import METHODS, Run, Study, Task
from .pool import load_results

TOO_SHORT = (
    "**This was a quick run: it shows that the programs work, and is too short to conclude from. "
    "Early in training a regularized network is behind the plain one, whatever comes later.**"
)
_BEGIN, _END = "<!-- results: begin -->", "<!-- results: end -->"


def collect(study: Study, folder: Path) -> dict[str, Any]:
    """Everything that the report needs, of the runs in `folder` that are finished.

    Learning curves are rounded to four digits; this is what is stored.
    """
    tasks = {task.name: _task(study, task, folder) for task in study.tasks}
    found = load_results(folder, study.gradients)
    gradients = {
        run.method: {name: found[run.name][name] for name in ("hidden", "cell")}
        | {"rates": list(run.rates)}
        for run in study.gradients
        if run.name in found
    }
    return {"quick": study.quick, "seeds": study.seeds, "tasks": tasks, "gradients": gradients}


def _task(study: Study, task: Task, folder: Path) -> dict[str, Any]:
    first = load_results(folder, study.first(task))
    finished, methods = set(first), {}
    for method in METHODS:
        try:
            chosen = study.choice(task, method, first)
        except LookupError:
            continue
        runs = study.seeds_of(task, method, chosen)
        results = load_results(folder, runs)
        finished.update(results)
        methods[method] = {
            "rates": list(chosen),
            "candidates": _candidates(task, method, first),
            "runs": [_one(run, results[run.name]) for run in runs if run.name in results],
        }
    return {
        "title": task.title,
        "unit": task.unit,
        "factor": task.factor,
        "epochs": task.epochs,
        "options": dict(task.options),
        "methods": methods,
        "finished": len(finished),
        "runs": len(study.first(task)) + (len(METHODS) - 1) * (study.seeds - 1),
    }


def _candidates(task: Task, method: str, first: Mapping[str, Any]) -> list[dict[str, Any]]:
    runs = [task.run(method, rates, 0) for rates in task.candidates[method]]
    return [
        {"rates": list(run.rates), "valid": first[run.name]["valid"]}
        for run in runs
        if run.name in first
    ]


def _one(run: Run, result: Mapping[str, Any]) -> dict[str, Any]:
    curves = {
        f"{name}_curve": [float(f"{row[name]:.4g}") for row in result["epochs"]]
        for name in ("train", "valid")
    }
    return {
        "seed": run.seed,
        "best_epoch": result["best_epoch"],
        "valid": result["valid"],
        "test": result["test"],
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in result["epochs"])),
        **curves,
    }


def mean_and_deviation(values: list[float], digits: int = 3) -> str:
    """Mean ± sample standard deviation; one value has no deviation, and none is a dash."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.{digits}f} (one seed)"
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def rates_text(rates: list[float]) -> str:
    """0.5/0.05, or nothing."""
    return "/".join(f"{rate:g}" for rate in rates)


def is_complete(task: Mapping[str, Any]) -> bool:
    """Whether every run of a task is finished."""
    return bool(task["finished"] == task["runs"])


def progress(task: Mapping[str, Any]) -> str:
    """How far a task is."""
    return f"{task['finished']} of {task['runs']} runs are finished"


def complete_only(tasks: Mapping[str, Any]) -> dict[str, Any]:
    """The tasks, without the figures of those that are not complete."""
    return {
        name: task if is_complete(task) else dict(task) | {"methods": {}}
        for name, task in tasks.items()
    }


def markdown(results: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """The report; `pictures` are paths of PNG files, by name."""
    out = [TOO_SHORT] if results["quick"] else []
    for task in results["tasks"].values():
        out += [f"### {task['title']}", _setting(task)]
        if not is_complete(task):
            out.append(f"**Only {progress(task)}: not a comparison yet.**")
        if task["methods"]:
            out += [_table(task, results["seeds"]), _versus(task), _tuning(task)]
    for name, caption in (
        ("curves", "Validation (solid) and training loss (dotted), means over seeds."),
        (
            "gradients",
            "How far the gradient of a loss at the last step reaches back: its norm at every step of "
            "the permuted images, summed over the first epoch of training, each curve divided by its "
            "sum.",
        ),
    ):
        if name in pictures:
            out.append(f"![{caption}]({pictures[name]})\n\n{caption}")
    seconds = sum(
        run["cpu_seconds"]
        for task in results["tasks"].values()
        for method in task["methods"].values()
        for run in method["runs"]
    )
    if seconds:
        out.append(f"The compared runs took {seconds / 3600:.1f} hours of processor time.")
    return "\n\n".join(part for part in out if part) + "\n"


def _setting(task: Mapping[str, Any]) -> str:
    options = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in task["options"].items())
    return f"{task['epochs']} epochs each; {options}. Figures are {task['unit']}, lower is better."


def _table(task: Mapping[str, Any], seeds: int) -> str:
    lines = [
        "| method | rates | best validation | test | best epoch | seeds |",
        "|---|---|---|---|---|---|",
    ]
    for name, method in task["methods"].items():
        runs = method["runs"]
        valid, test = (
            mean_and_deviation([task["factor"] * run[part] for run in runs])
            for part in ("valid", "test")
        )
        epoch = statistics.mean(run["best_epoch"] for run in runs) if runs else float("nan")
        rates = rates_text(method["rates"]) or "–"
        count = f"{len(runs)} of {seeds}"
        lines.append(f"| {name} | {rates} | {valid} | {test} | {epoch:.0f} | {count} |")
    return "\n".join(lines)


def _versus(task: Mapping[str, Any]) -> str:
    """How often each method was better on the test data than the plain network of that seed."""
    methods = task["methods"]
    if "none" not in methods:
        return ""
    plain = {run["seed"]: run["test"] for run in methods["none"]["runs"]}
    lines = []
    for name, method in methods.items():
        pairs = [(r["test"], plain[r["seed"]]) for r in method["runs"] if r["seed"] in plain]
        if name == "none" or not pairs:
            continue
        better = sum(ours < theirs for ours, theirs in pairs)
        mean = task["factor"] * statistics.mean(ours - theirs for ours, theirs in pairs)
        lines.append(
            f"{name}: better than none with {better} of {len(pairs)} seeds, mean difference "
            f"{mean:+.3f}"
        )
    return "On the test data, " + "; ".join(lines) + "." if lines else ""


def _tuning(task: Mapping[str, Any]) -> str:
    lines = []
    for name, method in task["methods"].items():
        if name != "none":
            tried = ", ".join(
                f"{rates_text(c['rates'])}: {task['factor'] * c['valid']:.3f}"
                for c in method["candidates"]
            )
            lines.append(f"{name} {tried}")
    if not lines:
        return ""
    return "Rates tried with seed 0 (best validation figure): " + "; ".join(lines) + "."


def write_into(page: Path, report: str) -> None:
    """Replace what stands between the page's two marks.

    Raises
    ------
    ValueError
        If the page does not have both, once.
    """
    text = page.read_text()
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise ValueError(f"{page} needs the lines {_BEGIN} and {_END}, once each")
    head, rest = text.split(_BEGIN)
    tail = rest.split(_END)[1]
    page.write_text(f"{head}{_BEGIN}\n\n{report}\n{_END}{tail}")
