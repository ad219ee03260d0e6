"""Summarise a timeline: how long ranks computed and communicated, and how much of it was hidden.

The file is what `minitorch.profiler.trace(path)` or a trainer's --trace wrote. To look at it, open
https://ui.perfetto.dev (or chrome://tracing) and load the file: one process per rank, one track
each for computation and communication.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING

from minitorch.cli.errors import CommandError

if TYPE_CHECKING:
    from minitorch.profiler import Summary

HELP = "summarise a recorded timeline"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", help="a Chrome trace (JSON)")
    parser.add_argument("--json", action="store_true", help="print means in seconds as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the summary of one file."""
    from minitorch.profiler import summarize

    try:
        summary = summarize(arguments.file)
    except FileNotFoundError as error:
        raise CommandError(f"there is no file {arguments.file}") from error
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error

    if arguments.json:
        print(json.dumps({str(rank): _means(summary, rank) for rank in summary.steps}))
        return 0

    from rich.console import Console
    from rich.table import Table

    console = Console()
    if any(summary.steps.values()):
        table = Table(title=f"{arguments.file}: means without the first step", title_justify="left")
        table.add_column("")
        for rank in summary.steps:
            table.add_column(f"rank {rank}", justify="right")
        for label, texts in summary.rows():
            table.add_row(label, *texts)
        console.print(table)
    else:
        console.print(f"{arguments.file}: no backward pass that communicated", highlight=False)
    if not summary.complete:
        console.print("[yellow]The recording ended with an exception:[/] events may be missing.")
    console.print("To look at it: load the file in https://ui.perfetto.dev", highlight=False)
    return 0


def _means(summary: Summary, rank: int) -> dict[str, float | None]:
    names = ("forward", "backward", "optimizer", "communication", "hidden", "exposed", "period")
    means = {name: summary.mean(name, rank) for name in names}
    means["share_hidden"] = summary.share_hidden(rank)
    return {name: None if math.isnan(value) else value for name, value in means.items()}
