"""Ranks as threads: each has its own stream, its own share, and workers that belong to it."""

import pytest

import minitorch
import minitorch.distributed as dist
from minitorch.utils import data as d

pytest.importorskip("minitorch._core")


def test_sampler_finds_its_rank_and_workers_know_theirs():
    class Who(d.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return i, dist.get_rank()

    def run(rank):
        sampler = d.DistributedSampler(Who(), shuffle=False)
        loader = d.DataLoader(Who(), batch_size=2, sampler=sampler, num_workers=1)
        return [[part.tolist() for part in batch] for batch in loader]

    assert dist.run_local(run, 3) == [[[[rank, rank + 3], [rank, rank]]] for rank in range(3)]


def test_ranks_do_not_disturb_each_others_streams():
    minitorch.manual_seed(7)
    expected = [minitorch.randn(3).tolist() for _ in range(4)]

    def run(rank):
        minitorch.manual_seed(7)
        out = []
        for _ in range(4):
            out.append(minitorch.randn(3).tolist())
            dist.barrier()
        return out

    assert dist.run_local(run, 3) == [expected] * 3


def test_without_a_group_the_sampler_says_so():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        d.DistributedSampler(range(4))
