"""``mpirun``: run a program of ``tests/mpi/programs`` on some processes, with a time limit that
holds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from minitorch.cli.launching import (
    Job,
    available_cores,
    find_launcher,
    launcher_version,
    plan,
    python_command,
)
from minitorch.distributed._mpi_check import mpi_flavour

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 60.0


@dataclass
class Outcome:
    """What a job left."""

    status: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Everything, for the message of a failed assertion."""
        return f"exit status {self.status}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"

    def tracebacks(self) -> int:
        """How many tracebacks were shown."""
        return self.stderr.count("Traceback (most recent call last)")


@cache
def launcher() -> tuple[str, str] | None:
    """The mpirun that belongs to the Python that runs the tests, and whose it is."""
    found = find_launcher()
    return None if found is None else (found, mpi_flavour(launcher_version(found)))


def _environment() -> dict[str, str]:
    """This process's, without what may be left of another job."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("RANK", "WORLD_SIZE")
        and not name.startswith(("PMI", "MINITORCH_", "OMPI_COMM"))
    }
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    )
    return environment


def _kill(process: subprocess.Popen[str]) -> None:
    """Have the launcher clean up its ranks, on any host and in any session; then kill what is left
    of it.
    """
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def mpirun() -> Callable[..., Outcome]:
    """``mpirun(program, ranks, *arguments, limit=..., env=...) -> Outcome``."""
    found = launcher()
    if found is None or find_spec("mpi4py") is None or find_spec("minitorch._mpi") is None:
        pytest.skip("no mpirun, mpi4py or minitorch._mpi here: `make build` makes them")

    def run(
        program: str, ranks: int, *arguments: object, limit: float = LIMIT_SECONDS, **variables: str
    ) -> Outcome:
        environment = _environment()
        command = python_command(str(PROGRAMS / program), [str(argument) for argument in arguments])
        job = plan(
            Job(ranks, command, environment=variables),
            *found,
            environment,
            available_cores(),
            os.geteuid() == 0,
        )
        process = subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, **job.environment},
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _kill(process)
            stdout, stderr = process.communicate()
            pytest.fail(
                f"{program} on {ranks} ranks did not end within {limit:g} s\n{stdout}\n{stderr}"
            )
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return Outcome(process.returncode, stdout, stderr)

    return run
