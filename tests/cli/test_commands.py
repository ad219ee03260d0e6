"""The command line: subcommands, their options, exit statuses."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from minitorch.cli import main
from minitorch.cli.app import command_modules
from minitorch.cli.commands import launch
from minitorch.cli.errors import CommandError

ENVIRONMENT = dict(os.environ)


def test_every_command_is_one_file_with_three_things():
    modules = command_modules()
    assert {"bench", "doctor", "launch", "trace"} <= set(modules)
    for module in modules.values():
        assert module.HELP
        assert callable(module.add_arguments)
        assert callable(module.run)


def test_without_a_command_the_help_is_printed(capsys):
    assert main([]) == 2
    assert "launch" in capsys.readouterr().out


def test_python_m_minitorch():
    done = subprocess.run(
        [sys.executable, "-m", "minitorch", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout


def test_a_mistake_is_one_line_and_status_2(capsys, monkeypatch):
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert main(["launch", "-n", "2", "does_not_exist.py"]) == 2
    assert capsys.readouterr().err == (
        "minitorch launch: there is no file does_not_exist.py "
        "(a module is started with -m does_not_exist.py)\n"
    )


def test_a_rank_does_not_launch(capsys, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "4")
    assert main(["launch", "-n", "2", __file__]) == 2
    assert "already a rank of a job (PMI_RANK=1, PMI_SIZE=4)" in capsys.readouterr().err


def test_variables():
    assert launch._variables(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    with pytest.raises(CommandError, match="--env expects NAME=VALUE, got 'A'"):
        launch._variables(["A"])


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("7", 7)])
def test_the_status_of_the_job_is_ours(code, status):
    command = (sys.executable, "-c", f"raise SystemExit({code})")
    assert launch.supervise(command, ENVIRONMENT) == status


def test_a_killed_job_has_the_shell_s_status():
    command = (sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert launch.supervise(command, ENVIRONMENT) == 128 + signal.SIGKILL


def test_a_job_that_takes_too_long_is_ended(capsys):
    command = (sys.executable, "-c", "import time; time.sleep(60)")
    assert launch.supervise(command, ENVIRONMENT, timeout=0.2) == 124
    assert "ending the job after 0.2 s" in capsys.readouterr().err


def test_a_job_that_does_not_end_is_killed(monkeypatch):
    monkeypatch.setattr(launch, "GRACE_SECONDS", 0.2)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    assert launch.supervise((sys.executable, "-c", stubborn), ENVIRONMENT, timeout=1.0) == 124


def test_ctrl_c_is_status_130():
    # A terminal sends the signal to both; the job ends by itself here.
    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        command = (sys.executable, "-c", "import time; time.sleep(1)")
        assert launch.supervise(command, ENVIRONMENT) == 130
    finally:
        thread.join()


def test_a_launcher_that_cannot_start():
    with pytest.raises(CommandError, match="cannot start"):
        launch.supervise(("/nonexistent/mpirun",), ENVIRONMENT)


# --- trace -------------------------------------------------------------------------------------


@pytest.fixture
def timeline(tmp_path):
    """Two steps of one rank; in the second, 3 of 4 ms of communication lie under computation."""
    from minitorch.profiler.chrome import write
    from minitorch.profiler.events import COMMUNICATION, COMPUTE, Event, Timeline

    ms = 1_000_000

    def step(start):
        return [
            Event(0, COMPUTE, "forward", "forward", start, start + 2 * ms, {}),
            Event(0, COMPUTE, "backward", "backward", start + 2 * ms, start + 12 * ms, {}),
            Event(0, COMPUTE, "wait", "wait", start + 11 * ms, start + 12 * ms, {}),
            Event(
                0,
                COMMUNICATION,
                "all_reduce",
                "collective",
                start + 8 * ms,
                start + 12 * ms,
                {"bucket": 0, "bytes": 1024},
            ),
        ]

    path = tmp_path / "run.json"
    write(Timeline([*step(0), *step(20 * ms)], complete=True, metadata={}), path)
    return path


def test_trace_prints_the_hidden_share(timeline, capsys):
    assert main(["trace", str(timeline)]) == 0
    out = capsys.readouterr().out
    assert "rank 0" in out
    assert "75%" in out
    assert "ui.perfetto.dev" in out


def test_trace_as_json(timeline, capsys):
    assert main(["trace", "--json", str(timeline)]) == 0
    means = json.loads(capsys.readouterr().out)["0"]
    assert means["communication"] == pytest.approx(4e-3)
    assert means["hidden"] == pytest.approx(3e-3)
    assert means["exposed"] == pytest.approx(1e-3)
    assert means["share_hidden"] == pytest.approx(0.75)


def test_trace_of_something_else(tmp_path, capsys):
    assert main(["trace", str(tmp_path / "nothing.json")]) == 2
    assert "there is no file" in capsys.readouterr().err
    (tmp_path / "other.json").write_text("[1, 2]")
    assert main(["trace", str(tmp_path / "other.json")]) == 2
    assert "is not a timeline" in capsys.readouterr().err


@pytest.mark.mpi
def test_launch_starts_ranks_that_know_each_other(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "import os, sys\n"
        "world = MPI.COMM_WORLD\n"
        "found = world.allgather((world.rank, os.environ['OMP_NUM_THREADS'], sys.argv[1:]))\n"
        "print(found, flush=True) if world.rank == 0 else None\n"
        "raise SystemExit(3)\n"
    )
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-m", "minitorch", "launch", "-n", "2", str(script), "--lr", "-n"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environ,
    )
    assert done.returncode == 3, done.stderr
    threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
    expected = [(rank, threads, ["--lr", "-n"]) for rank in range(2)]
    assert done.stdout.splitlines()[0] == str(expected)
