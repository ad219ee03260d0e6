"""Distributed SAGA between processes."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_equals_one_process(mpirun, ranks):
    done = mpirun("saga.py", ranks)
    assert done.status == 0, done.text
    for rank in range(ranks):
        assert done.stdout.count(f"rank {rank} of {ranks} done") == 1, done.text
