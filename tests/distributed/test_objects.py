"""Collectives of Python objects."""

from __future__ import annotations

import pytest

import minitorch as torch
import minitorch.distributed as dist


def on_ranks(fn, world_size, **kwargs):
    return dist.run_local(fn, world_size, timeout=30, **kwargs)


def thing(rank):
    return {"rank": rank, "text": "x" * (100 * rank), "tensor": torch.full((2,), float(rank))}


def same(a, b):
    return (
        a["rank"] == b["rank"]
        and a["text"] == b["text"]
        and a["tensor"].tolist() == b["tensor"].tolist()
    )


def test_all_gather_object(world_size):
    def program(rank):
        found = [None] * world_size
        dist.all_gather_object(found, thing(rank))
        return all(same(found[peer], thing(peer)) for peer in range(world_size))

    assert all(on_ranks(program, world_size))


def test_gather_and_scatter_object(world_size):
    def program(rank):
        for root in range(world_size):
            found = [None] * world_size if rank == root else None
            dist.gather_object(thing(rank), found, dst=root)
            mine = [None]
            dist.scatter_object_list(mine, found, src=root)
            assert same(mine[0], thing(rank))

    on_ranks(program, world_size)


def test_broadcast_object_list(world_size):
    def program(rank):
        for root in range(world_size):
            objects = [root, "two", None] if rank == root else [None] * 3
            dist.broadcast_object_list(objects, src=root)
            assert objects == [root, "two", None]
        dist.broadcast_object_list([], src=0)

    on_ranks(program, world_size)


def test_send_and_recv_object_list():
    def program(rank):
        if rank == 0:
            dist.send_object_list([1, "b", {3}], dst=1)
            return None
        objects = [None] * 3
        assert dist.recv_object_list(objects, src=0) == 0
        return objects

    assert on_ranks(program, 2)[1] == [1, "b", {3}]


def test_what_cannot_be_pickled_raises_before_anything_is_sent():
    def program(rank):
        with pytest.raises(Exception, match=r"(?i)pickle"):
            dist.all_gather_object([None] * 2, lambda: None)
        dist.barrier()

    on_ranks(program, 2)


def test_wrong_lists_are_refused():
    def program(rank):
        with pytest.raises(ValueError, match="one entry per rank"):
            dist.all_gather_object([None], 1)
        with pytest.raises(ValueError, match="must be specified on destination rank"):
            dist.gather_object(1, None, dst=rank)
        with pytest.raises(ValueError, match="must be specified on source rank"):
            dist.scatter_object_list([None], None, src=rank)
        with pytest.raises(ValueError, match="size at least 1"):
            dist.scatter_object_list([], [1, 2], src=0)

    on_ranks(program, 2)
