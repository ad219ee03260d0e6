"""Behaviours that PyTorch's own suite checks: from construction to failure and recovery.

Each test starts with the name of the upstream test it restates. The table is in README.md.
"""

from __future__ import annotations

import threading
from datetime import timedelta

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Scale, TwoOutputs, a, grad, run, same_on_all
from distributed.suite_cases import (
    UNFINISHED,
    assert_same_bits,
    mean_rank,
    nothing_unused,
    rows,
    seeded,
    weights,
    worlds,
)

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed import _native
from minitorch.distributed._ddp.buffers import broadcast_coalesced
from minitorch.utils.data import DataLoader, DistributedSampler


@worlds
def test_sync_module_states(world):
    """Ranks differ; after a broadcast from rank 1 all hold rank 1's state, ignored names apart."""

    def rank(r):
        torch.manual_seed(r)
        net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        net[1].running_mean.fill_(float(r))
        named = {**dict(net.named_parameters()), **dict(net.named_buffers())}
        left_out = named.pop("0.bias")
        before = left_out.tolist()
        broadcast_coalesced(dist.group.WORLD, list(named.values()), 1, 16)
        assert left_out.tolist() == before
        return [named[name].tolist() for name in sorted(named)]

    results = run(rank, world)
    assert results == [results[0]] * world
    torch.manual_seed(1)
    assert nn.Linear(3, 2).weight.tolist() in results[0]
    assert [1.0, 1.0] in results[0]  # rank 1's running mean


def test_multi_dtype_single_bucket():
    """Two dtypes in one bucket are refused; split by dtype (other tests) they are fine."""
    if not dist.is_available():
        pytest.skip("no compiled core here: `make build` makes it")

    def rank(r):
        with pytest.raises((RuntimeError, ValueError), match="float64"):
            _native.core().Reducer(
                dist.group.WORLD._group,
                ["single", "double"],
                [np.dtype(np.float32), np.dtype(np.float64)],
                [4, 4],
                [False, False],
                [[0, 1]],
                [400],
                rebuild_limits=[400],
            )

    run(rank, 2)


@worlds
def test_failure_recovery(world):
    """The wrapper and the group are dropped, a new group is made, the same module is wrapped."""

    def train(module, r):
        ddp = DDP(module, bucket_cap_mb=0.0001)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for step in range(3):
            optimizer.zero_grad()
            ddp(rows(world, 3, seed=step)[r::world]).pow(2).mean().backward()
            optimizer.step()
        return weights(module)

    def rank(r):
        module = seeded(lambda: nn.Linear(3, 2))
        first = train(module, r)
        dist.destroy_process_group()
        dist.init_process_group("gloo", rank=r, world_size=world)
        second = train(module, r)
        assert not np.array_equal(first, second)
        return second

    assert_same_bits(run(rank, world))


class RaisesInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("simulated error in backward")


@worlds
def test_remove_autograd_hooks(world):
    """Backward raises; after its hooks are removed, a second wrapper of the module trains."""

    class MayFail(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(2, 2, bias=False)

        def forward(self, x, fail):
            return self.fc1(RaisesInBackward.apply(x) if fail else x)

    def rank(r):
        module = MayFail()
        first = DDP(module)
        x = torch.full((1, 2), r + 1.0, requires_grad=True)
        with pytest.raises(RuntimeError, match="simulated error in backward"):
            first(x, fail=True).sum().backward()
        first._remove_autograd_hooks()
        module.zero_grad()
        second = DDP(module)
        optimizer = torch.optim.SGD(second.parameters(), lr=1.0)
        second(x, fail=False).sum().backward()
        gradient = module.fc1.weight.grad.tolist()
        optimizer.step()
        return gradient

    assert same_on_all(rank, world) == [[mean_rank(world)] * 2] * 2


class Opaque:
    """An output in which nobody can see the tensor."""

    def __init__(self, hidden):
        self.hidden = hidden


class HidesSecond(TwoOutputs):
    def forward(self, x):
        first, second = super().forward(x)
        return first, Opaque(second)


@worlds
def test_has_finalized(world):
    """A hidden output is left out of the loss: unfinished; with the flag it counts as unused."""

    def rank(r):
        ddp = DDP(HidesSecond())
        ddp(a(r))[0].sum().backward()
        with pytest.raises(RuntimeError, match=f"{UNFINISHED}.*: q"):
            ddp._check_reducer_finalized()

        flagged = DDP(HidesSecond(), find_unused_parameters=True)
        flagged(a(r))[0].sum().backward()
        flagged._check_reducer_finalized()
        return grad(flagged.module.p), grad(flagged.module.q)

    assert same_on_all(rank, world) == (mean_rank(world), None)


@worlds
def test_inference(world):
    """Rank 0 alone evaluates a model without buffers through the wrapper: nobody is waited for."""

    def rank(r):
        ddp = DDP(seeded(lambda: nn.Linear(3, 2)))
        dist.reset_meter()
        out = None
        if r == 0:
            ddp.eval()
            with torch.no_grad():
                for _ in range(5):
                    out = ddp(torch.ones(1, 3, dtype=torch.float64))
            assert torch.equal(out, ddp.module(torch.ones(1, 3, dtype=torch.float64)))
        assert dist.meter() == {} or all(op["calls"] == 0 for op in dist.meter().values())
        dist.barrier()
        ddp.train()
        ddp(torch.full((1, 3), r + 1.0, dtype=torch.float64)).sum().backward()
        return ddp.module.weight.grad.tolist()

    assert same_on_all(rank, world) == [[mean_rank(world)] * 3] * 2


@worlds
def test_monitored_barrier(world):
    """Rank 1 does not come: rank 0 says so."""
    told = threading.Event()

    def rank(r):
        if r == 1:
            assert told.wait(30)
            return
        try:
            with pytest.raises(RuntimeError) as caught:
                dist.monitored_barrier(timeout=timedelta(seconds=1))
        finally:
            if r == 0:
                told.set()
        if r == 0:
            assert "Rank 1 failed to pass monitoredBarrier" in str(caught.value)

    run(rank, world)


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_invalid_rank_of_a_sampler(world):
    for wrong in (-1, world, world + 1):
        with pytest.raises(ValueError, match=rf"Invalid rank {wrong}, .*\[0, {world - 1}\]"):
            DistributedSampler(range(9), num_replicas=world, rank=wrong)


@worlds
def test_sampler_with_dropping_loader_has_no_duplicates(world):
    """9 samples with drop_last in sampler and loader: no sample twice, the same count each."""

    def rank(r):
        sampler = DistributedSampler(list(range(9)), drop_last=True)
        loader = DataLoader(list(range(9)), batch_size=2, drop_last=True, sampler=sampler)
        return [i for batch in loader for i in batch.tolist()]

    shares = run(rank, world)
    seen = [i for share in shares for i in share]
    assert len(seen) == len(set(seen))
    assert {len(share) for share in shares} == {9 // world // 2 * 2}


@worlds
@nothing_unused
def test_a_hidden_output_that_is_used_after_all(world):
    """What the graph walk cannot see and the loss uses is an error that says why."""

    def rank(r):
        ddp = DDP(HidesSecond(), find_unused_parameters=True)
        first, opaque = ddp(a(r))
        with pytest.raises(RuntimeError, match="marked as ready twice"):
            (first + opaque.hidden).sum().backward()
        plain = DDP(HidesSecond())
        first, opaque = plain(a(r))
        (first + opaque.hidden).sum().backward()
        return grad(plain.module.p), grad(plain.module.q)

    assert same_on_all(rank, world) == (mean_rank(world), mean_rank(world))


@worlds
def test_two_models_in_turn(world):
    """Neither is blamed for the other's unfinished business."""

    def rank(r):
        one, two = DDP(Scale()), DDP(Scale())
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (one, two)]
        for _ in range(3):
            for model, optimizer in zip((one, two), optimizers, strict=True):
                optimizer.zero_grad()
                model(a(r)).sum().backward()
                optimizer.step()
        return one.module.p.item(), two.module.p.item()

    moved = pytest.approx(1 - 0.3 * mean_rank(world))
    assert same_on_all(rank, world) == (moved, moved)
