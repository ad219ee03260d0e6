"""``_register_buffer_comm_hook``: something else in place of the broadcast of buffers."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import DDP, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn.parallel.distributed import _BufferCommHookLocation

PRE, POST = _BufferCommHookLocation.PRE_FORWARD, _BufferCommHookLocation.POST_FORWARD
locations = pytest.mark.parametrize("location", [PRE, POST])


class Counting(nn.Module):
    """Adds the rank's number + 1 to its buffer in each forward, and remembers what it found."""

    def __init__(self, rank):
        super().__init__()
        self.rank = rank
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("total", torch.zeros(1))
        self.register_buffer("other", torch.full((2,), float(rank)))
        self.found = []

    def forward(self, x):
        self.found.append(self.total.item())
        self.total += self.rank + 1
        return self.weight * x


def summing(state, named_buffers):
    """Sum every buffer over the ranks, and return nothing."""
    for buffer in named_buffers.values():
        dist.all_reduce(buffer, group=state)


def summing_later(state, named_buffers):
    """The same, as futures."""
    return [
        dist.all_reduce(buffer, group=state, async_op=True).get_future()
        for buffer in named_buffers.values()
    ]


@locations
def test_runs_in_place_of_the_broadcast(location):
    def rank(r):
        ddp = DDP(Counting(r))
        ddp._register_buffer_comm_hook(ddp.process_group, summing, location)
        for _ in range(3):
            ddp(torch.ones(1)).backward()
        return ddp.module.found, ddp.module.total.item()

    if location is PRE:
        # Summed before, 0 + 0, 1 + 2, 4 + 5; then each adds its own.
        assert run(rank) == [([0.0, 3.0, 9.0], 10.0), ([0.0, 3.0, 9.0], 11.0)]
    else:
        # Each adds its own to what both have, s, and then it is summed: 2 s + 3.
        assert same_on_all(rank) == ([0.0, 3.0, 9.0], 21.0)


def test_default_location_is_after_forward_and_state_may_be_the_wrapper():
    seen = []

    def hook(state, named_buffers):
        seen.append((type(state).__name__, sorted(named_buffers), len(state.module.found)))

    def rank(r):
        ddp = DDP(Counting(r))
        ddp._register_buffer_comm_hook(ddp, hook)
        ddp(torch.ones(1)).backward()

    run(rank, 1)
    assert seen == [("DistributedDataParallel", ["other", "total"], 1)]


@locations
def test_futures_are_awaited_at_the_end_of_backward(location):
    def rank(r):
        ddp = DDP(Counting(r))
        handed_out = []

        def hook(state, named_buffers):
            handed_out.extend(summing_later(state, named_buffers))
            return handed_out[-2:]

        ddp._register_buffer_comm_hook(ddp.process_group, hook, location)
        out = ddp(torch.ones(1))
        assert len(handed_out) == 2
        out.backward()
        return all(future.done() for future in handed_out), ddp.module.other.tolist()

    assert same_on_all(rank, 3) == (True, [0.0, 0.0])  # construction made them rank 0's: zeros


@locations
def test_futures_without_a_backward_are_awaited_at_once(location):
    def rank(r):
        ddp = DDP(Counting(r))
        ddp._register_buffer_comm_hook(ddp.process_group, summing_later, location)
        ddp.module.other += r + 1
        with torch.no_grad():
            ddp(torch.ones(1))
        return ddp.module.other.tolist()

    assert same_on_all(rank) == [3.0, 3.0]


def test_runs_only_when_buffers_would_be_broadcast():
    """As with the broadcast: not in the later forwards of no_sync, and not with
    broadcast_buffers=False.
    """

    def rank(r, broadcast):
        calls = []
        ddp = DDP(Counting(r), broadcast_buffers=broadcast)
        ddp._register_buffer_comm_hook(None, lambda state, bucket: calls.append(len(calls)))
        with ddp.no_sync():
            for _ in range(3):
                ddp(torch.ones(1)).backward()
        ddp(torch.ones(1)).backward()
        return len(calls)

    assert same_on_all(rank, 2, True) == 2
    assert same_on_all(rank, 2, False) == 0


def test_not_callable():
    with pytest.raises(TypeError, match="Communication hook must be callable"):
        run(lambda r: DDP(Counting(r))._register_buffer_comm_hook(None, 3), 1)


@locations
def test_batch_statistics_averaged_by_hand(location):
    """Averaging running statistics after each forward equals the mean of the ranks' own."""

    def hook(state, named_buffers):
        for buffer in named_buffers.values():
            if buffer.is_floating_point():
                dist.all_reduce(buffer, group=state)
                buffer /= dist.get_world_size(state)

    def rank(r):
        ddp = DDP(nn.BatchNorm1d(1))
        ddp._register_buffer_comm_hook(ddp.process_group, hook, location)
        ddp(torch.tensor([[0.0], [2.0]]) + 10 * r).sum().backward()
        return ddp.module.running_mean.item()

    own = [pytest.approx(0.1), pytest.approx(1.1)]
    assert run(rank) == (own if location is PRE else [pytest.approx(0.6)] * 2)
