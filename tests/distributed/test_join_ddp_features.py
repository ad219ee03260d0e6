"""DDP.join beside what else a wrapper does: its buffers, hooks, rebuild, static and sparse graphs.

The counting of inputs itself is in ``test_join_ddp.py``; expected numbers are as there.
"""

from __future__ import annotations

import pytest
from distributed.ddp_cases import (
    DDP,
    Branches,
    Scale,
    batch,
    grad,
    mlp,
    run,
    same_on_all,
    train,
)

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, optim
from minitorch.distributed._ddp.logging import logging_data
from minitorch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook

ONE = torch.ones(1)

views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])


def test_buffers_come_from_the_highest_active_rank():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(1))
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen.add_(x)
            return self.p * x

    def rank(r):
        ddp = DDP(Counting())
        values = []
        with ddp.join():
            # Rank 1 is the last to see data.
            for _ in range({0: 1, 1: 3, 2: 2}[r]):
                ddp(torch.full((1,), 10.0**r)).sum().backward()
                values.append(ddp.module.seen.item())
        return values, ddp.module.seen.item()

    results = run(rank, 3)
    # Iteration 2 starts from rank 2's 100, iteration 3 from rank 1's own.
    assert [values for values, _ in results] == [[1.0], [10.0, 110.0, 120.0], [100.0, 200.0]]
    assert [final for _, final in results] == [120.0] * 3


@pytest.mark.parametrize("first", [0, 2], ids=["rank 0 has none", "rank 0 has two"])
def test_rebuild_with_a_joined_rank(first):
    """The rebuild follows rank 0's order, also when rank 0 has only shadowed the first backward."""

    def rank(r):
        ddp = DDP(mlp(), bucket_cap_mb=0.0001)
        with ddp.join():
            for _ in range(first if r == 0 else 4):
                x, y = batch(3, seed=r)
                (ddp(x) - y).pow(2).sum().backward()
        data = logging_data(ddp)
        assert data["join_uneven_inputs"] == 1
        return data["has_rebuilt_buckets"], data["rebuilt_per_bucket_param_indices"]

    rebuilt, indices = same_on_all(rank, 3)
    assert rebuilt == 1
    assert sorted(int(i) for i in indices.replace(",", "").split()) == list(range(6))


def test_unused_parameters_of_active_ranks():
    """A joined rank uses nothing: what no active rank uses keeps its gradient of None."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), find_unused_parameters=True)
        with ddp.join():
            for i in range(1 + r):
                ddp.zero_grad()
                ddp(ONE, use_q=i == 1).sum().backward()
        m = ddp.module
        return grad(m.p), grad(m.q), grad(m.z), ddp.reducer._core.used_map()

    assert run(rank) == [(1.0, None, None, [1, 1, 0]), (0.5, 0.5, None, [1, 1, 0])]


def test_a_hook_gets_zeros_from_a_joined_rank():
    def rank(r):
        ddp = DDP(Scale(0.0))
        seen = []

        def summed(state, bucket):
            seen.append(bucket.buffer().item())
            return dist.all_reduce(bucket.buffer(), async_op=True).get_future()

        ddp.register_comm_hook(None, summed)
        with ddp.join():
            gradients = train(ddp, [ONE] * (1 + r))
        return seen, gradients, ddp.module.p.item()

    assert run(rank) == [
        ([1.0, 0.0], [[2.0]], -3.0),
        ([1.0, 1.0], [[2.0], [1.0]], -3.0),
    ]


def test_static_graph_with_a_joined_rank():
    """A rank that only shadows the first, learning iteration, and one that never has inputs."""

    def rank(r):
        ddp = DDP(Branches(with_z=True), static_graph=True, bucket_cap_mb=0)
        with ddp.join():
            for _ in range(2 * r):
                ddp.zero_grad()
                ddp(torch.full((1,), 6.0)).sum().backward()
        m = ddp.module
        return grad(m.p), grad(m.q), grad(m.z)

    assert run(rank, 3) == [(None, None, None), (4.0, 4.0, None), (2.0, 2.0, None)]


@pytest.mark.filterwarnings("ignore:find_unused_parameters")
def test_unused_parameters_with_a_joined_rank():
    """q is used by all while all have inputs, and then by nobody."""

    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True)
        seen = []
        with ddp.join():
            for step in range(1 + r):
                ddp.zero_grad()
                ddp(ONE, use_q=step == 0).sum().backward()
                seen.append((grad(ddp.module.p), grad(ddp.module.q)))
        return seen

    assert run(rank) == [[(1.0, 1.0)], [(1.0, 1.0), (0.5, None)]]


@pytest.mark.parametrize("world", [2, 3, 5])
@pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
def test_static_graph_of_a_rank_that_has_inputs_only_later(world, view):
    """Rank 0 shadows the learning pass of the others, and learns in its own first backward."""

    def rank(r):
        ddp = DDP(
            Branches(with_z=True), static_graph=True, bucket_cap_mb=0, gradient_as_bucket_view=view
        )
        with ddp.join():
            train(ddp, [ONE] * r, lr=0.0)
        train(ddp, [ONE * (r + 1)] * 3, lr=0.0)
        m = ddp.module
        return grad(m.p), grad(m.q), grad(m.z), ddp._get_ddp_logging_data()["has_rebuilt_buckets"]

    mean = (world + 1) / 2
    assert same_on_all(rank, world) == (mean, mean, None, 1)


def test_static_graph_of_a_rank_that_has_inputs_only_later_and_another_graph():
    """What no rank used when the ranks agreed on what is used cannot be averaged later."""

    def rank(r):
        ddp = DDP(Branches(), static_graph=True)
        with ddp.join():
            for _ in range(r):
                ddp(ONE, use_q=False).sum().backward()
        if r == 0:
            with pytest.raises(RuntimeError, match=r"training graph has changed .*parameter 1, q"):
                ddp(ONE).sum().backward()

    run(rank)


def test_sparse_gradients_with_a_joined_rank():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 2, sparse=True))
        sgd = optim.SGD(ddp.parameters(), lr=1.0)
        with torch.no_grad():
            ddp.module.weight.zero_()
        with ddp.join():
            for i in range(1 + r):
                sgd.zero_grad()
                ddp(torch.tensor([i + 2 * r])).sum().backward()
                sgd.step()
        return ddp.module.weight.tolist()

    # Rows 0 (rank 0) and 2, 3 (rank 1), each divided by 2.
    half = [-0.5, -0.5]
    assert same_on_all(rank) == [half, [0.0, 0.0], half, half]


@pytest.mark.parametrize("where", ["PRE_FORWARD", "POST_FORWARD"])
def test_buffer_hooks_are_shadowed(where):
    def rank(r):
        ddp = DDP(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))
        calls = []

        def average(state, named_buffers):
            calls.append(sorted(named_buffers))
            mean = named_buffers["1.running_mean"]
            mean.div_(2)
            return [dist.all_reduce(mean, async_op=True).get_future()]

        location = type(ddp._register_buffer_comm_hook.__defaults__[0])[where]
        ddp._register_buffer_comm_hook(ddp, average, location)
        with ddp.join():
            for _ in range(1 + 2 * r):
                ddp(torch.rand(4, 1)).sum().backward()
        return len(calls), ddp.module[1].running_mean.item()

    results = run(rank)
    assert [count for count, _ in results] == [3, 3]
    assert results[0][1] == results[1][1]


def test_delayed_parameters_are_refused_by_name():
    def rank(r):
        module = nn.Linear(2, 1)
        ddp = DDP(
            module,
            delay_all_reduce_named_params=[("bias", module.bias)],
            param_to_hook_all_reduce=module.weight,
        )
        with pytest.raises(NotImplementedError, match="delay_all_reduce_named_params"), ddp.join():
            ddp(torch.ones(1, 2))

    run(rank)


@pytest.mark.parametrize("hook", ["FP16_COMPRESS", "BF16_COMPRESS", "ALLREDUCE", "NOOP"])
def test_builtin_hooks_with_a_joined_rank(hook):
    def rank(r):
        ddp = DDP(Scale(0.0))
        register_ddp_comm_hook(DDPCommHookType[hook], ddp)
        with ddp.join():
            return [g for (g,) in train(ddp, [ONE] * (1 + 2 * r))]

    late = 1.0 if hook == "NOOP" else 0.5
    assert run(rank) == [[1.0], [1.0, late, late]]
