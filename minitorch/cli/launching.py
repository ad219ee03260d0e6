"""How a job is started: which launcher, with which options and environment. No process starts here.

Each MPI wants to be told different things. Open MPI refuses more ranks than cores unless told that
this is meant, binds each rank (with all its threads) to one core, asks root for confirmation, and
hands only named variables to other hosts; MPICH's Hydra does none of this. Both start one process
per core whose BLAS then starts one thread per core, which is slower than one thread each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from minitorch.cli.errors import CommandError

# OMP_NUM_THREADS first: the others follow it where they are not set themselves.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """What the user asked for."""

    ranks: int
    command: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    per_host: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The command to run, and the variables to add to its environment."""

    command: tuple[str, ...]
    environment: dict[str, str]


def find_launcher(
    asked: str | None = None, environ: Mapping[str, str] | None = None, scripts: str | None = None
) -> str | None:
    """Return the launcher to use: the one asked for, else this environment's, else PATH's.

    Parameters
    ----------
    asked : str, optional
        A path or a name on PATH.
    environ, scripts
        The environment and its folder of commands, by default those of this process.
    """
    environ = os.environ if environ is None else environ
    search = environ.get("PATH", os.defpath)
    if asked is not None:
        return shutil.which(asked, path=search)
    folder = sysconfig.get_path("scripts") if scripts is None else scripts
    for name in ("mpirun", "mpiexec"):
        found = shutil.which(name, path=folder)
        if found is not None:
            return found
    return shutil.which("mpirun", path=search) or shutil.which("mpiexec", path=search)


def launcher_version(path: str) -> str:
    """Return what the launcher prints with `--version`; empty if it cannot be asked."""
    # Without the variables of a job that we may be part of: they would make it a child of that job.
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PMI", "OMPI_", "PRTE_", "HYDI_"))
    }
    command = [path, "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=False, env=environ
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).strip()


def available_cores() -> int:
    """Return the cores that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ranks_per_host(job: Job) -> int:
    """Return the largest number of ranks that share a host."""
    if job.per_host is not None:
        return min(job.per_host, job.ranks)
    if job.hosts:
        return -(-job.ranks // len(set(job.hosts)))
    return job.ranks


def thread_variables(ranks: int, cores: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give each rank its share of the cores.

    What the user has set stays, and so does what follows from it: with OMP_NUM_THREADS set, the
    BLAS libraries take their number from there.
    """
    threads = str(max(1, cores // max(1, ranks)))
    if "OMP_NUM_THREADS" in environ:
        return {}
    return {name: threads for name in THREAD_VARIABLES if name not in environ}


def python_command(script: str, arguments: list[str], module: bool = False) -> tuple[str, ...]:
    """Return the command of one rank: this Python with a script or a module."""
    if module:
        return (sys.executable, "-m", script, *arguments)
    if not Path(script).is_file():
        raise CommandError(f"there is no file {script} (a module is started with -m {script})")
    return (sys.executable, script, *arguments)


def plan(
    job: Job,
    launcher: str,
    flavour: str,
    environ: Mapping[str, str],
    cores: int,
    root: bool,
) -> Plan:
    """Return how to start `job` with a launcher of the given flavour.

    Parameters
    ----------
    job : Job
    launcher : str
        Path of mpirun.
    flavour : str
        "mpich", "openmpi", or "unknown" (only `-n` is passed).
    environ : mapping
        The environment that the job inherits.
    cores : int
        Cores of a host.
    root : bool
        Whether we run as root.

    Raises
    ------
    CommandError
        Counts that make no sense, or options that the launcher is not known to have.
    """
    if job.ranks < 1:
        raise CommandError(f"-n must be at least 1, got {job.ranks}")
    if job.per_host is not None and job.per_host < 1:
        raise CommandError(f"--per-host must be at least 1, got {job.per_host}")
    if job.hosts and job.hostfile:
        raise CommandError("--hosts and --hostfile exclude each other")
    if job.per_host and job.hosts and job.per_host * len(job.hosts) < job.ranks:
        raise CommandError(
            f"{job.ranks} ranks do not fit on {len(job.hosts)} hosts with --per-host {job.per_host}"
        )
    added = dict(job.environment)
    added |= thread_variables(ranks_per_host(job), cores, {**environ, **added})
    if "PYTHONUNBUFFERED" not in environ:
        added.setdefault("PYTHONUNBUFFERED", "1")  # a rank's line appears when it is printed
    options = {"mpich": _mpich, "openmpi": _openmpi}.get(flavour, _unknown)(
        job, added, root, environ
    )
    return Plan((launcher, "-n", str(job.ranks), *options, *job.command), added)


def _mpich(job: Job, added: dict[str, str], root: bool, environ: Mapping[str, str]) -> list[str]:
    del added, root, environ  # Hydra hands the whole environment on, and asks no questions
    options = ["-bind-to", "none"]
    if job.hosts:
        options += ["-hosts", ",".join(job.hosts)]
    if job.hostfile:
        options += ["-f", job.hostfile]
    if job.per_host or job.hosts:
        options += ["-ppn", str(ranks_per_host(job))]
    return options


def _openmpi(job: Job, added: dict[str, str], root: bool, environ: Mapping[str, str]) -> list[str]:
    options = ["--oversubscribe", "--bind-to", "none"]
    if job.hosts:
        share = ranks_per_host(job)
        options += ["--host", ",".join(f"{host}:{share}" for host in job.hosts)]
    if job.hostfile:
        options += ["--hostfile", job.hostfile]
    if job.per_host:
        options += ["--map-by", f"ppr:{job.per_host}:node"]
    if job.hosts or job.hostfile:
        inherited = [name for name in ("PYTHONPATH", "MINITORCH_LINK") if name in environ]
        for name in sorted({*added, *inherited}):
            options += ["-x", name]
    if root:
        added["OMPI_ALLOW_RUN_AS_ROOT"] = added["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return options


def _unknown(job: Job, added: dict[str, str], root: bool, environ: Mapping[str, str]) -> list[str]:
    del added, root, environ
    if job.hosts or job.hostfile or job.per_host:
        raise CommandError(
            "this launcher is neither MPICH's nor Open MPI's, so its options for hosts are not "
            "known; call it directly: LAUNCHER ... python script.py"
        )
    return []


def wrong_launcher(flavour: str, built_for: str, launcher: str) -> str | None:
    """Return why this launcher would make every process rank 0; None if it fits."""
    if "unknown" in (flavour, built_for) or not built_for or flavour == built_for:
        return None
    return (
        f"{launcher} belongs to {flavour}, but minitorch was built for {built_for}: every process "
        f"would be rank 0. Name the right one with --mpirun, or rebuild: make MPI={flavour} build"
    )
