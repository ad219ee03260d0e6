"""What users of DDP reported about data and checkpoints.

The threads are named as project and number (p: pytorch/pytorch). The table of all threads is in
README.md.
"""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, run, same_on_all
from distributed.suite_cases import seeded, worlds

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from minitorch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def normed():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_p25162_p22584_sampler_padding_skews_metrics():
    """9 samples on 2 ranks: the first is counted twice. Its share alone decides by how much."""
    right = torch.tensor([1.0] + [0.0] * 8)  # only the sample that is repeated is hit
    data = TensorDataset(right)

    def rank(r):
        def accuracy(source, sampler=None):
            hits = [x for (x,) in DataLoader(source, batch_size=2, sampler=sampler)]
            counts = torch.tensor([sum(float(h.sum()) for h in hits), sum(len(h) for h in hits)])
            dist.all_reduce(counts)
            return counts.tolist()

        padded = accuracy(data, DistributedSampler(data, shuffle=False))
        exact = accuracy(Subset(data, range(r, len(data), dist.get_world_size())))
        return padded, exact

    assert same_on_all(rank, 2) == ([2.0, 10.0], [1.0, 9.0])


@worlds
def test_p31771_p11324_set_epoch_is_forgotten(world):
    """Without set_epoch every epoch has the same order; with it another, on all ranks alike."""

    def rank(r):
        sampler = DistributedSampler(range(24), seed=3)
        forgotten = [list(sampler), list(sampler)]
        orders = []
        for epoch in range(2):
            sampler.set_epoch(epoch)
            orders.append(list(sampler))
        return forgotten, orders

    results = run(rank, world)
    for forgotten, orders in results:
        assert forgotten[0] == forgotten[1] == orders[0]
        assert orders[0] != orders[1]
    for epoch in range(2):
        assert sorted(i for _, orders in results for i in orders[epoch]) == list(range(24))


@worlds
def test_p41048_apex_647_keys_with_the_prefix(world):
    """A wrapped model's state loads into a bare one once the prefix is gone, and back."""

    def rank(r):
        ddp = DDP(seeded(normed, seed=r))
        state = ddp.state_dict()
        bare = seeded(normed, seed=99)
        with pytest.raises(RuntimeError, match=r"(?s)Missing key.*0\.weight.*Unexpected key"):
            bare.load_state_dict(state)
        consume_prefix_in_state_dict_if_present(state, "module.")
        assert str(bare.load_state_dict(state)) == "<All keys matched successfully>"
        ddp.module.load_state_dict(bare.state_dict())
        ddp.load_state_dict({f"module.{k}": v for k, v in bare.state_dict().items()})
        return list(state), list(state._metadata), bare[0].weight.tolist()

    keys, metadata, weight = same_on_all(rank, world)
    assert keys[:2] == ["0.weight", "0.bias"]
    assert metadata == ["", "0", "1"]  # the bare model's own names
    assert weight == seeded(normed, seed=0)[0].weight.tolist()
