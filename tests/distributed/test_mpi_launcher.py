"""A launcher of another MPI is refused before MPI starts, which would end the process."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from minitorch.distributed import _mpi_check, _mpi_start


class Started(Exception):
    """Raised in place of starting MPI."""


@pytest.fixture
def start(monkeypatch):
    """Start MPI on an installation built for MPICH, under a launcher's variables."""

    def initialised(timeout):
        raise Started

    for name in ("OMPI_COMM_WORLD", "MV2_COMM_WORLD", "PMI", "PALS", "PMIX"):
        for part in ("RANK", "SIZE", "RANKID"):
            monkeypatch.delenv(f"{name}_{part}", raising=False)
    monkeypatch.setattr(_mpi_start, "_initialised", initialised)
    monkeypatch.setattr(_mpi_check, "module_file", lambda name: Path(name))
    monkeypatch.setattr(_mpi_check, "read_build_info", lambda path: {"mpi": "mpich"})

    def under(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        _mpi_start.start_mpi(timedelta(seconds=1))

    return under


def test_open_mpi_launches_what_is_built_for_mpich(start):
    with pytest.raises(RuntimeError, match="Open MPI's mpirun started this process") as caught:
        start(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")
    text = str(caught.value)
    assert "OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2" in text
    assert "built for mpich" in text
    assert "minitorch launch" in text


@pytest.mark.parametrize(
    "variables",
    [{}, {"PMI_RANK": "0", "PMI_SIZE": "2"}, {"MV2_COMM_WORLD_RANK": "0"}],
    ids=["none", "mpich", "mvapich"],
)
def test_other_launchers_start_mpi(start, variables):
    with pytest.raises(Started):
        start(**variables)
