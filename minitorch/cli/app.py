"""Finds the subcommands, parses the command line, runs one."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from minitorch.cli import commands
from minitorch.cli.errors import CommandError


def command_modules() -> dict[str, ModuleType]:
    """Return the subcommands by name: every public module of `minitorch.cli.commands`.

    They import what they need inside `run`, so that one broken dependency does not take the
    others down: `minitorch doctor` has to work when little else does.
    """
    names = sorted(
        info.name
        for info in pkgutil.iter_modules(commands.__path__)
        if not info.name.startswith("_")
    )
    return {name: importlib.import_module(f"{commands.__name__}.{name}") for name in names}


def build_parser(modules: dict[str, ModuleType]) -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="minitorch",
        description="minitorch: a small PyTorch to learn from, run, and hack on.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in modules.items():
        sub = subparsers.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's) and return the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    modules = command_modules()
    parser = build_parser(modules)
    if argv and getattr(modules.get(argv[0]), "OWN_PARSER", False):
        arguments = argparse.Namespace(
            version=False, command=argv[0], arguments=argv[1:], run=modules[argv[0]].run
        )
    else:
        arguments = parser.parse_args(argv)
    if arguments.version:
        from importlib import metadata

        print(f"minitorch {metadata.version('minitorch-ddp')}")
        return 0
    if arguments.command is None:
        parser.print_help()
        return 2
    try:
        return int(arguments.run(arguments))
    except CommandError as error:
        print(f"minitorch {arguments.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `minitorch trace ... | head`
        return 0
    except KeyboardInterrupt:
        return 130
