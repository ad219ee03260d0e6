"""What errors say at each debug level, and barriers that name who is late."""

from __future__ import annotations

import os
import threading
from datetime import timedelta

import pytest

import minitorch as torch
import minitorch.distributed as dist

HERE = os.path.abspath(__file__)


@pytest.fixture
def level():
    before = dist.get_debug_level()
    yield dist.set_debug_level
    dist.set_debug_level(before)


def mismatch_text(calls):
    with pytest.raises(dist.CollectiveMismatch) as caught:
        dist.run_local(lambda rank: calls[rank](), len(calls), timeout=30)
    return str(caught.value)


def three():
    dist.all_reduce(torch.ones(3))


def four():
    dist.all_reduce(torch.ones(4))


@pytest.mark.parametrize("name", ["OFF", "INFO", "DETAIL"])
def test_call_sites_are_named_at_detail(level, name):
    level(dist.DebugLevel[name])
    text = mismatch_text([three, four])
    detail = name == "DETAIL"
    for rank, function in enumerate((three, four)):
        line = function.__code__.co_firstlineno + 1
        called = f"Rank {rank} called it at {HERE}:{line} ({function.__name__})"
        assert (called in text) == detail


def test_call_site_of_what_passed_unnoticed(level):
    level(dist.DebugLevel.DETAIL)

    def own(rank):
        def call():
            dist.broadcast(torch.ones(1), rank)
            dist.barrier()

        return call

    text = mismatch_text([own(0), own(1)])
    assert text.count(f"{HERE}:") >= 2
    assert "Rank 0 called it at" in text
    assert "Rank 1 called it at" in text
    assert "(call) < " in text  # and from where that was called


def test_call_site_of_a_late_collective_and_message(level):
    level(dist.DebugLevel.DETAIL)
    for wait in (lambda: dist.recv(torch.ones(1), 1), three):
        release = threading.Event()

        def program(rank, wait=wait, release=release):
            if rank == 1:
                release.wait(10)
                return
            try:
                wait()
            finally:
                release.set()

        with pytest.raises(
            dist.CollectiveTimeout, match=rf" Called at .*{os.path.basename(HERE)}:"
        ):
            dist.run_local(program, 2, timeout=0.2)


def test_results_do_not_depend_on_the_level(level):
    level(dist.DebugLevel.DETAIL)

    def program(rank):
        t = torch.ones(3)
        dist.all_reduce(t)
        dist.broadcast(t, 1)
        objects = [None, None]
        dist.all_gather_object(objects, rank)
        if rank == 0:
            dist.send(t, 1)
        else:
            dist.recv(t, 0)
        return t.tolist(), objects

    assert dist.run_local(program, 2) == [([2.0] * 3, [0, 1])] * 2


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("", "", "OFF"),
        ("detail", "", "DETAIL"),
        ("", "INFO", "INFO"),
        ("OFF", "DETAIL", "OFF"),
        (" info ", "", "INFO"),
    ],
)
def test_environment(level, monkeypatch, ours, theirs, expected):
    monkeypatch.setenv("MINITORCH_DISTRIBUTED_DEBUG", ours)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", theirs)
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel[expected]


def test_wrong_levels(level, monkeypatch):
    monkeypatch.setenv("MINITORCH_DISTRIBUTED_DEBUG", "LOUD")
    with pytest.raises(
        RuntimeError,
        match="value of MINITORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, not 'LOUD'",
    ):
        dist.set_debug_level_from_env()
    with pytest.raises(ValueError, match="7"):
        dist.set_debug_level(7)


# -- monitored_barrier -----------------------------------------------------------------------------


def late(world, absent, wait_all_ranks, timeout=1.0):
    """Errors by rank of a monitored barrier to which the ``absent`` do not come."""
    errors = {}
    over = threading.Event()

    def program(rank):
        dist.barrier()
        if rank in absent:
            over.wait(20)
            return
        try:
            dist.monitored_barrier(
                timeout=timedelta(seconds=timeout), wait_all_ranks=wait_all_ranks
            )
        except dist.CollectiveError as error:
            errors[rank] = error
            raise
        finally:
            over.set()

    with pytest.raises(dist.CollectiveTimeout):
        dist.run_local(program, world, timeout=60)
    return errors


@pytest.mark.parametrize(
    ("world", "absent", "wait_all_ranks", "start"),
    [
        (2, [1], False, "Rank 1 failed to pass monitoredBarrier in 1000 ms"),
        (4, [1, 3], False, "Rank 1 failed to pass monitoredBarrier in 1000 ms"),
        (4, [1, 3], True, "Ranks 1, 3 failed to pass monitoredBarrier in 1000 ms"),
        (3, [2], True, "Rank 2 failed to pass monitoredBarrier in 1000 ms"),
    ],
)
def test_rank_0_names_who_is_late(world, absent, wait_all_ranks, start):
    errors = late(world, absent, wait_all_ranks)
    assert str(errors.pop(0)).startswith(start)
    assert sorted(errors) == [r for r in range(1, world) if r not in absent]
    for rank, error in errors.items():
        assert isinstance(error, dist.CollectiveTimeout)
        assert str(error).startswith(
            f"Rank {rank} successfully reached monitoredBarrier, but received errors while "
            "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
        )
        assert f"waiting for rank{'s' if len(absent) > 1 else ''} {absent[0]}" in str(error)


def test_without_rank_0_the_others_wait_longer_and_say_so():
    errors = late(3, [0], False, timeout=0.1)
    assert sorted(errors) == [1, 2]
    assert all("waiting for rank 0" in str(error) for error in errors.values())


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_monitored_barrier_waits_for_everyone(world):
    arrived = []

    def program(rank):
        for step in range(3):
            if rank == step % world:
                threading.Event().wait(0.01)
            arrived.append((step, rank))
            dist.monitored_barrier(timeout=timedelta(seconds=20), wait_all_ranks=True)
            assert sum(s == step for s, _ in arrived) == world
            dist.barrier()

    dist.run_local(program, world)


def test_monitored_barrier_of_a_group():
    def program(rank):
        group = dist.new_group([1, 2])
        if rank:
            dist.monitored_barrier(group)
        with pytest.raises(TypeError, match="timeout"):
            dist.monitored_barrier(timeout=3)
        return rank

    assert dist.run_local(program, 3) == [0, 1, 2]


def test_a_rank_inside_something_else_is_named_with_it():
    received = threading.Event()

    def program(rank):
        if rank == 1:
            work = dist.irecv(torch.ones(1), 0, tag=5)
            received.set()
            work.wait()
        else:
            assert received.wait(20)
            dist.monitored_barrier(timeout=timedelta(seconds=1.5))

    with pytest.raises(dist.CollectiveMismatch) as caught:
        dist.run_local(program, 2, timeout=30)
    text = str(caught.value)
    assert "gather #0 (uint8, 0 elements, root 0) 'monitoredBarrier'" in text
    assert "recv with tag 5" in text
