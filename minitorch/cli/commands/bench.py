"""Measure the speed of this installation; every figure is a ratio measured side by side."""

from __future__ import annotations

import argparse

from minitorch.cli.errors import CommandError

HELP = "measure speed, as ratios (--list: what there is)"
OWN_PARSER = True  # what follows `minitorch bench` is for minitorch.bench to understand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take whatever comes."""
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def run(arguments: argparse.Namespace) -> int:
    """Hand the arguments to `minitorch.bench`."""
    try:
        from minitorch.bench.command import main
    except ImportError as error:
        raise CommandError(
            f"the benchmarks cannot be imported: {error}. `minitorch doctor` says what is missing"
        ) from error
    return main(arguments.arguments)
