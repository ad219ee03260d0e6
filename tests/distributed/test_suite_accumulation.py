"""Behaviours that PyTorch's own suite checks: accumulation, shared weights, checkpoints.

Each test starts with the name of the upstream test it restates. The table is in README.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, a, batch, grad, mlp, run, same_on_all
from distributed.suite_cases import (
    TWICE,
    assert_same_bits,
    gradients,
    mean_rank,
    nothing_unused,
    rows,
    seeded,
    views,
    worlds,
)

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.utils.checkpoint import checkpoint


def summed_then_divided(state, bucket):
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda f: f.value()[0].div_(dist.get_world_size()))


@worlds
@views
@pytest.mark.parametrize("hook", [None, summed_then_divided], ids=["builtin", "hook"])
@pytest.mark.parametrize("set_to_none", [False, True], ids=["zero", "none"])
def test_accumulate_gradients_no_sync(world, view, hook, set_to_none):
    """Even iterations under no_sync, odd ones synced: different in between, then as local."""
    dtype, size = torch.float64, 2 * world
    data = [batch(size, dtype, seed=s) for s in range(6)]

    def step(model, share, s):
        x, y = data[s]
        nn.functional.mse_loss(model(x[share]), y[share]).backward()

    alone, expected = mlp(dtype), []
    for s in range(6):
        if s % 2 == 0:
            alone.zero_grad()
        step(alone, slice(None), s)
        expected.append(gradients(alone)["first.weight"])

    def rank(r):
        ddp = DDP(mlp(dtype), gradient_as_bucket_view=view)
        if hook:
            ddp.register_comm_hook(None, hook)
        seen = []
        for s in range(6):
            if s % 2 == 0:
                ddp.zero_grad(set_to_none=set_to_none)
                with ddp.no_sync():
                    step(ddp, slice(r, None, world), s)
            else:
                step(ddp, slice(r, None, world), s)
            seen.append(gradients(ddp.module)["first.weight"])
        return seen

    for s, per_rank in enumerate(zip(*run(rank, world), strict=True)):
        if s % 2 == 0:
            assert not np.allclose(per_rank[0], per_rank[1])
        else:
            assert_same_bits(per_rank)
            np.testing.assert_allclose(per_rank[0], expected[s], rtol=1e-10, atol=1e-12)


@worlds
@views
@nothing_unused
def test_grads_same_across_ranks_with_no_sync(world, view):
    """Ranks use different layers in the two microbatches: afterwards every gradient is there."""

    class Conditional(nn.Module):
        def __init__(self):
            super().__init__()
            for n in range(4):
                setattr(self, f"nn{n}", nn.Linear(1, 1, bias=False))

        def forward(self, x, which):
            return getattr(self, f"nn{which}")(x)

    def rank(r):
        ddp = DDP(Conditional(), find_unused_parameters=True, gradient_as_bucket_view=view)
        first = 0 if r == 0 else 2
        for _ in range(2):
            ddp.zero_grad()
            with ddp.no_sync():
                ddp(a(r).reshape(1, 1), first).sum().backward()
            ddp(a(r).reshape(1, 1), first + 1).sum().backward()
        return [p.grad.item() for p in ddp.parameters()]

    rest = sum(range(2, world + 1)) / world
    assert same_on_all(rank, world) == pytest.approx([1 / world, 1 / world, rest, rest])


@worlds
@views
@pytest.mark.parametrize("set_to_none", [False, True], ids=["zero", "none"])
@pytest.mark.parametrize("static_graph", [False, True], ids=["dynamic", "static"])
def test_weight_sharing(world, view, set_to_none, static_graph):
    """One parameter times r + 1, twice: the gradient is 2 mean(r + 1)."""

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(3))
            self.layers = nn.ModuleList([nn.Module(), nn.Module()])
            for layer in self.layers:
                layer.p = self.p

        def forward(self, x):
            return sum((layer.p * x).sum() for layer in self.layers)

    def rank(r):
        ddp = DDP(Shared(), gradient_as_bucket_view=view, static_graph=static_graph)
        for _ in range(4):
            ddp.zero_grad(set_to_none=set_to_none)
            ddp(a(r)).backward()
        return ddp.module.p.grad.tolist()

    assert same_on_all(rank, world) == [2 * mean_rank(world)] * 3


class Checkpointed(nn.Module):
    """Two layers; ``calls`` checkpoints of the second; a third that may stay unused."""

    def __init__(self, calls=1, *, reentrant=True, unused=False):
        super().__init__()
        self.l1, self.l2 = nn.Linear(3, 3), nn.Linear(3, 3)
        if unused:
            self.l3 = nn.Linear(3, 3)
        self.calls, self.reentrant = calls, reentrant

    def forward(self, x):
        x = torch.tanh(self.l1(x))
        for _ in range(self.calls):
            x = checkpoint(self.l2, x, use_reentrant=self.reentrant)
        return x


def checkpointed_steps(model, share, world, iterations=4):
    for s in range(iterations):
        model.zero_grad()
        model(rows(world, 3, seed=s)[share]).pow(2).mean().backward()
    return {name: g for name, g in gradients(model).items() if g is not None}


def checkpoint_parity(world, make, **options):
    alone = checkpointed_steps(seeded(make), slice(None), world)

    def rank(r):
        ddp = DDP(seeded(make), bucket_cap_mb=0.0001, **options)
        return checkpointed_steps(ddp, slice(r, None, world), world)

    for together in run(rank, world):
        assert len(together) == len(alone)
        for ours, right in zip(together.values(), alone.values(), strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-10, atol=1e-14)


def refuses_second_use(world, make, **options):
    def rank(r):
        ddp = DDP(seeded(make), bucket_cap_mb=0.0001, **options)
        with pytest.raises(RuntimeError, match=TWICE):
            checkpointed_steps(ddp, slice(r, None, world), world, iterations=1)

    run(rank, world)


reentrant = pytest.mark.parametrize("how", [True, False], ids=["reentrant", "non-reentrant"])


@worlds
@reentrant
@pytest.mark.parametrize("static_graph", [False, True], ids=["dynamic", "static"])
def test_checkpointing_once(world, how, static_graph):
    checkpoint_parity(world, lambda: Checkpointed(reentrant=how), static_graph=static_graph)


@worlds
@reentrant
def test_checkpointing_twice(world, how):
    """Re-entrant and dynamic: an error. Static, or not re-entrant: fine."""
    checkpoint_parity(world, lambda: Checkpointed(2, reentrant=how), static_graph=True)
    if how:
        refuses_second_use(world, lambda: Checkpointed(2))
    else:
        checkpoint_parity(world, lambda: Checkpointed(2, reentrant=False))


@worlds
@reentrant
def test_checkpointing_unused_params(world, how):
    """A re-entrant checkpoint hides its layer from the graph walk, so dynamic mode raises."""
    make = lambda: Checkpointed(reentrant=how, unused=True)
    checkpoint_parity(world, make, static_graph=True)
    if how:
        refuses_second_use(world, make, find_unused_parameters=True)
    else:
        checkpoint_parity(world, make, find_unused_parameters=True)


@worlds
@reentrant
def test_checkpointing_twice_weight_sharing(world, how):
    """Two checkpointed layers share their weight: static graphs count both firings."""

    class Sharing(Checkpointed):
        def __init__(self):
            super().__init__(reentrant=how)
            self.l3 = nn.Linear(3, 3)
            self.l3.weight = self.l2.weight

        def forward(self, x):
            x = super().forward(x)
            return checkpoint(self.l3, x, use_reentrant=how)

    checkpoint_parity(world, Sharing, static_graph=True)


@pytest.mark.filterwarnings("ignore:.*DistributedDataParallel does not average")
@worlds
def test_no_grad(world):
    """A forward under no_grad leaves no gradient and arms nothing; the training that follows is as
    usual.
    """

    def rank(r):
        ddp = DDP(nn.Linear(1, 1, bias=False))
        with torch.no_grad():
            out = ddp(a(r).reshape(1, 1))
        before = out.requires_grad, ddp.module.weight.grad
        ddp.module(a(r).reshape(1, 1)).sum().backward()
        assert grad(ddp.module.weight) == r + 1
        ddp.zero_grad()
        ddp(a(r).reshape(1, 1)).sum().backward()
        return before, grad(ddp.module.weight)

    assert same_on_all(rank, world) == ((False, None), mean_rank(world))
