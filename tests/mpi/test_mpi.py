"""Between processes: collectives, and every way in which a job can end.

What must hold however a rank ends: the whole job ends soon, the status is not zero, and a traceback
is shown once.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.mpi


def said(done, pattern):
    """What the ranks printed, in order of ranks; their lines may run into each other."""
    return sorted(re.findall(pattern, done.stdout))


def test_importing_minitorch_loads_no_mpi():
    code = (
        "import sys, minitorch, minitorch.distributed as dist; "
        "dist.run_local(lambda rank: dist.barrier(), 2); "
        "dist.is_mpi_available(); "
        "print([name for name in sys.modules if name.startswith('mpi4py') or name == "
        "'minitorch._mpi'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_collectives(mpirun, ranks):
    done = mpirun("collectives.py", ranks)
    assert done.status == 0, done.text
    assert said(done, r"rank \d of \d done, gloo") == [
        f"rank {r} of {ranks} done, gloo" for r in range(ranks)
    ]
    assert done.stderr == ""


def test_what_the_mpi_has_to_say_is_not_in_the_output(mpirun, monkeypatch):
    monkeypatch.setenv("UCX_LOG_LEVEL", "info")  # a talkative wire, where the MPI has one
    done = mpirun("no_destroy.py", 2)
    assert done.status == 0, done.text
    assert said(done, r"rank \d done") == ["rank 0 done", "rank 1 done"]
    assert "UCX" not in done.stdout


def test_the_end_without_destroy(mpirun):
    done = mpirun("no_destroy.py", 3)
    assert done.status == 0, done.text
    assert said(done, r"rank \d done") == ["rank 0 done", "rank 1 done", "rank 2 done"]
    assert done.stderr == ""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_exception_ends_the_job_and_is_shown_once(mpirun, ranks):
    done = mpirun("fails.py", ranks, "raise", ranks - 1, limit=20)
    assert done.status != 0, done.text
    assert done.tracebacks() == 1, done.text
    assert f"[rank{ranks - 1}]: ValueError: broken on purpose" in done.stderr, done.text
    assert "survived" not in done.stdout


def test_an_exception_in_a_helper_thread(mpirun):
    done = mpirun("fails.py", 2, "thread", 0, limit=20)
    assert done.status != 0, done.text
    assert done.tracebacks() == 1, done.text
    assert "[rank0]: KeyError" in done.stderr, done.text


@pytest.mark.parametrize("way", ["exit", "systemexit"])
def test_a_non_zero_exit_ends_the_job(mpirun, way):
    done = mpirun("fails.py", 2, way, 1, limit=20)
    assert done.status != 0, done.text
    assert "rank 1" in done.stderr, done.text
    assert "survived" not in done.stdout


def test_a_caught_exit_is_no_end(mpirun):
    done = mpirun("fails.py", 2, "caught", 1, limit=20)
    assert done.status == 0, done.text
    assert done.stdout.count("survived") == 2


def test_an_interrupt_ends_the_job(mpirun):
    done = mpirun("fails.py", 2, "interrupt", 0, limit=20)
    assert done.status != 0, done.text
    assert "[rank0]: interrupted" in done.stderr, done.text
    assert done.tracebacks() == 0, done.text


def test_a_killed_rank_ends_the_job(mpirun):
    done = mpirun("fails.py", 3, "kill", 1, limit=20)
    assert done.status != 0, done.text
    assert "survived" not in done.stdout


def test_a_late_rank_is_named(mpirun):
    done = mpirun("fails.py", 3, "late", 2, limit=20)
    assert done.status != 0, done.text
    assert "CollectiveTimeout" in done.stderr, done.text
    assert "rank 2" in done.stderr, done.text
    assert done.tracebacks() == 1, done.text


def test_a_rank_that_ends_early_is_named(mpirun):
    done = mpirun("fails.py", 2, "early", 1, limit=20)
    assert done.status != 0, done.text
    assert "rank 1" in done.stderr, done.text
    assert done.tracebacks() == 1, done.text


def test_disagreement_is_told_to_all(mpirun):
    done = mpirun("fails.py", 3, "disagree", 1, limit=20)
    assert done.status != 0, done.text
    assert "CollectiveMismatch" in done.stderr, done.text
    assert "elements" in done.stderr, done.text
    assert "survived" not in done.stdout


def test_a_swallowed_error_does_not_end_in_success(mpirun):
    """After a failure some request may never complete: the job ends by abort, with a status that
    says so.
    """
    done = mpirun("fails.py", 2, "swallow", 0, limit=20)
    assert done.status != 0, done.text


def test_true_claims_are_accepted(mpirun):
    done = mpirun("init_errors.py", 2, "true")
    assert done.status == 0, done.text
    assert said(done, r"rank \d fine") == ["rank 0 fine", "rank 1 fine"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("rank", "RANK=0, but mpirun started this process as rank 1 of 2"),
        ("size", "world_size=5, but mpirun started this process as rank"),
        ("late", "at least one has not called init_process_group"),
        ("late_after_mpi", "rank 1 of 2 did not come within 1 s"),
    ],
)
def test_false_claims_and_late_starts(mpirun, case, words):
    done = mpirun("init_errors.py", 2, case, limit=20)
    assert done.status != 0, done.text
    assert words in done.stderr, done.text


def test_child_processes(mpirun):
    done = mpirun("children.py", 2)
    assert done.status == 0, done.text
    assert said(done, r"rank \d fine") == ["rank 0 fine", "rank 1 fine"], done.text
