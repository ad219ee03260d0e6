"""Hooks whose continuations communicate, with all buckets in flight and ranks at different speeds.

Every message is late by a random time (``_core.delayed``), and every rank dawdles at random: the
ranks so reach their continuations in every order that the network allows. What a continuation
launches is numbered under the collective it continues; were it numbered in order of launch, it
would meet another bucket's all-reduce.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
from distributed.ddp_cases import DDP, run

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed import local
from minitorch.distributed._native import core

WORLD = 4
ITERATIONS = 200
LAYERS = 5


@pytest.fixture(autouse=True)
def late_messages(monkeypatch):
    native = core()

    def late_world(size):
        transports = native.threads_world(size)
        return [native.delayed(t, 100 + i, 1e-4) for i, t in enumerate(transports)]

    monkeypatch.setattr(
        local, "core", lambda: SimpleNamespace(threads_world=late_world, Engine=native.Engine)
    )


class Layers(nn.Module):
    """Layer i's gradient is (i + 1) times the input."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.zeros(3 + i)) for i in range(LAYERS)])

    def forward(self, x):
        return sum(((i + 1) * x * w).sum() for i, w in enumerate(self.weights))


def twice(state, bucket):
    """All-reduce; then, as a continuation, all-reduce a number of this bucket; combine."""
    index = bucket.index()

    def second(future):
        total = future.value()[0]
        number = torch.full((1,), float(10 * index + dist.get_rank()))
        dist.all_reduce(number)
        return total * 0 + number * 100 + total

    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(second)


def chained(state, bucket):
    """The same with the second all-reduce asynchronous, and a broadcast as a third phase."""
    index = bucket.index()
    rank = dist.get_rank()

    def second(future):
        total = future.value()[0]
        number = torch.full((1,), float(10 * index + rank))
        work = dist.all_reduce(number, async_op=True)
        root = torch.full((1,), float(rank))
        dist.broadcast(root, index % WORLD)
        assert root.item() == index % WORLD
        work.wait()
        return total * 0 + number * 100 + total

    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(second)


def expected(bucket_of, step):
    inputs = sum(step % 7 + r for r in range(WORLD))
    numbers = [WORLD * 10 * bucket_of[i] + sum(range(WORLD)) for i in range(LAYERS)]
    return [100.0 * number + (i + 1) * inputs for i, number in enumerate(numbers)]


@pytest.mark.parametrize("hook", [twice, chained])
def test_continuations_communicate(hook):
    def rank(r):
        rng = np.random.default_rng(r)
        ddp = DDP(Layers(), bucket_cap_mb=0, gradient_as_bucket_view=True)

        def dawdling(state, bucket):
            if rng.random() < 0.1:
                time.sleep(rng.random() * 1e-3)
            return hook(state, bucket)

        ddp.register_comm_hook(None, dawdling)
        for step in range(ITERATIONS):
            ddp.zero_grad()
            ddp(torch.full((1,), float(step % 7 + r))).backward()
            bucket_of = {i: b for b, ms in enumerate(ddp.reducer.bucket_indices) for i in ms}
            if step:
                assert len(ddp.reducer.bucket_indices) == LAYERS
            for p, value in zip(ddp.parameters(), expected(bucket_of, step), strict=True):
                assert p.grad.tolist() == [value] * p.numel()

    run(rank, WORLD, timeout=60)
