"""The byte meter equals the closed forms."""

from __future__ import annotations

import pytest

import minitorch as torch
import minitorch.distributed as dist


def metered(fn, world_size, operation):
    def program(rank):
        dist.reset_meter()
        fn(rank)
        dist.barrier()
        return dist.meter().get(operation)

    return dist.run_local(program, world_size, timeout=30)


def test_all_reduce_sends_two_n_times_w_minus_one_over_w(world_size):
    elements = 5000 * world_size  # long enough that the ring is used, and divisible
    rows = metered(lambda rank: dist.all_reduce(torch.ones(elements)), world_size, "all_reduce")
    expected = 2 * (world_size - 1) * 4 * elements // world_size
    for row in rows:
        assert row["calls"] == 1
        assert row["bytes_sent"] == row["bytes_received"] == expected


def test_all_gather_and_reduce_scatter(world_size):
    n = 3001
    rows = metered(
        lambda rank: dist.all_gather_into_tensor(torch.zeros(n * world_size), torch.ones(n)),
        world_size,
        "all_gather",
    )
    assert [row["bytes_sent"] for row in rows] == [(world_size - 1) * 4 * n] * world_size
    rows = metered(
        lambda rank: dist.reduce_scatter_tensor(torch.zeros(n), torch.ones(n * world_size)),
        world_size,
        "reduce_scatter",
    )
    assert [row["bytes_sent"] for row in rows] == [(world_size - 1) * 4 * n] * world_size


@pytest.mark.parametrize("operation", ["broadcast", "reduce", "gather", "scatter"])
def test_rooted_collectives_move_w_minus_one_times_n_in_all(world_size, operation):
    n = 2000

    def call(rank):
        t = torch.ones(n)
        rows = [torch.ones(n) for _ in range(world_size)] if rank == 0 else None
        {
            "broadcast": lambda: dist.broadcast(t, 0),
            "reduce": lambda: dist.reduce(t, 0),
            "gather": lambda: dist.gather(t, rows, 0),
            "scatter": lambda: dist.scatter(t, rows, 0),
        }[operation]()

    rows = metered(call, world_size, operation)
    assert sum(row["bytes_sent"] for row in rows) == (world_size - 1) * 4 * n
    assert sum(row["bytes_received"] for row in rows) == (world_size - 1) * 4 * n


def test_a_barrier_carries_no_data(world_size):
    rows = metered(lambda rank: None, world_size, "barrier")
    assert all(row["bytes_sent"] == 0 for row in rows)


def test_send_and_recv_count_what_they_carry():
    def call(rank):
        t = torch.ones(77)
        dist.send(t, 1) if rank == 0 else dist.recv(t, 0)

    assert metered(call, 2, "send")[0]["bytes_sent"] == 4 * 77
