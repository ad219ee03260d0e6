"""Ranks that do not run the same collectives are told so, all of them, and in what they differ.

What the core finds, and how, is tested in ``csrc/tests/test_disputes.cpp`` and
``test_failure.cpp``; here, that it holds through the package's functions.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

import minitorch as torch
import minitorch.distributed as dist


def disagree(calls, match):
    """Rank r runs ``calls[r]`` and then a barrier; all ranks must raise a mismatch."""
    errors = {}

    def program(rank):
        try:
            calls[rank]()
            dist.barrier()
        except dist.CollectiveMismatch as error:
            errors[rank] = str(error)
            raise

    with pytest.raises(dist.CollectiveMismatch, match=match):
        dist.run_local(program, len(calls), timeout=20)
    assert sorted(errors) == list(range(len(calls)))
    for text in errors.values():
        assert "Detected mismatch between collectives on ranks. Rank " in text
        assert " is running collective: " in text
    return errors


def ones(n):
    return torch.ones(n)


def lists(n, world=2):
    return [torch.ones(n) for _ in range(world)]


@pytest.mark.parametrize("roots", [(0, 1), (1, 0), (0, 1, 2), (0, 0, 1), (2, 0, 0), (1, 1, 0)])
@pytest.mark.parametrize("operation", ["broadcast", "reduce", "gather", "scatter"])
def test_roots(operation, roots):
    # Small ones go down trees, large ones down chains.
    n, world = (3 if operation in ("broadcast", "gather") else 5000), len(roots)

    def call(rank):
        root = roots[rank]
        if operation in ("broadcast", "reduce"):
            return lambda: getattr(dist, operation)(ones(n), root)
        parts = lists(n, world) if rank == root else None
        return lambda: getattr(dist, operation)(ones(n), parts, root)

    disagree([call(r) for r in range(world)], r"They differ in: root\.")


CALLS = {
    "sizes of all_gather": (
        lambda: dist.all_gather(lists(3), ones(3)),
        lambda: dist.all_gather(lists(4), ones(4)),
        "number of elements",
    ),
    "sizes of a large all_gather": (
        lambda: dist.all_gather(lists(9000), ones(9000)),
        lambda: dist.all_gather(lists(4), ones(4)),
        "number of elements",
    ),
    "sizes of reduce_scatter": (
        lambda: dist.reduce_scatter(ones(3), lists(3)),
        lambda: dist.reduce_scatter(ones(4), lists(4)),
        "number of elements",
    ),
    "sizes of broadcast": (
        lambda: dist.broadcast(ones(3), 0),
        lambda: dist.broadcast(ones(4), 0),
        "number of elements",
    ),
    "an empty tensor": (
        lambda: dist.all_reduce(ones(0)),
        lambda: dist.all_reduce(ones(1)),
        "number of elements",
    ),
    "parts of all_to_all": (
        lambda: dist.all_to_all_single(ones(4), ones(4), [1, 3], [1, 3]),
        lambda: dist.all_to_all_single(ones(4), ones(4), [2, 2], [2, 2]),
        "number of elements",
    ),
    "dtypes of all_gather": (
        lambda: dist.all_gather(lists(3), ones(3)),
        lambda: dist.all_gather([t.double() for t in lists(3)], ones(3).double()),
        "dtype",
    ),
    "dtypes of equal width": (
        lambda: dist.all_reduce(ones(3)),
        lambda: dist.all_reduce(ones(3).int()),
        "dtype",
    ),
    "reductions of reduce_scatter": (
        lambda: dist.reduce_scatter(ones(3), lists(3)),
        lambda: dist.reduce_scatter(ones(3), lists(3), dist.ReduceOp.MIN),
        "reduction",
    ),
    "gather and scatter": (
        lambda: dist.gather(ones(3), lists(3), 0),
        lambda: dist.scatter(ones(3), None, 0),
        "operation",
    ),
    "objects and tensors": (
        lambda: dist.broadcast_object_list([1], 0),
        lambda: dist.all_reduce(ones(3)),
        "operation",
    ),
    "one call too many": (
        lambda: None,
        lambda: dist.all_reduce(ones(3)),
        "operation",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_sizes_dtypes_and_operations(name):
    first, second, what = CALLS[name]
    disagree([first, second], what)


@pytest.mark.parametrize(
    ("sent", "wanted", "what"),
    [(ones(4), ones(3), "number of elements"), (ones(3), ones(3).int(), "dtype")],
)
def test_send_and_recv(sent, wanted, what):
    kept = wanted.tolist()
    errors = disagree(
        [lambda: dist.send(sent, 1, tag=7), lambda: dist.recv(wanted, 0, tag=7)], what
    )
    assert "send with tag 7" in errors[1]
    assert wanted.tolist() == kept  # nothing was written


@pytest.mark.parametrize("world", [2, 3])
def test_groups_in_another_order(world):
    """Nobody's calls are wrong by themselves: the ranks wait for each other until the deadline."""
    errors = {}

    def program(rank):
        first, second = (dist.new_group(timeout=timedelta(seconds=2)) for _ in range(2))
        order = (first, second) if rank == 0 else (second, first)
        try:
            for group in order:
                dist.all_reduce(ones(3), group=group)
        except dist.CollectiveMismatch as error:
            errors[rank] = str(error)
            raise

    with pytest.raises(dist.CollectiveMismatch, match="They have waited for each other"):
        dist.run_local(program, world, timeout=30)
    assert sorted(errors) == list(range(world))


def test_a_difference_that_nobody_could_see_is_named_at_the_next_call():
    def program(rank):
        dist.broadcast(ones(2), rank)  # both send, nobody receives
        work = dist.all_reduce(ones(2), async_op=True)
        work.wait()

    with pytest.raises(dist.CollectiveMismatch) as caught:
        dist.run_local(program, 2, timeout=30)
    assert "broadcast #0 (float32, 2 elements, root 0) but Rank 1" in str(caught.value)


def test_header_is_still_32_bytes_per_pair():
    def program(rank):
        dist.reset_meter()
        dist.broadcast(ones(2), 0)
        dist.barrier()
        return sum(row["header_bytes"] for row in dist.meter().values())

    assert dist.run_local(program, 2) == [64, 32]
