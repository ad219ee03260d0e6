"""``python -m minitorch.distributed.run --nproc_per_node N script.py ...``: PyTorch's way to say
``minitorch launch``.

Only what one machine needs is understood; the rest of ``torchrun`` (rendezvous, elasticity) is the
MPI launcher's job and is refused by name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Start the script on some ranks of this machine and return the job's status."""
    parser = argparse.ArgumentParser(
        prog="python -m minitorch.distributed.run",
        description="Start a script on several ranks of this machine.",
        epilog="For several hosts see `minitorch launch --help`.",
    )
    parser.add_argument(
        "--nproc-per-node", "--nproc_per_node", default="1", metavar="N", help="number of ranks"
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        help="accepted: a job here is always its own rendezvous",
    )
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module name")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args(argv)
    if not asked.nproc_per_node.isdigit() or int(asked.nproc_per_node) < 1:
        parser.error(f"--nproc-per-node must be a positive number, got {asked.nproc_per_node!r}")

    from minitorch.cli.app import main as minitorch

    module = ["-m"] if asked.module else []
    return minitorch(
        ["launch", "-n", asked.nproc_per_node, *module, asked.script, *asked.arguments]
    )


if __name__ == "__main__":
    sys.exit(main())
