"""Starting workers under the right mpiexec; what "right" means is the command line's knowledge."""

from __future__ import annotations

import os
from importlib.util import find_spec

from minitorch.cli.launching import Job, available_cores, find_launcher, launcher_version, plan
from minitorch.distributed._mpi_check import mpi_flavour

from .peers import WORKERS, Worker, worker_environment
from .registry import Settings, Skipped

__all__ = ["find_mpiexec", "is_root", "mpi_worker"]


def find_mpiexec(settings: Settings) -> tuple[str, str]:
    """Return the launcher, and whose it is ("mpich", "openmpi", ...).

    Raises
    ------
    Skipped
        There is none, or nothing to run under it.
    """
    if find_spec("mpi4py") is None:
        raise Skipped("mpi4py is not installed: pip install mpi4py mpich")
    if find_spec("minitorch._mpi") is None:
        raise Skipped("minitorch was built without MPI: see `minitorch doctor`")
    launcher = find_launcher(settings.mpiexec)
    if launcher is None:
        raise Skipped(f"no {settings.mpiexec or 'mpiexec'}: pip install mpich, or --mpiexec PATH")
    return launcher, mpi_flavour(launcher_version(launcher))


def mpi_worker(
    settings: Settings,
    ranks: int = 2,
    link: str | None = None,
    options: tuple[str, ...] = (),
    **variables: str,
) -> Worker:
    """Start `workers/collective.py` on `ranks` ranks.

    `link` shapes their wire (none: as it is, whatever MINITORCH_LINK says); `options` go to the
    launcher, `variables` into the ranks' environment.
    """
    environment = worker_environment() | variables
    environment.pop("MINITORCH_LINK", None)
    if link is not None:
        environment["MINITORCH_LINK"] = link
    job = plan(
        Job(ranks, (settings.python, str(WORKERS / "collective.py"))),
        *find_mpiexec(settings),
        environment,
        available_cores(),
        is_root(),
    )
    launcher, *rest = job.command
    return Worker(
        [launcher, *options, *rest],
        env=environment | job.environment,
        name=f"mpiexec -n {ranks} collective.py",
    )


def is_root() -> bool:
    """Whether this process may make network namespaces."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
