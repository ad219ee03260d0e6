"""DistributedDataParallel between processes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_training_equals_one_process(mpirun, ranks):
    done = mpirun("ddp_training.py", ranks)
    assert done.status == 0, done.text
    # Counted, not split into lines: a launcher may run the ranks' lines together.
    for rank in range(ranks):
        assert done.stdout.count(f"rank {rank} of {ranks} done") == 1, done.text


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_selection_of_the_suite(mpirun, ranks):
    """What holds between threads (tests/distributed) holds between processes."""
    done = mpirun("ddp_suite.py", ranks)
    assert done.status == 0, done.text
    for tests in runpy.run_path(str(PROGRAMS / "ddp_suite.py"))["SELECTION"].values():
        for test, _ in tests:
            assert done.stdout.count(f"{test} passed") == 1, done.text


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_rank_that_skips_its_backward_ends_the_job(mpirun, ranks):
    """PyTorch pairs different iterations, and hangs at the end."""
    done = mpirun("ddp_skips.py", ranks, limit=20)
    assert done.status != 0, done.text
    assert "rank 0 trained" not in done.stdout, done.text
    assert "needs rank 1, which ended normally" in done.stderr, done.text
