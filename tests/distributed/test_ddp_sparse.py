"""Sparse embedding gradients: gathered, not all-reduced."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn import functional as F

views = pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
options = pytest.mark.parametrize(
    "option",
    [{}, {"find_unused_parameters": True}, {"static_graph": True}],
    ids=["plain", "find_unused", "static"],
)


class Model(nn.Module):
    def __init__(self, *, sparse):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(10, 3, sparse=sparse)
        self.head = nn.Linear(3, 2)
        self.idle = nn.Embedding(4, 3, sparse=sparse)

    def forward(self, index, use_table=True):
        rows = self.table(index) if use_table else torch.ones(len(index), 3)
        return self.head(rows)


def test_rank_r_reads_row_r():
    """PyTorch: indices [[0, 1]], values [[1, 1], [1, 1]] on all ranks."""

    def rank(r):
        ddp = DDP(nn.Embedding(4, 2, sparse=True))
        ddp(torch.tensor([r, r])).sum().backward()
        gradient = ddp.module.weight.grad
        assert gradient.is_sparse
        return gradient.coalesce().indices().tolist(), gradient.coalesce().values().tolist()

    assert same_on_all(rank) == ([[0, 1]], [[1.0, 1.0], [1.0, 1.0]])


@views
@options
@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
def test_training_equals_dense(view, option, world):
    """Different rows, and different numbers of rows, on each rank."""
    option = option or {"find_unused_parameters": True}

    def rank(r, sparse):
        ddp = DDP(
            Model(sparse=sparse), bucket_cap_mb=0.0001, gradient_as_bucket_view=view, **option
        )
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        rng = np.random.default_rng(r)
        for _ in range(4):
            optimizer.zero_grad()
            index = torch.from_numpy(rng.integers(0, 10, size=2 * r + 1))
            ddp(index).sin().sum().backward()
            optimizer.step()
        ddp.check_consistency()
        return ddp.module.table.weight.detach().numpy().copy(), ddp.module.idle.weight.grad

    dense = run(rank, world, False)
    sparse = run(rank, world, True)
    for (expected, _), (actual, idle) in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)
        assert idle is None


def test_a_bucket_of_its_own_also_after_the_rebuild():
    def rank(r):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(10, 3, sparse=True), nn.Linear(3, 2))
        ddp = DDP(model)
        first = ddp.reducer.bucket_indices
        for _ in range(3):
            ddp(torch.tensor([r])).sum().backward()
        return first, ddp.reducer.bucket_indices

    first, rebuilt = same_on_all(rank)
    assert first == [[1, 2], [0]]
    assert [0] in rebuilt
    assert len(rebuilt) == 2


@pytest.mark.parametrize("world", [2, 3])
def test_unused_on_some_ranks_or_on_all(world):
    """Where no rank looks anything up the gradient stays None."""

    def rank(r, sparse):
        ddp = DDP(Model(sparse=sparse), find_unused_parameters=True)
        weight, seen = ddp.module.table.weight, []
        for use_table in (True, r == 0, False, r != 0):
            ddp.zero_grad()
            ddp(torch.tensor([r, 3]), use_table).sum().backward()
            gradient = weight.grad
            if gradient is not None:
                gradient = (gradient.to_dense() if sparse else gradient).numpy().copy()
            seen.append(gradient)
        return seen

    for sparse, dense in zip(run(rank, world, True), run(rank, world, False), strict=True):
        assert sparse[2] is None
        assert dense[2] is None
        for step in (0, 1, 3):
            np.testing.assert_allclose(sparse[step], dense[step], rtol=1e-6)
            assert np.abs(sparse[step]).sum() > 0


def test_accumulates_under_no_sync():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 1, sparse=True))
        weight = ddp.module.weight
        with ddp.no_sync():
            ddp(torch.tensor([0])).sum().backward()
        ddp(torch.tensor([r + 1])).sum().backward()
        return weight.grad.to_dense().flatten().tolist()

    assert same_on_all(rank) == [1.0, 0.5, 0.5, 0.0]


def test_flush():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 1, sparse=True))
        with ddp.no_sync():
            ddp(torch.tensor([r + 1])).sum().backward()
        ddp.sync()
        return ddp.module.weight.grad.to_dense().flatten().tolist()

    assert same_on_all(rank) == [0.0, 0.5, 0.5, 0.0]


def test_bytes_are_those_of_the_rows_and_not_of_the_table():
    def rank(r):
        ddp = DDP(nn.Embedding(100000, 4, sparse=True))
        dist.reset_meter()
        ddp(torch.arange(7) + 3 * r).sum().backward()
        dist.barrier()
        assert "all_reduce" not in dist.meter() or not dist.meter()["all_reduce"]["calls"]
        return dist.meter()["all_gather"]["bytes_sent"]

    assert same_on_all(rank) == 8 + 7 * 8 + 7 * 4 * 4


def test_hook_sees_the_sparse_gradient():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 1, sparse=True))
        seen = []

        def hook(state, bucket):
            seen.append((bucket.buffer().is_sparse, bucket.gradients()[0] is bucket.buffer()))
            future = torch.futures.Future()
            future.set_result(bucket.buffer() * 10)
            return future

        ddp.register_comm_hook(None, hook)
        ddp(torch.tensor([r])).sum().backward()
        return seen, ddp.module.weight.grad.to_dense().flatten().tolist()

    assert run(rank) == [([(True, True)], [10.0, 0, 0, 0]), ([(True, True)], [0, 10.0, 0, 0])]


def test_hook_must_answer_with_a_sparse_tensor():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 1, sparse=True))

        def hook(state, bucket):
            future = torch.futures.Future()
            future.set_result(bucket.buffer().to_dense())
            return future

        ddp.register_comm_hook(None, hook)
        with pytest.raises(RuntimeError, match="the result must be sparse too"):
            ddp(torch.tensor([r])).sum().backward()

    run(rank, 1)


def test_a_dense_gradient_where_a_sparse_one_is_expected():
    def rank(r):
        ddp = DDP(nn.Embedding(4, 1, sparse=True))
        ddp(torch.tensor([0]))
        with pytest.raises(RuntimeError, match="Expected a sparse gradient of weight"):
            ddp.module.weight.sum().backward()

    run(rank, 1)


def test_a_sparse_gradient_where_a_dense_one_is_expected():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 1))

        def forward(self, index):
            return F.embedding(index, self.weight, sparse=True)

    def rank(r):
        ddp = DDP(Table())
        with pytest.raises(RuntimeError, match=r"sparse gradient of weight.*nn.Embedding"):
            ddp(torch.tensor([0])).sum().backward()

    run(rank, 1)
