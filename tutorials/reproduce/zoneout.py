"""Zoneout against recurrent dropout and a plain LSTM: many runs, one table.

    make reproduce-zoneout                          # hours, on two cores
    make reproduce-zoneout REPRODUCE_ARGS=--quick   # minutes: to see it work, not to conclude from
    python tutorials/reproduce/zoneout.py --report  # what is finished so far

The comparison of the zoneout paper (Krueger et al., 2016) at a size for two processor cores: a
character model on Shakespeare and permuted sequential images, each with three methods. Rates are
tuned on validation data with equally many candidates per method; the chosen ones are trained with
three seeds; what is compared are the weights of each run's best validation epoch, on test data.

Each run is a trainer's (`tutorials/trainers/`) and leaves one file when it is finished. Interrupt
and start again as often as you like: finished runs are kept, and unfinished ones continue.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from rich.console import Console
from study import plan, pool, tables

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and write the report."""
    args = command().parse_args(arguments)
    console = Console(soft_wrap=not sys.stdout.isatty())
    if args.stored is not None:
        results = json.loads(args.stored.read_text())
        write_report(results, args.stored.parent, args.docs, console)
        return
    study = plan.study(args.quick)
    folder = args.runs or Path("runs", "reproduce-zoneout" + ("-quick" if args.quick else ""))
    if not args.report:
        check_data()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: stops the runs
        run_study(study, folder, args.parallel, console)
    results = tables.collect(study, folder)
    if args.docs and args.quick:
        raise SystemExit("--docs: a quick run is too short to stand in the documentation")
    if args.docs and not any(map(tables.is_complete, results["tasks"].values())):
        raise SystemExit(
            "--docs: no task is complete ("
            + "; ".join(f"{k}: {tables.progress(t)}" for k, t in results["tasks"].items())
            + "), and the documentation shows whole comparisons only"
        )
    write_report(results, folder, args.docs, console)


def run_study(study: plan.Study, folder: Path, parallel: int, console: Console) -> None:
    """Task by task: candidates and plain network, then the chosen rates' other seeds."""
    runs, epochs = study.size()
    console.print(
        f"{runs} runs, {epochs:,} epochs together, {parallel} at a time; their files are in "
        f"{folder}. Interrupt with Ctrl-C; the same command goes on.",
        highlight=False,
    )
    if study.quick:
        console.print("This is the quick version: too short to conclude anything from.")
    try:
        pool.run_all(folder, study.gradients, parallel, console)
        for task in study.tasks:
            first = study.first(task)
            pool.run_all(folder, first, parallel, console)
            second = study.second(task, pool.load_results(folder, first))
            pool.run_all(folder, second, parallel, console)
    except KeyboardInterrupt:
        raise SystemExit("\ninterrupted; the same command goes on") from None


def write_report(results: dict, folder: Path, docs: bool, console: Console) -> None:
    """Write results, pictures and report beside the runs, or into the documentation."""
    from study import pictures

    if docs:
        results = results | {"tasks": tables.complete_only(results["tasks"])}
        images = pictures.draw(results, DOCS / "images")
        report = tables.markdown(results, {k: f"images/{v}" for k, v in images.items()})
        (DOCS / "zoneout.json").write_text(json.dumps(results) + "\n")
        tables.write_into(DOCS / "zoneout.md", report)
        console.print(f"Written into {DOCS / 'zoneout.md'}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    report = tables.markdown(results, pictures.draw(results, folder))
    (folder / "report.md").write_text(report)
    (folder / "results.json").write_text(json.dumps(results) + "\n")
    console.print(report, markup=False, highlight=False)
    console.print(f"Report, pictures and results.json are in {folder}", highlight=False)


def check_data() -> None:
    """End at once, saying what to do, if a data set is missing."""
    from minitorch import datasets

    for load in (datasets.shakespeare, datasets.mnist_subset):
        try:
            load()
        except FileNotFoundError as error:
            raise SystemExit(str(error)) from error


def count(text: str) -> int:
    """For argparse."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return int(text)


def command() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(
        description="Compare zoneout with recurrent dropout and a plain LSTM.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    out.add_argument("--quick", action="store_true", help="a short version, not to conclude from")
    out.add_argument("--report", action="store_true", help="run nothing; report what is finished")
    text = "where the runs' files are; by default in runs/"
    out.add_argument("--runs", type=Path, metavar="FOLDER", help=text)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    text = "how many runs at a time, on one core each"
    out.add_argument("--parallel", type=count, default=min(2, cores), metavar="N", help=text)
    text = "write results and pictures of complete tasks into docs/"
    out.add_argument("--docs", action="store_true", help=text)
    text = "draw the report from stored results, such as docs/zoneout.json"
    out.add_argument("--stored", type=Path, metavar="FILE", help=text)
    return out


if __name__ == "__main__":
    main()
