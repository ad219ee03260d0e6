"""Nothing hangs, nothing is silently wrong: what run_local does when ranks fail or disagree."""

from __future__ import annotations

import signal
import sys
import threading
import time
from datetime import timedelta

import pytest

import minitorch as torch
import minitorch.distributed as dist
from minitorch.distributed._rank_state import current


class Broken(Exception):
    """What the tests' ranks raise."""


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_the_failing_rank_is_shown_and_nobody_else(world_size):
    guilty = world_size - 1

    def program(rank):
        if rank == guilty:
            raise Broken("on purpose")
        dist.all_reduce(torch.ones(3))

    with pytest.raises(Broken, match="on purpose") as caught:
        dist.run_local(program, world_size, timeout=30)
    assert any(note.startswith(f"rank {guilty}:") for note in caught.value.__notes__)
    # And it can be used again.
    assert dist.run_local(lambda rank: rank, 2) == [0, 1]


def test_ranks_inside_other_calls_raise_too():
    reasons = []

    def program(rank):
        if rank == 0:
            raise Broken
        try:
            work = dist.all_reduce(torch.ones(3), async_op=True)
            work.get_future().then(lambda f: f.value()).wait()
        except dist.CollectiveError as error:
            reasons.append(str(error))
            with pytest.raises(dist.CollectiveError):
                dist.barrier()  # a failed world stays failed
            raise

    with pytest.raises(Broken):
        dist.run_local(program, 3, timeout=30)
    assert len(reasons) == 2
    assert all("rank 0" in reason and "Broken" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (
            (lambda: dist.all_reduce(torch.ones(3)), lambda: dist.all_reduce(torch.ones(4))),
            "elements",
        ),
        (
            (
                lambda: dist.all_reduce(torch.ones(3)),
                lambda: dist.all_reduce(torch.ones(3).double()),
            ),
            "dtype",
        ),
        (
            (
                lambda: dist.all_reduce(torch.ones(3)),
                lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.MAX),
            ),
            "max",
        ),
        (
            (lambda: dist.all_reduce(torch.ones(3)), lambda: dist.broadcast(torch.ones(3), 0)),
            "broadcast",
        ),
        (
            (lambda: dist.broadcast(torch.ones(3), 1), lambda: dist.broadcast(torch.ones(3), 0)),
            "root",
        ),
        ((lambda: dist.barrier(), lambda: dist.all_reduce(torch.ones(3))), "barrier"),
    ],
    ids=["size", "dtype", "operation", "collective", "root", "barrier"],
)
def test_disagreement_is_told_to_all(calls, words):
    errors = {}

    def program(rank):
        try:
            calls[rank]()
            dist.barrier()
        except dist.CollectiveError as error:
            errors[rank] = error
            raise

    with pytest.raises(dist.CollectiveMismatch, match=words):
        dist.run_local(program, 2, timeout=10)
    assert sorted(errors) == [0, 1]


def test_a_late_rank_is_named():
    release = threading.Event()

    def program(rank):
        if rank == 2:
            release.wait(10)
            return
        try:
            dist.all_reduce(torch.ones(3))
        finally:
            release.set()

    with pytest.raises(dist.CollectiveTimeout, match=r"rank 2"):
        dist.run_local(program, 3, timeout=timedelta(seconds=1))


def test_a_rank_that_leaves_early_is_named():
    def program(rank):
        if rank == 1:
            return
        dist.all_reduce(torch.ones(3))

    with pytest.raises(dist.CollectiveError, match=r"rank 1"):
        dist.run_local(program, 3, timeout=30)


def test_leaving_after_the_last_collective_is_fine(world_size):
    def program(rank):
        for _ in range(20):
            dist.all_reduce(torch.ones(100))
        if rank == 0:
            dist.destroy_process_group()
        return rank

    assert dist.run_local(program, world_size, timeout=30) == list(range(world_size))


def test_a_computing_rank_is_stopped_after_a_failure():
    def program(rank):
        if rank == 0:
            raise Broken
        while True:
            time.sleep(0.01)

    with pytest.raises(Broken):
        dist.run_local(program, 2, timeout=30)


def test_sys_exit_on_a_rank():
    assert dist.run_local(lambda rank: sys.exit(0), 2) == [None, None]
    with pytest.raises(SystemExit) as caught:
        dist.run_local(lambda rank: sys.exit(3) if rank == 1 else dist.barrier(), 2, timeout=30)
    assert caught.value.code == 3


def test_ctrl_c_ends_waiting_and_computing_ranks():
    def program(rank):
        if rank == 0:
            dist.recv(torch.ones(1), 1)
        elif rank == 1:
            while True:
                time.sleep(0.01)
        else:
            signal.raise_signal(signal.SIGINT)  # handled by the main thread, as from a keyboard
            dist.barrier()

    with pytest.raises(KeyboardInterrupt):
        dist.run_local(program, 3, timeout=30)
    assert dist.run_local(lambda rank: rank, 2) == [0, 1]


def test_runs_nest_and_run_side_by_side():
    def inner(rank, base):
        t = torch.full((1,), float(base + rank))
        dist.all_reduce(t)
        return t.item()

    def outer(rank):
        inside = dist.run_local(inner, 2, args=(10 * rank,))
        assert dist.get_rank() == rank
        dist.barrier()
        return inside

    assert dist.run_local(outer, 2, timeout=30) == [[1.0, 1.0], [21.0, 21.0]]


def test_ranks_have_their_own_modes_and_leave_no_trace():
    def program(rank):
        torch.manual_seed(rank)
        if rank == 0:
            with torch.no_grad():
                dist.barrier()
                dist.barrier()
        else:
            dist.barrier()
            enabled = torch.is_grad_enabled()
            dist.barrier()
            return enabled
        return torch.rand(3).tolist()

    results = dist.run_local(program, 2, timeout=30)
    assert results[1] is True
    assert current().default_group is None


def test_arguments_of_run_local():
    assert dist.run_local(lambda rank, a, b=0: (rank, a, b), 2, args=(5,), kwargs={"b": 6}) == [
        (0, 5, 6),
        (1, 5, 6),
    ]
    for bad in (0, -1, 1.5, "2"):
        with pytest.raises(ValueError, match="world_size must be a positive int"):
            dist.run_local(lambda rank: None, bad)
    with pytest.raises(ValueError, match="timeout must be positive"):
        dist.run_local(lambda rank: None, 2, timeout=0)
    with pytest.raises(ValueError, match="cannot read"):
        dist.run_local(lambda rank: None, 2, link="slow")


def test_a_shaped_link_changes_no_result():
    def program(rank):
        t = torch.arange(1000.0) + rank
        dist.all_reduce(t)
        return t.numpy().tobytes()

    plain = dist.run_local(program, 3, timeout=30)
    shaped = dist.run_local(program, 3, link="100MB/s,200us", timeout=30)
    assert plain == shaped
