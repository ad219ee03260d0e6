"""Behaviours that PyTorch's own suite checks: unused parameters and graphs that differ.

Each test starts with the name of the upstream test it restates; the values are closed forms or a
local model's. The table is in README.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, Branches, a, grad, run, same_on_all
from distributed.suite_cases import (
    UNFINISHED,
    ThreeLayers,
    assert_same_bits,
    mean_rank,
    nothing_unused,
    rows,
    seeded,
    views,
    weights,
    worlds,
)

import minitorch as torch
from minitorch import nn


@worlds
@views
def test_forward_backward_unused_parameters(world, view):
    """fc3 is skipped: its gradient is None before and after, with the flag."""

    def rank(r):
        ddp = DDP(seeded(ThreeLayers), find_unused_parameters=True, gradient_as_bucket_view=view)
        x, y = rows(world, 2)[2 * r : 2 * r + 2], torch.tensor([0, 1])
        out = ddp(x, skip_fc3=True)
        before = grad_of(ddp.module.fc3)
        nn.functional.cross_entropy(out, y).backward()
        return before, grad_of(ddp.module.fc3), ddp.module.fc2.weight.grad is None

    assert same_on_all(rank, world) == (None, None, False)


def grad_of(layer):
    return layer.weight.grad


@worlds
@nothing_unused
def test_forward_backward_optimizer(world):
    """fc3 is unused in the first of three Adam steps only; equal to one process on all rows."""

    def train(model, share):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        target = torch.arange(2 * world) % 4
        for step in range(3):
            optimizer.zero_grad()
            out = model(rows(world, 2, seed=step)[share], skip_fc3=step == 0)
            nn.functional.cross_entropy(out, target[share]).backward()
            optimizer.step()
        return weights(model)

    alone = train(seeded(ThreeLayers), slice(None))

    def rank(r):
        return train(DDP(seeded(ThreeLayers), find_unused_parameters=True), slice(r, None, world))

    together = run(rank, world)
    assert_same_bits(together)
    np.testing.assert_allclose(together[0], alone, rtol=1e-9)


@worlds
@views
@nothing_unused
def test_unused_parameters_empty_on_one_rank(world, view):
    """Rank 0 uses everything, the others half: every gradient is set, the same everywhere."""

    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True, gradient_as_bucket_view=view)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r), use_q=r == 0).sum().backward()
        return grad(ddp.module.p), grad(ddp.module.q)

    assert same_on_all(rank, world) == pytest.approx((mean_rank(world), 1 / world))


@worlds
@nothing_unused
def test_ignored_output_with_unused_parameters(world):
    """Four forwards are dropped, then four are trained, with a parameter that is never used."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), find_unused_parameters=True)
        for _ in range(4):
            ddp(a(r))
        for _ in range(4):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(ddp.module.p), grad(ddp.module.q), grad(ddp.module.z)

    assert same_on_all(rank, world) == (mean_rank(world), mean_rank(world), None)


@worlds
@nothing_unused
def test_control_flow_same_across_ranks(world):
    """The used map is [W, 0] in even iterations and [W, W] in odd ones."""

    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True)
        maps = []
        for step in range(6):
            ddp(a(r), use_q=step % 2 == 1).sum().backward()
            maps.append(list(ddp.reducer._core.used_map()))
        return maps

    assert same_on_all(rank, world) == [[world, 0], [world, world]] * 3


@worlds
def test_control_flow_same_across_ranks_without_the_flag(world):
    """PyTorch: the second iteration raises, naming index 1. Here: the step of the first does."""

    def rank(r):
        ddp = DDP(Branches())
        optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
        ddp(a(r), use_q=False).sum().backward()
        with pytest.raises(RuntimeError, match=UNFINISHED) as caught:
            optimizer.step()
        assert f"did not receive grad for rank {r}: 1." in str(caught.value)
        return ddp.module.p.item()

    assert same_on_all(rank, world) == 1.0


@worlds
@nothing_unused
def test_control_flow_different_across_ranks_with_the_flag(world):
    """Even ranks use q in even steps, odd ranks in odd ones: the map counts who used it."""

    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True)
        seen = []
        for step in range(4):
            ddp.zero_grad()
            ddp(a(r), use_q=(r + step) % 2 == 0).sum().backward()
            seen.append((ddp.reducer._core.used_map()[1], grad(ddp.module.q)))
        return seen

    def expected(step):
        users = [r for r in range(world) if (r + step) % 2 == 0]
        return len(users), pytest.approx(sum(r + 1 for r in users) / world)

    assert same_on_all(rank, world) == [expected(step) for step in range(4)]


@worlds
def test_control_flow_different_across_ranks_without_the_flag(world):
    """Rank 0 uses q, the others do not. PyTorch: rank 0 blocks in backward, the others go on with
    local gradients. Here their step raises, which ends rank 0's wait as well.
    """
    outcome = {}

    def rank(r):
        ddp = DDP(Branches())
        optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
        try:
            ddp(a(r), use_q=r == 0).sum().backward()
            optimizer.step()
        except RuntimeError as error:
            outcome[r] = str(error)
            raise
        finally:
            assert ddp.module.p.item() == 1.0  # nobody stepped

    with pytest.raises(RuntimeError, match=f"{UNFINISHED}.*q") as caught:
        run(rank, world, timeout=20)
    assert "did not receive grad for rank" in str(caught.value)
    assert "rank 0" not in caught.value.__notes__[0]
    assert "failed" in outcome[0]


def test_unused_params_rebuild_buckets_exception():
    """The error of the second forward gives the hint and, at any debug level, the names."""

    class TwoNets(nn.Module):
        def __init__(self):
            super().__init__()
            self.net1, self.net2 = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

        def forward(self, x):
            return self.net1(x)

    def rank(r):
        ddp = DDP(TwoNets(), bucket_cap_mb=1)
        ddp(torch.ones(2, 4)).sum().backward()
        with pytest.raises(RuntimeError, match=UNFINISHED) as caught:
            ddp(torch.ones(2, 4))
        return str(caught.value)

    for text in run(rank, 2):
        assert "find_unused_parameters=True" in text
        assert "net2.weight" in text
        assert "net1" not in text
