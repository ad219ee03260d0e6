"""Running many programs, some at a time, in a way that survives an interruption.

A run is finished when its file of results is there, which its program writes last and whole.
Started again, finished runs are skipped and unfinished ones continue from their checkpoints.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .plan import Run

_EPOCH = re.compile(r"epoch +(\d+) of")


def load_result(folder: Path, run: Run) -> dict[str, Any] | None:
    """The results of a finished run, else None.

    Raises
    ------
    SystemExit
        The file is of a run with other settings.
    """
    path = folder / f"{run.name}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text())
    expected, found = run.settings(), content["settings"]
    different = [
        f"{name} is {found.get(name)!r} and should be {value!r}"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    if different:
        raise SystemExit(
            f"{path} is of another plan ({'; '.join(different)}). Name another folder with --runs, "
            f"or remove it"
        )
    return dict(content)


def load_results(folder: Path, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """The results of all finished ones among `runs`, by name."""
    found = {run.name: load_result(folder, run) for run in runs}
    return {name: result for name, result in found.items() if result is not None}


def run_all(folder: Path, runs: Sequence[Run], parallel: int, console: Console) -> None:
    """Run what is not finished, `parallel` at a time.

    Raises
    ------
    SystemExit
        One failed; says which, with the end of what it printed. The others are stopped and, as
        after Ctrl-C, continue from their checkpoints when started again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = load_results(folder, runs)
    waiting = [run for run in runs if run.name not in done]
    epochs = sum(run.epochs for run in runs)
    finished = epochs - sum(run.epochs for run in waiting)
    active: list[_Active] = []
    with _bar(console) as bar, contextlib.ExitStack() as stop:
        stop.callback(_stop, active)
        task = bar.add_task("", total=epochs, completed=finished, note="")
        while waiting or active:
            while waiting and len(active) < parallel:
                active.append(_start(folder, waiting.pop(0)))
            time.sleep(0.1)
            for job in [job for job in active if job.process.poll() is not None]:
                active.remove(job)
                _finish(folder, job)
                finished += job.run.epochs
                left = len(waiting) + len(active)
                console.print(f"{job.run.name}: done; {left} runs are left", highlight=False)
            progress = [(job, job.epochs_done()) for job in active]
            note = "   ".join(f"{job.run.name} {n}/{job.run.epochs}" for job, n in progress)
            bar.update(task, completed=finished + sum(n for _, n in progress), note=note)


@dataclass
class _Active:
    run: Run
    process: subprocess.Popen[bytes]
    log: Path

    def epochs_done(self) -> int:
        """As far as its program has said."""
        found = _EPOCH.findall(_tail(self.log))
        return int(found[-1]) if found else 0


def _start(folder: Path, run: Run) -> _Active:
    log = folder / f"{run.name}.log"
    # One thread each: `parallel` of them share the cores.
    environment = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | dict(os.environ)
    with open(log, "wb") as out:
        process = subprocess.Popen(
            run.command(folder), stdout=out, stderr=subprocess.STDOUT, env=environment
        )
    return _Active(run, process, log)


def _finish(folder: Path, job: _Active) -> None:
    if job.process.returncode != 0 or load_result(folder, job.run) is None:
        raise SystemExit(
            f"{job.run.name} failed (exit code {job.process.returncode}):\n{_tail(job.log)}\n"
            f"All of it is in {job.log}; what is finished is kept"
        )
    (folder / f"{job.run.name}.pt").unlink(missing_ok=True)


def _stop(active: list[_Active]) -> None:
    for job in active:
        job.process.terminate()
    for job in active:
        job.process.wait()


def _tail(path: Path, size: int = 2000) -> str:
    """The end of a text file."""
    with open(path, "rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - size))
        return stream.read().decode(errors="replace")


@contextlib.contextmanager
def _bar(console: Console) -> Iterator[Progress]:
    """A bar over all epochs, where there is a terminal."""
    bar = Progress(
        TextColumn("{task.percentage:>3.0f}%"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=True,
        speed_estimate_period=1800,
        disable=not console.is_terminal,
    )
    with bar:
        yield bar
