"""Parameters and buffers start as rank 0's; buffers follow rank 0 at the start of a forward."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed._ddp.buffers import broadcast_coalesced


class Stateful(nn.Module):
    """Everything holds the rank's number at first."""

    def __init__(self, rank):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), float(rank)))
        self.frozen = nn.Parameter(torch.full((1,), float(rank)), requires_grad=False)
        self.register_buffer("buffer", torch.full((1,), float(rank)))
        self.register_buffer("flags", torch.tensor([bool(rank), True]))
        self.register_buffer("count", torch.tensor(rank))

    def forward(self, x):
        return self.weight.sum() * x


@pytest.mark.parametrize(
    ("options", "rank_1_buffer"),
    [
        ({}, 0.0),
        ({"broadcast_buffers": False}, 1.0),
        ({"forward_sync_buffers": False}, 0.0),
    ],
)
def test_construction_takes_rank_0(options, rank_1_buffer):
    def rank(r):
        ddp = DDP(Stateful(r), **options)
        m = ddp.module
        return m.weight.tolist(), m.frozen.tolist(), m.buffer.item()

    assert run(rank) == [
        ([0.0, 0.0], [0.0], 0.0),
        ([0.0, 0.0], [0.0], rank_1_buffer),
    ]


def test_buffers_of_any_dtype_travel():
    def rank(r):
        m = DDP(Stateful(r), broadcast_buffers=True).module
        return m.flags.tolist(), m.count.item()

    assert same_on_all(rank, 3) == ([False, True], 0)


def test_init_sync_off_leaves_the_module_alone():
    def rank(r):
        return DDP(Stateful(r), init_sync=False).module.weight.tolist()

    assert run(rank) == [[0.0, 0.0], [1.0, 1.0]]


def batch_norm_inputs(rank):
    return torch.full((4, 1), float(rank + 1))  # mean r + 1, so running_mean moves by 0.1 (r + 1)


def test_buffers_are_broadcast_before_forward_so_ranks_differ_after_it():
    def rank(r):
        ddp = DDP(nn.BatchNorm1d(1))
        means = []
        for _ in range(2):
            ddp(batch_norm_inputs(r))
            means.append(round(ddp.module.running_mean.item(), 6))
        return means

    assert run(rank) == [[0.1, 0.19], [0.2, 0.29]]


def test_no_sync_broadcasts_once_and_the_next_synced_forward_does_not_lag():
    """PyTorch leaves out the broadcast of the synced forward after no_sync."""

    def rank(r):
        ddp = DDP(nn.BatchNorm1d(1))
        means = []

        def forward():
            ddp(batch_norm_inputs(r))
            means.append(round(ddp.module.running_mean.item(), 4))

        forward()
        forward()
        with ddp.no_sync():
            forward()
            forward()
        forward()
        return means

    rank_0, rank_1 = run(rank)
    assert rank_0[:4] == [0.1, 0.19, 0.271, 0.3439]
    assert rank_1[:4] == [0.2, 0.29, 0.371, 0.5339]
    assert rank_1[4] == round(0.3439 * 0.9 + 0.2, 4)


def test_evaluation_under_no_grad_broadcasts_at_its_first_forward_only():
    def rank(r):
        ddp = DDP(nn.BatchNorm1d(1))
        ddp(batch_norm_inputs(r))
        ddp.eval()
        dist_meter_reset()
        with torch.no_grad():
            counts = []
            for _ in range(3):
                ddp(batch_norm_inputs(r))
                counts.append(broadcasts())
        return counts, round(ddp.module.running_mean.item(), 6)

    # One broadcast per dtype: running statistics, and the integer count of batches.
    assert same_on_all(rank) == ([2, 2, 2], 0.1)


def broadcasts():
    return dist.meter().get("broadcast", {}).get("calls", 0)


def dist_meter_reset():
    dist.reset_meter()


def test_a_buffer_whose_dtype_changes_on_one_rank_is_told_to_all():
    """Of the same width: the bytes would be taken for another number."""

    def rank(r):
        ddp = DDP(Stateful(0))
        if r == 1:
            ddp.module.buffer = torch.ones(1, dtype=torch.int32)
        with pytest.raises(RuntimeError, match="They differ in: dtype"):
            ddp(torch.ones(1))
            dist.barrier()  # a sender may be past the broadcast already

    run(rank)


def test_reassigned_buffers_are_found():
    class Reassigns(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(1))
            self.register_buffer("buffer", torch.zeros(1))

        def forward(self, x):
            self.buffer = self.buffer + x
            return self.p * x

    def rank(r):
        ddp = DDP(Reassigns())
        seen = []
        for _ in range(3):
            ddp(torch.tensor([r + 1.0]))
            seen.append(ddp.module.buffer.item())
        return seen

    assert run(rank) == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]


@pytest.mark.parametrize("training", [True, False])
def test_two_forwards_before_one_backward_with_batch_norm(training):
    def rank(r):
        ddp = DDP(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))
        ddp(batch_norm_inputs(r))
        ddp.train(training)
        x = torch.arange(4.0).reshape(4, 1)
        (ddp(x) + ddp(x)).sum().backward()
        return ddp.module[0].weight.grad is not None

    assert same_on_all(rank)


def test_coalescing_respects_the_limit_and_every_layout():
    arrays = [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.float64(3.0),
    ]
    arrays += [np.arange(5, dtype=np.int16), np.zeros(0, dtype=np.float32), np.array([np.nan])]

    def rank(r):
        tensors = [torch.from_numpy(np.array(x, copy=True, order="K")) for x in arrays]
        if r != 1:
            for tensor in tensors:
                tensor._array[...] = 7
        before = [t._version for t in tensors]
        dist.reset_meter()
        broadcast_coalesced(dist.group.WORLD, tensors, src=1, limit=56)
        changed = [t._version > v for t, v in zip(tensors, before, strict=True)]
        return [t.tolist() for t in tensors], broadcasts(), changed

    results = run(rank, 3)
    expected = [np.asarray(x).tolist() for x in arrays]
    for r, (lists, calls, changed) in enumerate(results):
        np.testing.assert_equal(lists, expected)
        # Bytes per message: 48, 48 + 8, 8 of float64; 10 of int16; none of float32.
        assert calls == 5
        # What is written counts as modified, what was equal does not.
        assert changed == ([False] * 6 if r == 1 else [True, True, True, True, False, True])
