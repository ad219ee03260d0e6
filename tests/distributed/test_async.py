"""Work, Future, continuations, and what autograd is told about tensors that a collective writes."""

from __future__ import annotations

from datetime import timedelta

import pytest

import minitorch as torch
import minitorch.distributed as dist
from minitorch.distributed.futures import Future, collect_all, wait_all


def on_ranks(fn, world_size, **kwargs):
    return dist.run_local(fn, world_size, timeout=30, **kwargs)


def test_work_waits_and_reports(world_size):
    def program(rank):
        t = torch.full((1000,), float(rank))
        work = dist.all_reduce(t, async_op=True)
        assert work.wait() is True
        assert work.wait(timedelta(seconds=1)) is True
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert work.result()[0] is t
        assert t[0].item() == sum(range(world_size))

    on_ranks(program, world_size)


def test_many_works_in_flight_are_waited_for_in_any_order(world_size):
    def program(rank):
        tensors = [torch.full((size,), float(rank + size)) for size in range(1, 30)]
        works = [dist.all_reduce(t, async_op=True) for t in tensors]
        gathered = [torch.zeros(2) for _ in range(world_size)]
        last = dist.all_gather(gathered, torch.full((2,), float(rank)), async_op=True)
        last.wait()
        for work in reversed(works):
            work.wait()
        for size, t in zip(range(1, 30), tensors, strict=True):
            assert t[-1].item() == sum(rank + size for rank in range(world_size))
        assert [row[0].item() for row in gathered] == [float(rank) for rank in range(world_size)]

    on_ranks(program, world_size)


def test_polling_delivers_staged_results():
    """A gather goes through a flat buffer: once is_completed says yes, the tensors must hold the
    result.
    """

    def program(rank):
        outputs = [torch.zeros(3) for _ in range(2)]
        work = dist.all_gather(outputs, torch.full((3,), rank + 1.0), async_op=True)
        while not work.is_completed():
            pass
        assert [output[0].item() for output in outputs] == [1.0, 2.0]

    on_ranks(program, 2)


def test_a_dropped_work_is_still_carried_out(world_size):
    def program(rank):
        t = torch.ones(5000)
        dist.all_reduce(t, async_op=True)
        return t

    # At the end of the rank whatever it started is done.
    results = on_ranks(program, world_size)
    assert [t[-1].item() for t in results] == [float(world_size)] * world_size


def test_continuations_run_in_the_waiting_thread_and_may_communicate(world_size):
    import threading

    def program(rank):
        here = threading.get_ident()

        def second(future):
            assert threading.get_ident() == here
            t = future.value()[0]
            return dist.all_reduce(t, async_op=True).get_future().wait()[0]

        works = [
            dist.all_reduce(torch.full((4,), float(n)), async_op=True).get_future().then(second)
            for n in range(3)
        ]
        halves = [future.then(lambda f: f.value() / 2) for future in works]
        return [half.wait()[0].item() for half in halves]

    expected = [n * world_size**2 / 2 for n in range(3)]
    assert on_ranks(program, world_size) == [expected] * world_size


def test_a_continuation_does_not_cross_what_others_launch_next(world_size):
    """Rank 0 runs the continuation before the next collective is launched, the others after."""

    def program(rank):
        first, second = torch.full((4,), 1.0), torch.full((4,), 10.0)
        work = dist.all_reduce(first, async_op=True)
        then = work.get_future().then(lambda f: dist.all_reduce(f.value()[0], async_op=True))
        while rank == 0 and not then.done():
            pass
        other = dist.all_reduce(second, async_op=True)
        then.wait().wait()
        other.wait()
        return first[0].item(), second[0].item()

    expected = (float(world_size**2), 10.0 * world_size)
    assert on_ranks(program, world_size) == [expected] * world_size


def test_waiting_for_the_work_runs_its_continuations():
    def program(rank):
        seen = []
        work = dist.all_reduce(torch.ones(1), async_op=True)
        future = work.get_future()
        future.then(lambda f: seen.append(f.value()[0].item()))
        future.add_done_callback(lambda f: seen.append("done"))
        work.wait()
        assert future.done()
        return seen

    assert on_ranks(program, 2) == [[2.0, "done"]] * 2


def test_future_follows_pytorch():
    future = Future()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    doubled = future.then(lambda f: 2 * f.value())
    assert not doubled.done()
    future.set_result(21)
    assert doubled.wait() == 42
    assert future.then(lambda f: f.value() + 1).value() == 22
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(1)
    failing = future.then(lambda f: 1 / 0)
    with pytest.raises(
        RuntimeError, match="Got the following error when running the callback: ZeroDivisionError"
    ):
        failing.wait()

    def give_up(_):
        raise dist.CollectiveTimeout("rank 3 is late")

    # One may catch a failed collective by its type, wherever it was launched.
    with pytest.raises(dist.CollectiveTimeout, match=r"^rank 3 is late$"):
        future.then(give_up).wait()
    broken = Future()
    broken.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        broken.wait()
    assert wait_all([future, doubled]) == [21, 42]
    assert collect_all([future]).wait() == [future]


def test_a_collective_moves_the_version_and_leaves_the_history(world_size):
    def program(rank):
        leaf = torch.ones(3, requires_grad=True)
        before = leaf._version
        dist.all_reduce(leaf)
        assert leaf.requires_grad
        assert leaf.is_leaf
        assert leaf._version > before

        x = torch.full((3,), 2.0, requires_grad=True)
        y = x * x
        dist.all_reduce(y)
        assert y.grad_fn is not None
        y.sum().backward()
        assert x.grad.tolist() == [4.0] * 3  # the derivative of what was recorded

        square = x.exp()
        dist.all_reduce(square, async_op=True).wait()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()

    on_ranks(program, world_size)
