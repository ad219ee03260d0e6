"""The command `minitorch`: doctor, launch, bench, trace.

A subcommand is one file in `commands/` with `HELP`, `add_arguments(parser)` and `run(args) -> int`.
"""

from minitorch.cli.app import main

__all__ = ["main"]
