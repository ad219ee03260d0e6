"""Behaviours that PyTorch's own suite checks: communication hooks for gradients and buffers.

Each test starts with the name of the upstream test it restates. The table is in README.md.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from distributed.ddp_cases import DDP, run
from distributed.suite_cases import (
    assert_same_bits,
    broadcasts,
    gradients,
    rows,
    seeded,
    weights,
    worlds,
)

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from minitorch.futures import Future, collect_all
from minitorch.nn.parallel.distributed import _BufferCommHookLocation


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.net2 = nn.Linear(4, 10), nn.Linear(10, 3)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


def trained(r, world, steps, hook=None, state=None, **options):
    """Gradients of every step, and the weights after the last one."""
    ddp = DDP(seeded(TwoLayers), bucket_cap_mb=0.0002, **options)
    if hook is not None:
        ddp.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    seen = []
    for step in range(steps):
        optimizer.zero_grad()
        ddp(rows(world, 4, seed=step)[r::world]).pow(2).mean().backward()
        seen.append(gradients(ddp.module))
        optimizer.step()
    return seen, weights(ddp.module)


@worlds
@pytest.mark.parametrize("static_graph", [False, True], ids=["dynamic", "static"])
def test_hook_parity_allreduce(world, static_graph):
    """100 iterations with the all-reduce hook equal 100 without any, bit by bit."""

    def rank(r):
        plain = trained(r, world, 100, static_graph=static_graph)[1]
        hooked = trained(
            r, world, 100, default_hooks.allreduce_hook, None, static_graph=static_graph
        )[1]
        return plain, hooked

    results = run(rank, world)
    assert_same_bits([array for pair in results for array in pair])


@worlds
def test_noop_hook(world):
    """noop, division by hand, all-reduce by hand: exactly what no hook gives."""

    def rank(r):
        expected = trained(r, world, 1)[0][0]
        local = trained(r, world, 1, debugging_hooks.noop_hook)[0][0]
        for name, g in local.items():
            assert not np.array_equal(g, expected[name])
            averaged = torch.from_numpy(g.copy()).mul_(1.0 / world)
            dist.all_reduce(averaged)
            np.testing.assert_allclose(averaged.numpy(), expected[name], rtol=0, atol=1e-16)

    run(rank, world)


@worlds
def test_is_last_hook(world):
    """Of each backward's buckets only the last one says that it is the last."""

    def rank(r):
        flags = []

        def record(state, bucket):
            flags.append(bucket.is_last())
            future = Future()
            future.set_result(bucket.buffer())
            return future

        for _ in range(2):
            trained(r, world, 3, record)
        return flags

    for flags in run(rank, world):
        # One bucket in the first backward; after the rebuild several.
        per_run = flags[: len(flags) // 2]
        assert per_run == flags[len(flags) // 2 :]
        assert per_run[0] is True
        rest = per_run[1:]
        buckets = len(rest) // 2
        assert buckets > 1
        assert rest == ([False] * (buckets - 1) + [True]) * 2


class Counting(nn.Module):
    """Its buffer moves by the mean of the input in each forward."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1, 1, bias=False)
        self.register_buffer("total", torch.zeros(1))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.total += x.mean()
        self.steps += 1
        return self.fc(x)


def summed(ddp, named_buffers):
    assert list(named_buffers) == ["total", "steps"]
    works = [
        dist.all_reduce(buffer, group=ddp.process_group, async_op=True)
        for buffer in named_buffers.values()
    ]
    return [work.get_future() for work in works]


def summed_later(ddp, named_buffers):
    """The sums arrive only some time after forward and backward have come to their ends."""
    buffers = list(named_buffers.values())
    sums = [buffer.clone() for buffer in buffers]
    for total in sums:
        dist.all_reduce(total, group=ddp.process_group)
    future = Future()

    def arrive():
        for buffer, total in zip(buffers, sums, strict=True):
            buffer.copy_(total)
        future.set_result(None)

    threading.Timer(0.1, arrive).start()
    return [future]


class ReadsOnly(Counting):
    """Its forward leaves the buffers alone, so that they may be in flight meanwhile."""

    def forward(self, x):
        return self.fc(x)


def summed_at_once(ddp, named_buffers):
    collect_all(summed(ddp, named_buffers)).wait()


@worlds
@pytest.mark.parametrize(
    ("where", "hook"),
    [
        ("PRE_FORWARD", summed_at_once),
        ("POST_FORWARD", summed_at_once),
        ("POST_FORWARD", summed),
    ],
    ids=["before", "after", "after-futures"],
)
def test_buffer_hook_allreduce(world, hook, where):
    """The hook sums the buffers over the ranks, in place of the broadcast from rank 0."""

    def rank(r):
        ddp = DDP(Counting())
        ddp._register_buffer_comm_hook(ddp, hook, _BufferCommHookLocation[where])
        dist.reset_meter()
        seen = []
        for _ in range(3):
            ddp(torch.full((2, 1), r + 1.0)).sum().backward()
            seen.append((ddp.module.total.item(), ddp.module.steps.item()))
        return seen, broadcasts()

    def expected():
        totals, steps = np.zeros(world), np.zeros(world, dtype=int)
        per_rank = [[] for _ in range(world)]
        for _ in range(3):
            if where == "PRE_FORWARD":
                totals, steps = totals * 0 + totals.sum(), steps * 0 + steps.sum()
            totals, steps = totals + np.arange(1, world + 1), steps + 1
            if where == "POST_FORWARD":
                totals, steps = totals * 0 + totals.sum(), steps * 0 + steps.sum()
            for r in range(world):
                per_rank[r].append((totals[r], steps[r]))
        return per_rank

    results = run(rank, world)
    assert [seen for seen, _ in results] == expected()
    # Of the rebuilt layout, not of buffers: members and sizes of the buckets.
    assert {count for _, count in results} == {2}


@worlds
@pytest.mark.parametrize("hook", [summed, summed_later])
@pytest.mark.parametrize("where", ["PRE_FORWARD", "POST_FORWARD"])
def test_buffer_hook_allreduce_return_future(world, where, hook):
    """Futures are waited for at the end of backward, whichever side of forward they come from."""

    def rank(r):
        ddp = DDP(ReadsOnly())
        ddp.module.total.fill_(r + 1.0)
        ddp._register_buffer_comm_hook(ddp, hook, _BufferCommHookLocation[where])
        seen = []
        for _ in range(3):
            ddp(torch.full((2, 1), r + 1.0)).sum().backward()
            seen.append(ddp.module.total.item())
        return seen

    total = world * (world + 1) / 2
    assert run(rank, world) == [[total, total * world, total * world**2]] * world


@worlds
def test_buffer_hook_that_is_not_callable(world):
    def rank(r):
        with pytest.raises(TypeError, match=r"Communication hook must be callable\."):
            DDP(Counting())._register_buffer_comm_hook(None, "sum")

    run(rank, world)
