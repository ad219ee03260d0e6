"""Look at this installation and say what is wrong, with a remedy for each thing.

Exits with status 1 if something is wrong (0 for mere advice). Under mpirun it also checks that the
job is one job, and the first rank of each host looks at that host:

  minitorch launch -n 2 -m minitorch doctor
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

HELP = "check this installation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print facts and findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print what was found here."""
    from minitorch.cli.facts import collect
    from minitorch.cli.findings import findings, rows

    facts = collect()
    if facts.local_rank > 0:
        return 0  # the first rank of this host reports; ending with 1 could cut it short
    found = findings(facts)
    wrong = any(finding.error for finding in found)
    if arguments.json:
        print(json.dumps({"facts": asdict(facts), "findings": [asdict(f) for f in found]}))
        return int(wrong)

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # In a log, lines stay whole: a path that is cut in two cannot be copied.
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows(facts):
        table.add_row(label, escape(text))
    console.print(table)
    for finding in found:
        mark = "[red]wrong:[/]" if finding.error else "[yellow]advice:[/]"
        console.print(f"\n{mark} {escape(finding.what)}")
        console.print(f"  remedy: {escape(finding.remedy)}")
    if not found:
        console.print("\n[green]Everything is in order.[/]")
    return int(wrong)
