"""However a payload travels between two processes, the same bits arrive."""

from __future__ import annotations

import re
import sys

import pytest

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(sys.platform != "linux", reason="files in memory are a thing of Linux"),
]


@pytest.mark.parametrize("ranks", [2, 3])
def test_shared_memory_and_pieces_change_no_bit(mpirun, ranks):
    digests = set()
    for way, setting, expected in (
        ("default", "on", "shared"),
        ("default", "off", "mpi"),
        ("pieces", "on", "mpi"),
    ):
        done = mpirun("wires.py", ranks, way, MINITORCH_SHARED_MEMORY=setting)
        assert done.status == 0, done.text
        said = re.findall(r"rank \d (\w{16}) (shared|mpi)", done.stdout)
        assert [wire for _, wire in said] == [expected] * ranks, (way, setting, done.text)
        digests.update(digest for digest, _ in said)
    assert len(digests) == 1
