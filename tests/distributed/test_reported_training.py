"""What users of DDP reported about training loops: buffers, evaluation, buckets, broken ranks.

The threads are named as project and number (p: pytorch/pytorch). Where PyTorch is silent, the
error is ours; docs/differences.md says why. The table of all threads is in README.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Scale, TwoOutputs, a, grad, run, same_on_all
from distributed.suite_cases import UNFINISHED, broadcasts, mean_rank, rows, seeded, worlds

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn


def normed():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


@worlds
def test_p22095_p110363_p175024_two_forwards_with_batch_norm(world):
    """(f(x) + f(x)).backward(): the second broadcast of buffers disturbs no saved tensor."""

    def rank(r):
        ddp = DDP(seeded(normed))
        for step in range(3):
            ddp.zero_grad()
            x = rows(world, 2, seed=step, per_rank=4)[r::world]
            (ddp(x) + ddp(x)).pow(2).sum().backward()
        return [p.grad.tolist() for p in ddp.parameters()]

    same_on_all(rank, world)


@worlds
def test_p30718_buffers_are_broadcast_by_hand(world):
    """No broadcast before forwards, one call when the user wants it."""

    def rank(r):
        ddp = DDP(nn.BatchNorm1d(1), forward_sync_buffers=False)
        dist.reset_meter()
        for _ in range(2):
            ddp(torch.full((4, 1), r + 1.0))
        before = broadcasts(), round(ddp.module.running_mean.item(), 6)
        ddp._sync_buffers()
        return before, round(ddp.module.running_mean.item(), 6)

    expected = [((0, round(0.19 * (r + 1), 6)), 0.19) for r in range(world)]
    assert run(rank, world) == expected


@worlds
def test_p54059_p53979_validation_on_rank_0_through_the_inner_module(world):
    """``ddp.module`` communicates nothing, so that rank 0 may evaluate alone."""

    def rank(r):
        ddp = DDP(seeded(normed))
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for step in range(3):
            optimizer.zero_grad()
            ddp(rows(world, 2, seed=step, per_rank=4)[r::world]).pow(2).mean().backward()
            optimizer.step()
            if r == 0:
                ddp.eval()
                with torch.no_grad():
                    ddp.module(rows(world, 2))
                ddp.train()
        ddp.check_consistency(buffers=False)

    run(rank, world, timeout=30)


@worlds
@pytest.mark.parametrize("grad_mode", [True, False], ids=["grad", "no_grad"])
def test_p54059_validation_on_rank_0_through_the_wrapper(world, grad_mode):
    """PyTorch pairs rank 0's broadcasts with the wrong ones of the others, or hangs. Here every
    rank raises, before anything is written.
    """

    def rank(r):
        ddp = DDP(seeded(normed))
        x = rows(world, 2, per_rank=4)[r::world]
        ddp(x).pow(2).mean().backward()
        if r == 0:
            ddp.eval()
            with torch.set_grad_enabled(grad_mode):
                ddp(x)
                ddp(x)
            ddp.train()
        for _ in range(4):
            ddp.zero_grad()
            ddp(x).pow(2).mean().backward()

    with pytest.raises(dist.CollectiveError, match="rank"):
        run(rank, world, timeout=10)


@worlds
def test_p79171_static_graph_and_an_output_left_out_of_the_loss(world):
    """PyTorch fails in the second iteration. A parameter whose output is never in the loss does
    not change the graph, so here it is as unused as one that forward does not touch.
    """

    def rank(r):
        ddp = DDP(TwoOutputs(), static_graph=True)
        seen = []
        for _ in range(4):
            ddp.zero_grad()
            first, _ = ddp(a(r))
            first.sum().backward()
            seen.append((grad(ddp.module.p), grad(ddp.module.q)))
        return seen

    assert same_on_all(rank, world) == [(mean_rank(world), None)] * 4


class Vectors(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.vectors = nn.ParameterList([nn.Parameter(torch.ones(size)) for size in sizes])

    def forward(self, x):
        return sum(vector.sum() for vector in self.vectors) * x


@worlds
def test_p48880_sizes_of_buckets_overshoot_the_cap(world):
    """Caps are lower bounds: a bucket closes once it has reached its cap, whole parameters in."""

    def rank(r):
        ddp = DDP(Vectors(200, 100, 300, 50), bucket_cap_mb=500 / 2**20)
        ctor = ddp._get_ddp_logging_data()["bucket_sizes"]
        for _ in range(2):
            ddp(a(r)).sum().backward()
        data = ddp._get_ddp_logging_data()
        sizes = [int(n) for n in data["rebuilt_bucket_sizes"].split(", ")]
        assert sum(sizes) == 4 * 650
        assert all(size >= 500 for size in sizes[:-1])
        return ctor, sizes

    assert same_on_all(rank, world)[0] == "2600"  # one bucket in the first iteration


@worlds
def test_pr72843_the_first_iteration_is_one_bucket(world):
    def rank(r):
        ddp = DDP(nn.Sequential(*[nn.Linear(8, 8, bias=False) for _ in range(3)]), bucket_cap_mb=0)
        calls = []
        for _ in range(3):
            dist.reset_meter()
            ddp(torch.ones(1, 8)).sum().backward()
            calls.append(dist.meter()["all_reduce"]["calls"])
        return calls

    assert same_on_all(rank, world) == [1, 3, 3]


@worlds
def test_nemo_2468_lightning_5243_one_rank_skips_a_backward(world):
    """PyTorch pairs different iterations and hangs at the end. Here the odd one out is an error;
    skipping together, after an all-reduce of the flag, is the way to do it.
    """

    def loss_is_bad(r, step):
        return r == 1 and step == 1

    def train(r, agree):
        ddp = DDP(Scale())
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            loss = ddp(a(r)).sum()
            bad = torch.tensor([float(loss_is_bad(r, step))])
            if agree:
                dist.all_reduce(bad, op=dist.ReduceOp.MAX)
            if bad.item():
                continue
            loss.backward()
            optimizer.step()
        return ddp.module.p.item()

    assert same_on_all(train, world, True) == pytest.approx(1 - 0.3 * mean_rank(world))
    with pytest.raises(dist.CollectiveError, match="rank 1"):
        run(train, world, False, timeout=10)


@worlds
def test_determined_8915_models_of_different_size(world):
    """One rank's model has nothing to train: all ranks say who has how many."""

    def rank(r):
        module = nn.Linear(2, 2) if r != 1 else nn.ReLU()
        with pytest.raises(
            RuntimeError, match="DDP expects same model across all ranks, but Rank 0 has 2 params"
        ) as caught:
            DDP(module)
        assert "rank 1 has inconsistent 0 params" in str(caught.value)

    run(rank, world)


@worlds
def test_p60733_fresh_tensors_get_no_history(world):
    class Fresh(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.p * x, torch.zeros(3)

    def rank(r):
        for options in ({}, {"find_unused_parameters": True}, {"static_graph": True}):
            ddp = DDP(Fresh(), **options)
            for _ in range(2):
                ddp.zero_grad()
                out, fresh = ddp(a(r))
                assert fresh.grad_fn is None
                assert not fresh.requires_grad
                out.sum().backward()
            assert grad(ddp.module.p) == mean_rank(world)

    with pytest.warns(UserWarning, match="did not find any unused parameters"):
        run(rank, world)


@worlds
def test_p37030_p43557_fairscale_354_both_ways_to_zero_views(world):
    """zero_grad keeps the alias or drops it; both train alike, and detach_() says no."""

    def train(r, set_to_none):
        ddp = DDP(seeded(lambda: nn.Linear(2, 2)), gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad(set_to_none=set_to_none)
            ddp(rows(world, 2, seed=step)[r::world]).pow(2).mean().backward()
            optimizer.step()
        with pytest.raises(RuntimeError, match="detach views in-place"):
            ddp.module.weight.grad.detach_()
        return ddp.module.weight.tolist()

    kept, dropped = same_on_all(train, world, False), same_on_all(train, world, True)
    np.testing.assert_allclose(kept, dropped, rtol=1e-12)


@worlds
def test_p57473_the_error_comes_at_the_next_forward_too(world):
    """A loop that never steps an optimizer learns it where PyTorch tells it."""

    def rank(r):
        ddp = DDP(TwoOutputs())
        ddp(a(r))[0].sum().backward()
        with torch.no_grad():
            ddp(a(r))  # evaluation still works
        with pytest.raises(RuntimeError, match=UNFINISHED):
            ddp(a(r))

    run(rank, world)
