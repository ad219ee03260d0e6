"""Behaviours that PyTorch's own suite checks: shared, undefined and rank-dependent parts.

Each test starts with the name of the upstream test it restates. The table is in README.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, run, same_on_all
from distributed.suite_cases import (
    TWICE,
    ThreeLayers,
    gradients,
    mean_rank,
    nothing_unused,
    rows,
    seeded,
    weights,
    worlds,
)

import minitorch as torch
from minitorch import nn


@worlds
@pytest.mark.parametrize("static_graph", [False, True], ids=["dynamic", "static"])
def test_shared_grad_acc_unused_params(world, static_graph):
    """One parameter under two names, unused, for six iterations."""

    class SharedBias(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 2, bias=False)
            self.bias = nn.Parameter(torch.zeros(2))
            self.other = nn.Module()
            self.other.bias = self.bias

        def forward(self, x):
            return self.net(x)

    def rank(r):
        ddp = DDP(SharedBias(), find_unused_parameters=True, static_graph=static_graph)
        for _ in range(6):
            ddp.zero_grad()
            ddp(torch.full((1, 3), r + 1.0)).sum().backward()
        return ddp.module.net.weight.grad.tolist(), ddp.module.bias.grad

    assert same_on_all(rank, world) == ([[mean_rank(world)] * 3] * 2, None)


class Undefined(torch.autograd.Function):
    """Passes its input on; its backward has no gradient to give."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


@worlds
@nothing_unused
def test_undefined_grad_parity_unused_parameters(world):
    """With an undefined upstream gradient DDP's gradients are the local model's: none at all."""
    local = nn.Linear(2, 2)
    Undefined.apply(local(torch.ones(1, 2)).sum()).backward()
    assert [p.grad for p in local.parameters()] == [None, None]

    def rank(r):
        ddp = DDP(nn.Linear(2, 2), find_unused_parameters=True)
        Undefined.apply(ddp(torch.ones(1, 2)).sum()).backward()
        undefined = [p.grad for p in ddp.parameters()]
        ddp(torch.full((1, 2), r + 1.0)).sum().backward()  # and the next iteration is fine
        return undefined, ddp.module.weight.grad.tolist()

    assert same_on_all(rank, world) == ([None, None], [[mean_rank(world)] * 2] * 2)


class DifferentGraphs(nn.Module):
    """Rank 0 runs two layers, the others one."""

    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)

    def forward(self, x, both):
        x = torch.relu(self.lin1(x))
        return self.lin2(x) if both else x


@worlds
@nothing_unused
def test_different_graph_across_ranks(world):
    """find_unused is not rebuilt, static is; weights and gradients are equal either way."""

    def train(r, **options):
        ddp = DDP(seeded(DifferentGraphs), **options)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            ddp(rows(world, 3, seed=step)[r : r + 1], both=r == 0).sum().backward()
            optimizer.step()
        return ddp._get_ddp_logging_data()["has_rebuilt_buckets"], weights(ddp)

    def rank(r):
        return train(r, find_unused_parameters=True), train(r, static_graph=True)

    results = run(rank, world)
    for (rebuilt, dynamic), (static_rebuilt, static) in results:
        assert (rebuilt, static_rebuilt) == (0, 1)
        np.testing.assert_array_equal(dynamic, results[0][0][1])
        np.testing.assert_array_equal(static, results[0][1][1])
        np.testing.assert_allclose(static, dynamic, rtol=1e-12)


@worlds
@nothing_unused
def test_find_unused_parameters_kwarg(world):
    """fc3 applied outside of forward: an error with the flag, fine without it."""

    def rank(r, flag):
        ddp = DDP(seeded(ThreeLayers), find_unused_parameters=flag)
        x = rows(world, 2)[2 * r : 2 * r + 2]
        out = ddp.module.fc3(ddp(x, skip_fc3=True))
        if flag:
            with pytest.raises(RuntimeError, match=f"{TWICE}.*fc3.weight"):
                out.sum().backward()
            return None
        out.sum().backward()
        return {name: g.tobytes() for name, g in gradients(ddp.module).items()}

    run(rank, world, True)
    assert set(same_on_all(rank, world, False)) == {"fc1.weight", "fc2.weight", "fc3.weight"}
