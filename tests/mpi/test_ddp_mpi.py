"""DistributedDataParallel between processes."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_training_equals_one_process(mpirun, ranks):
    done = mpirun("ddp_training.py", ranks)
    assert done.status == 0, done.text
    # Counted, not split into lines: a launcher may run the ranks' lines together.
    for rank in range(ranks):
        assert done.stdout.count(f"rank {rank} of {ranks} done") == 1, done.text
