"""How jobs are started: options and variables for each MPI. No job is started."""

import os
import sys

import pytest

from minitorch.cli import launching
from minitorch.cli.errors import CommandError
from minitorch.cli.launching import Job, plan, ranks_per_host, thread_variables

COMMAND = ("python", "train.py")


def planned(job, flavour, environ=None, cores=8, root=False):
    return plan(job, "/env/bin/mpirun", flavour, environ or {}, cores, root)


def test_mpich_needs_nothing_but_no_binding():
    made = planned(Job(4, COMMAND), "mpich")
    assert made.command == ("/env/bin/mpirun", "-n", "4", "-bind-to", "none", *COMMAND)


def test_openmpi_is_told_that_more_ranks_than_cores_are_meant():
    made = planned(Job(4, COMMAND), "openmpi")
    options = ("--oversubscribe", "--bind-to", "none")
    assert made.command == ("/env/bin/mpirun", "-n", "4", *options, *COMMAND)
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in made.environment


def test_openmpi_is_asked_twice_to_run_as_root():
    made = planned(Job(2, COMMAND), "openmpi", root=True)
    assert made.environment["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    assert made.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in planned(Job(2, COMMAND), "mpich", root=True).environment


def test_hosts_of_mpich():
    made = planned(Job(4, COMMAND, hosts=("a", "b")), "mpich")
    assert made.command[5:9] == ("-hosts", "a,b", "-ppn", "2")
    made = planned(Job(4, COMMAND, hostfile="hosts.txt", per_host=1), "mpich")
    assert made.command[5:9] == ("-f", "hosts.txt", "-ppn", "1")


def test_hosts_of_openmpi_name_slots_and_variables():
    job = Job(4, COMMAND, hosts=("a", "b"), per_host=2, environment={"MY": "1"})
    made = planned(job, "openmpi", environ={"PYTHONPATH": "/src"})
    text = " ".join(made.command)
    assert "--host a:2,b:2 --map-by ppr:2:node" in text
    # Other hosts get only the variables that are named.
    for name in ("MY", "OMP_NUM_THREADS", "PYTHONPATH"):
        assert f"-x {name}" in text


def test_an_unknown_launcher_gets_the_number_only():
    assert planned(Job(3, COMMAND), "unknown").command == ("/env/bin/mpirun", "-n", "3", *COMMAND)
    with pytest.raises(CommandError, match="options for hosts are not known"):
        planned(Job(3, COMMAND, hosts=("a",)), "unknown")


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (Job(0, COMMAND), "-n must be at least 1, got 0"),
        (Job(2, COMMAND, per_host=0), "--per-host must be at least 1"),
        (Job(2, COMMAND, hosts=("a",), hostfile="f"), "exclude each other"),
        (Job(5, COMMAND, hosts=("a", "b"), per_host=2), "5 ranks do not fit on 2 hosts"),
    ],
)
def test_counts_that_make_no_sense(job, message):
    with pytest.raises(CommandError, match=message):
        planned(job, "mpich")


@pytest.mark.parametrize(
    ("ranks", "cores", "threads"), [(1, 8, "8"), (2, 8, "4"), (3, 8, "2"), (4, 2, "1"), (8, 2, "1")]
)
def test_threads_are_cores_over_ranks(ranks, cores, threads):
    assert thread_variables(ranks, cores, {}) == dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
    )


def test_threads_that_the_user_has_set_stay():
    assert thread_variables(2, 8, {"OMP_NUM_THREADS": "3"}) == {}
    assert "MKL_NUM_THREADS" not in thread_variables(2, 8, {"MKL_NUM_THREADS": "3"})
    job = Job(2, COMMAND, environment={"OMP_NUM_THREADS": "5"})
    made = planned(job, "mpich").environment
    assert made["OMP_NUM_THREADS"] == "5"
    assert "OPENBLAS_NUM_THREADS" not in made


def test_threads_count_the_ranks_of_one_host():
    assert ranks_per_host(Job(8, COMMAND)) == 8
    assert ranks_per_host(Job(5, COMMAND, hosts=("a", "b"))) == 3
    assert ranks_per_host(Job(8, COMMAND, per_host=2)) == 2
    made = planned(Job(8, COMMAND, hosts=("a", "b", "c", "d")), "mpich", cores=8)
    assert made.environment["OMP_NUM_THREADS"] == "4"


def test_lines_appear_when_they_are_printed():
    assert planned(Job(2, COMMAND), "mpich").environment["PYTHONUNBUFFERED"] == "1"
    made = planned(Job(2, COMMAND), "mpich", environ={"PYTHONUNBUFFERED": ""})
    assert "PYTHONUNBUFFERED" not in made.environment


def test_python_command(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    assert launching.python_command(str(script), ["--lr", "1"]) == (
        sys.executable,
        str(script),
        "--lr",
        "1",
    )
    assert launching.python_command("pkg.train", [], module=True)[1:] == ("-m", "pkg.train")
    with pytest.raises(CommandError, match=r"there is no file nowhere\.py"):
        launching.python_command("nowhere.py", [])


def executable(folder, name):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\necho made up 1.2\n")
    path.chmod(0o755)
    return str(path)


def test_the_launcher_of_this_environment_comes_first(tmp_path):
    mine = executable(tmp_path / "env", "mpirun")
    other = executable(tmp_path / "other", "mpirun")
    environ = {"PATH": str(tmp_path / "other")}
    find = launching.find_launcher
    assert find(environ=environ, scripts=str(tmp_path / "env")) == mine
    assert find(environ=environ, scripts=str(tmp_path / "empty")) == other
    assert find(environ={"PATH": str(tmp_path / "empty")}, scripts=str(tmp_path / "empty")) is None
    assert find(other, environ=environ, scripts=str(tmp_path / "env")) == other
    assert find(str(tmp_path / "nothing"), environ=environ) is None


def test_asking_a_launcher_for_its_version(tmp_path, monkeypatch):
    assert launching.launcher_version(executable(tmp_path, "mpirun")) == "made up 1.2"
    assert launching.launcher_version(str(tmp_path / "nothing")) == ""
    # It must not take itself for a rank of the job that asks.
    monkeypatch.setenv("PMI_RANK", "0")
    path = tmp_path / "shows"
    path.write_text('#!/bin/sh\necho "rank=$PMI_RANK"\n')
    path.chmod(0o755)
    assert launching.launcher_version(str(path)) == "rank="


def test_a_launcher_of_another_mpi_is_refused():
    wrong = launching.wrong_launcher("openmpi", "mpich", "/usr/bin/mpirun")
    assert wrong is not None
    assert "every process would be rank 0" in wrong
    assert "make MPI=openmpi build" in wrong
    for flavour, built_for in (("mpich", "mpich"), ("unknown", "mpich"), ("openmpi", "")):
        assert launching.wrong_launcher(flavour, built_for, "mpirun") is None


def test_cores_are_those_that_we_may_use():
    assert 1 <= launching.available_cores() <= (os.cpu_count() or 1)
