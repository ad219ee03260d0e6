"""`minitorch bench`: choose, run, print."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from . import (  # noqa: F401 - they register
    collectives,
    compute,
    interpreting,
    linear,
    network,
    overlapping,
    recurrent,
    reducing,
)
from .measure import Figure
from .peers import WorkerError
from .registry import BENCHMARKS, Settings, Skipped, chosen
from .report import machine, table, write_json

__all__ = ["main", "parser"]


def parser() -> argparse.ArgumentParser:
    """Return the command line of `minitorch bench`."""
    out = argparse.ArgumentParser(
        prog="minitorch bench",
        description="Speed, each figure a ratio of two things that take turns. Without names: all.",
    )
    out.add_argument("names", nargs="*", metavar="name", help="which benchmarks (see --list)")
    out.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    out.add_argument(
        "--quick", action="store_true", help="fewer and shorter rounds: a look, not a result"
    )
    out.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="rounds per figure (default: 9 to 21, as the figure needs)",
    )
    out.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    out.add_argument(
        "--torch-python",
        metavar="PATH",
        help="a Python that has PyTorch (default: this one, if it has)",
    )
    out.add_argument(
        "--mpiexec",
        metavar="PATH",
        help="the launcher (default: the one installed beside this Python)",
    )
    return out


def find_torch(asked: str | None) -> str | None:
    """Return the interpreter for the PyTorch side, or None.

    Raises
    ------
    ValueError
        The one that was asked for cannot import torch.
    """
    if asked is None:
        return sys.executable if find_spec("torch") else None
    try:
        done = subprocess.run(
            [asked, "-c", "import torch"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ValueError(f"--torch-python {asked}: {error}") from None
    if done.returncode:
        raise ValueError(
            f"--torch-python {asked} cannot import torch: {done.stderr.strip().splitlines()[-1]}"
        )
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 if every target that could be compared was met."""
    arguments = parser()
    args = arguments.parse_args(argv)
    console = Console(width=None if sys.stdout.isatty() else 120)
    if args.list:
        for item in BENCHMARKS.values():
            console.print(f"[bold]{item.name:<14}[/]{escape(item.about)}", highlight=False)
        return 0
    if args.rounds is not None and args.rounds < 1:
        arguments.error(f"--rounds must be at least 1, got {args.rounds}")
    try:
        benchmarks = chosen(args.names)
        settings = Settings(
            args.quick, args.rounds, find_torch(args.torch_python), mpiexec=args.mpiexec
        )
    except ValueError as error:
        arguments.error(str(error))
    about = machine()
    _say_where(console, about, settings)
    figures: list[Figure] = []
    skipped: dict[str, str] = {}
    failed = False
    for item in benchmarks:
        console.print(f"[dim]{item.name}: {escape(item.about)}[/]", highlight=False)
        mine: list[Figure] = []
        try:
            mine.extend(item.run(settings))  # keeps what came before an error
        except Skipped as reason:
            skipped[item.name] = str(reason)
            console.print(f"[yellow]{item.name} skipped:[/] {escape(str(reason))}", highlight=False)
        except WorkerError as error:
            failed = True
            skipped[item.name] = f"failed: {error}"
            console.print(f"[red]{item.name} failed:[/] {escape(str(error))}", highlight=False)
        if mine:
            console.print(table(mine))
            for note in dict.fromkeys(figure.note for figure in mine if figure.note):
                console.print(f"  {escape(note)}", style="dim", highlight=False)
        figures += mine
    if args.json is not None:
        write_json(args.json, about, figures, skipped)
        console.print(f"written to {escape(str(args.json))}", highlight=False)
    missed = [f"{f.benchmark} {f.name}" for f in figures if f.met is False]
    met = sum(f.met is True for f in figures)
    console.print(
        f"{met} targets met, {len(missed)} missed, {len(skipped)} skipped or failed",
        highlight=False,
    )
    return 1 if missed or failed else 0


def _say_where(console: Console, about: dict[str, object], settings: Settings) -> None:
    where = f"{about['cores']} cores, {about['processor']}; Python {about['python']}"
    console.print(f"{where}; load {about['load']}", highlight=False)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        console.print("[yellow]This machine is busy:[/] read the quartiles, and repeat.")
    if settings.torch_python is None:
        console.print(
            "No PyTorch here: those figures are absolute. [dim]--torch-python PATH names one.[/]"
        )
