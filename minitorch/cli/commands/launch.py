"""Start a script on several ranks, with the mpirun that belongs to this installation.

  minitorch launch -n 4 train.py --lr 0.1
  minitorch launch -n 4 -m package.train --lr 0.1
  minitorch launch -n 8 --hosts node1,node2 --per-host 4 train.py

BLAS threads per rank are set to cores / ranks, unless OMP_NUM_THREADS is set. The exit status is
the job's; 124 after --timeout, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from types import FrameType

from minitorch.cli.errors import CommandError

HELP = "start a script on several ranks"

# How long a job may take to end after it was asked to, before it is killed.
GRACE_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "minitorch launch -n RANKS [options] (script.py | -m module) [arguments ...]"
    add = parser.add_argument
    add("-n", "--ranks", "-np", type=int, default=2, help="number of ranks (default: 2)")
    add("--hosts", help="comma-separated hosts, reachable by ssh without a password")
    add("--hostfile", help="a file of hosts, in the format of the MPI in use")
    add("--per-host", type=int, metavar="K", help="ranks per host (default: evenly)")
    add("--mpirun", metavar="PATH", help="another launcher than this environment's")
    add("--env", action="append", default=[], metavar="NAME=VALUE", help="set a variable (repeat)")
    add("--timeout", type=float, metavar="SECONDS", help="end the job after this time")
    add("--dry-run", action="store_true", help="print the command and do not run it")
    add("-m", "--module", action="store_true", help="run a module, like python -m")
    add("script", help="the script, or with -m the module")
    add("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(arguments: argparse.Namespace) -> int:
    """Start the job, wait for it, return its exit status."""
    from minitorch.cli import launching
    from minitorch.distributed._mpi_check import (
        launcher_says,
        module_file,
        mpi_flavour,
        read_build_info,
    )

    inside = launcher_says()
    if inside is not None:
        raise CommandError(
            f"this process is already a rank of a job ({inside.evidence}); start jobs from outside"
        )
    if arguments.timeout is not None and arguments.timeout <= 0:
        raise CommandError(f"--timeout must be positive, got {arguments.timeout:g}")
    job = launching.Job(
        ranks=arguments.ranks,
        command=launching.python_command(
            arguments.script, arguments.arguments, module=arguments.module
        ),
        hosts=tuple(host.strip() for host in (arguments.hosts or "").split(",") if host.strip()),
        hostfile=arguments.hostfile,
        per_host=arguments.per_host,
        environment=_variables(arguments.env),
    )
    module = module_file("_mpi")
    if module is None:
        raise CommandError(
            "minitorch was built without MPI, so ranks can only be threads of one process "
            "(dist.run_local). To have processes: make build, or pip install ."
        )
    launcher = launching.find_launcher(arguments.mpirun)
    if launcher is None:
        asked = arguments.mpirun or "mpirun"
        raise CommandError(f"{asked} was not found; `minitorch doctor` says what is installed")
    flavour = mpi_flavour(launching.launcher_version(launcher))
    wrong = launching.wrong_launcher(flavour, read_build_info(module).get("mpi", ""), launcher)
    if wrong is not None:
        raise CommandError(wrong)
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    plan = launching.plan(job, launcher, flavour, os.environ, launching.available_cores(), root)
    if arguments.dry_run:
        settings = [f"{name}={value}" for name, value in sorted(plan.environment.items())]
        print(shlex.join([*settings, *plan.command]))
        return 0
    return supervise(plan.command, {**os.environ, **plan.environment}, arguments.timeout)


def _variables(settings: list[str]) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for (name, equals, _), setting in zip(pairs, settings, strict=True):
        if not name or not equals:
            raise CommandError(f"--env expects NAME=VALUE, got {setting!r}")
    return {name: value for name, _, value in pairs}


def supervise(
    command: tuple[str, ...], environment: dict[str, str], timeout: float | None = None
) -> int:
    """Run `command` and return its exit status, passing on Ctrl-C and termination.

    Parameters
    ----------
    command, environment
        As for `subprocess.Popen`.
    timeout : float, optional
        Seconds after which the job is ended and 124 returned.
    """
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise CommandError(f"cannot start {command[0]}: {error}") from error

    def terminate(signum: int, frame: FrameType | None) -> None:
        del frame
        process.send_signal(signum)

    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        print(f"minitorch launch: ending the job after {timeout:g} s", file=sys.stderr)
        _end(process)
        return 124
    except KeyboardInterrupt:
        # The terminal has sent the signal to mpirun as well, which ends its ranks.
        _end(process, ask=False)
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)
    return status if status >= 0 else 128 - status


def _end(process: subprocess.Popen[bytes], ask: bool = True) -> None:
    """Let the launcher end its ranks; kill it if it does not come to an end."""
    if ask:
        process.terminate()
    for escalate in (process.terminate, process.kill):
        try:
            process.wait(GRACE_SECONDS)
            return
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            escalate()
    process.wait()
