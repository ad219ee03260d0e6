"""The default group, subgroups, and who is who."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

import minitorch as torch
import minitorch.distributed as dist


def on_ranks(fn, world_size, **kwargs):
    return dist.run_local(fn, world_size, timeout=30, **kwargs)


def test_before_init_everything_says_so():
    assert not dist.is_initialized()
    assert dist.is_available()
    assert dist.group.WORLD is None
    words = (
        "Default process group has not been initialized, please make sure to call "
        "init_process_group."
    )
    for call in (
        dist.get_rank,
        dist.get_world_size,
        dist.barrier,
        dist.get_backend,
        dist.meter,
        lambda: dist.all_reduce(torch.ones(1)),
        lambda: dist.new_group([0]),
        lambda: dist.all_gather_object([None], 1),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


def test_a_world_of_one_in_this_process(monkeypatch):
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    dist.init_process_group("gloo", init_method="env://", rank=0, world_size=1)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
        t = torch.ones(3)
        dist.all_reduce(t)
        assert t.tolist() == [1.0] * 3
        with pytest.raises(
            ValueError, match="trying to initialize the default process group twice!"
        ):
            dist.init_process_group()
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group(timeout=timedelta(seconds=5))
    assert dist.get_backend() == "threads"
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("environment", "arguments", "words"),
    [
        ({"WORLD_SIZE": "4", "RANK": "1", "MASTER_ADDR": "h"}, {}, "WORLD_SIZE=4.*mpirun -n 4"),
        ({"RANK": "3"}, {}, "RANK=3"),
        ({"RANK": "x"}, {}, "RANK='x' is not a number"),
        ({}, {"world_size": 2}, "world_size=2.*mpirun -n 2"),
        ({}, {"rank": 1}, "rank=1"),
        ({}, {"backend": "threads", "world_size": 3}, "run_local"),
        ({}, {"backend": "smoke"}, "Invalid backend"),
        ({}, {"init_method": "carrier://pigeon"}, "No rendezvous handler"),
        ({}, {"store": object()}, "store= is not supported"),
        ({}, {"timeout": timedelta(0)}, "timeout must be positive"),
        ({}, {"link": "fast"}, "cannot read 'fast'"),
        ({"MINITORCH_LINK": "1Gbit"}, {}, "MINITORCH_LINK"),
    ],
)
def test_false_claims_are_refused_by_name(monkeypatch, environment, arguments, words):
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=words):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


def test_other_refusals():
    with pytest.raises(RuntimeError, match="Distributed package doesn't have NCCL built in"):
        dist.init_process_group("nccl")
    with pytest.raises(
        TypeError, match=r"Expected timeout argument to be of type datetime\.timedelta, got 5"
    ):
        dist.init_process_group(timeout=5)
    assert not dist.is_initialized()


def test_a_child_of_a_rank_is_refused(monkeypatch):
    from minitorch.distributed._environment import _launch_identity

    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("MINITORCH_RANK_PROCESS", f"{os.getppid()};{_launch_identity(os.environ)}")
    with pytest.raises(RuntimeError, match="is a child of process"):
        dist.init_process_group()


def test_init_inside_run_local_confirms_it(world_size):
    def program(rank):
        assert dist.is_initialized()
        dist.init_process_group(
            "gloo", rank=rank, world_size=world_size, timeout=timedelta(seconds=20)
        )
        assert dist.get_backend() == "gloo"
        assert dist.group.WORLD.timeout == timedelta(seconds=20)
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group()
        dist.barrier()
        dist.destroy_process_group()
        with pytest.raises(ValueError, match="not been initialized"):
            dist.get_rank()
        dist.init_process_group()
        t = torch.ones(2)
        dist.all_reduce(t)
        assert t[0].item() == world_size
        return dist.get_rank()

    assert on_ranks(program, world_size) == list(range(world_size))


def test_init_inside_run_local_refuses_what_is_not_so():
    def program(rank):
        with pytest.raises(ValueError, match="world_size=3, but this is rank"):
            dist.init_process_group(world_size=3)
        with pytest.raises(ValueError, match=f"rank={1 - rank}, but this is rank {rank} of 2"):
            dist.init_process_group(rank=1 - rank)
        with pytest.raises(ValueError, match="threads of one process"):
            dist.init_process_group("mpi")

    on_ranks(program, 2)


def test_helper_threads_belong_to_their_rank():
    import threading

    from minitorch.distributed._rank_state import current, inherit

    def program(rank):
        found = []
        state = current()

        def helper():
            inherit(state)
            found.append(dist.get_rank())

        thread = threading.Thread(target=helper)
        thread.start()
        thread.join()
        return found

    assert on_ranks(program, 3) == [[0], [1], [2]]


@pytest.mark.filterwarnings("ignore:Running .* which does not belong to the given group")
def test_subgroups(world_size):
    def program(rank):
        evens = list(range(0, world_size, 2))
        group = dist.new_group(list(reversed(evens)))
        everyone = dist.new_group()
        assert dist.get_process_group_ranks(everyone) == list(range(world_size))
        if rank not in evens:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            assert dist.get_rank(group) == dist.get_world_size(group) == -1
            t = torch.ones(1)
            assert dist.all_reduce(t, group=group) is None
            assert dist.barrier(group) is None
            assert dist.recv(t, 0, group=group) == -1
            with pytest.raises(ValueError, match="Invalid process group specified"):
                dist.send(t, 0, group=group)
            return
        assert dist.get_rank(group) == rank // 2
        assert dist.get_global_rank(group, rank // 2) == rank
        assert dist.get_group_rank(group, rank) == rank // 2
        assert dist.get_process_group_ranks(group) == evens
        t = torch.full((5,), float(rank))
        dist.all_reduce(t, group=group)
        assert t[0].item() == sum(evens)
        # Roots are global ranks, also here.
        last = evens[-1]
        t = torch.full((5,), float(rank))
        dist.broadcast(t, src=last, group=group)
        assert t[0].item() == last
        t = torch.full((5,), float(rank))
        dist.broadcast(t, group=group, group_src=0)
        assert t[0].item() == 0
        found = [None] * len(evens)
        dist.all_gather_object(found, rank, group=group)
        assert found == evens
        if world_size > 1:
            with pytest.raises(ValueError, match="Global rank 1 is not part of group"):
                dist.broadcast(t, src=1, group=group)
        dist.destroy_process_group(group)
        with pytest.raises(ValueError, match="was destroyed"):
            dist.all_reduce(t, group=group)
        return None

    on_ranks(program, world_size)


def test_outsiders_are_warned():
    def program(rank):
        group = dist.new_group([0])
        if rank == 1:
            dist.all_reduce(torch.ones(1), group=group)

    with pytest.warns(
        UserWarning,
        match="Running all_reduce on global rank 1 which does not belong to the given group",
    ):
        on_ranks(program, 2)


def test_overlapping_groups_do_not_mix():
    def program(rank):
        rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        a, b, c = (
            torch.full((3,), rank + 1.0),
            torch.full((3,), rank + 1.0),
            torch.full((3,), rank + 1.0),
        )
        works = [
            dist.all_reduce(a, group=rows[rank // 2], async_op=True),
            dist.all_reduce(b, group=columns[rank % 2], async_op=True),
            dist.all_reduce(c, async_op=True),
        ]
        for work in reversed(works):
            work.wait()
        return [a[0].item(), b[0].item(), c[0].item()]

    assert on_ranks(program, 4) == [[3, 4, 10], [3, 6, 10], [7, 4, 10], [7, 6, 10]]


def test_unsorted_groups_keep_their_order():
    def program(rank):
        group = dist.new_group([2, 0], sort_ranks=False)
        return dist.get_rank(group)

    assert on_ranks(program, 3) == [1, -1, 0]


@pytest.mark.parametrize(
    ("ranks", "error", "words"),
    [
        (
            [0, 1, 2],
            ValueError,
            "world size should be less or equal to the world size set by init_process_group",
        ),
        ([0, 5], ValueError, r"Rank 5 is out of range\. Valid ranks are 0 to 1"),
        ([-1], ValueError, "Rank -1 is out of range"),
        ([0, 0], ValueError, "duplicate entries"),
        ([], ValueError, "at least one"),
    ],
)
def test_impossible_groups(ranks, error, words):
    def program(rank):
        with pytest.raises(error, match=words):
            dist.new_group(ranks)
        dist.barrier()

    on_ranks(program, 2)


def test_ranks_that_want_different_groups_are_told():
    def program(rank):
        dist.new_group([0, 1] if rank < 2 else [0, 2])

    with pytest.raises(dist.CollectiveMismatch, match="asks for ranks"):
        on_ranks(program, 3)
