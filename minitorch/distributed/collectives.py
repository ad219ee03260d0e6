"""The collectives in which every rank both gives and gets, in PyTorch's words.

Costs, per rank, of W ranks and n bytes of result (the core's ring):

* all_reduce: 2 n (W-1)/W bytes sent in 2 (W-1) steps; the same bits on every rank
* reduce_scatter: n (W-1) bytes in W-1 steps; a reduced block of n bytes each
* all_gather: n (W-1)/W bytes in W-1 steps; every rank's block, in rank order
* barrier: headers only; everybody has arrived

Blocking calls run in the caller's thread when nothing is queued; with ``async_op=True`` a
:class:`Work` is returned and the communication thread takes over. Next rooms: ``rooted.py``
(broadcast, reduce, gather, scatter), ``exchange.py`` (all_to_all).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from minitorch.autograd.graph import bump_version
from minitorch.tensor import Tensor

from . import _tensors as wire
from ._debug import setting as debug
from ._debug import with_origin
from ._native import CollectiveMismatch, CollectiveTimeout
from ._rank_state import _current
from .process_group import ProcessGroup, ReduceOp, member_group
from .work import Work, _seconds

_SUM = ReduceOp.SUM
_FLOAT32 = np.dtype("float32")


def submit(
    pg: ProcessGroup,
    operation: str,
    *args: Any,
    async_op: bool,
    result: Sequence[Tensor],
    finish: wire.Finish = None,
    **options: Any,
) -> Work | None:
    """Hand an operation to the core: as a :class:`Work`, or at once in the calling thread."""
    parent = _current.state.parent
    if parent is not None:
        options["parent"] = parent
    if debug.detail:
        options["label"] = with_origin(options.get("label", ""))
    if async_op:
        return Work(getattr(pg._group, operation)(*args, **options), result, finish)
    getattr(pg._group, operation + "_now")(*args, **options)
    if finish is not None:
        finish()
    return None


def all_reduce(
    tensor: Tensor,
    op: ReduceOp = _SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    *,
    algorithm: str = "auto",
) -> Work | None:
    """Combine a tensor over all ranks, in place; every rank ends with the same bits.

    Parameters
    ----------
    tensor : Tensor
        Any shape; same element count and dtype on all ranks. A floating point dtype for
        ``ReduceOp.AVG``.
    op : ReduceOp
        ``SUM``, ``AVG``, ``PRODUCT``, ``MIN`` or ``MAX``.
    group : ProcessGroup, optional
        By default the default group.
    async_op : bool
        Return a :class:`Work` at once.
    algorithm : str
        How (ours, not PyTorch's): ``"ring"``, ``"naive"``, ``"tree"``, ``"halving_doubling"``,
        ``"recursive_doubling"``; ``"auto"`` takes the ring, and for a few KiB one with fewer steps.
        Costs of each: ``csrc/collectives``.

    Raises
    ------
    CollectiveError
        If a rank failed, left, came too late, or called something else.
    ValueError
        If there is no such algorithm.

    Examples
    --------
    >>> import minitorch as torch, minitorch.distributed as dist
    >>> def program(rank):
    ...     t = torch.tensor([1.0, rank])
    ...     dist.all_reduce(t)
    ...     return t.tolist()
    >>> dist.run_local(program, 3)
    [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    """
    # The short way for the usual small call; everything else takes the long way below.
    if (
        group is None
        and op is _SUM
        and not async_op
        and algorithm == "auto"
        and isinstance(tensor, Tensor)
    ):
        state = _current.state
        pg = state.default_group
        array = tensor._array
        if (
            pg is not None
            and array.dtype is _FLOAT32
            and array.flags.carray
            and state.parent is None
            and not debug.detail
        ):
            pg._reduce_in_place(array)
            bump_version(tensor)
            return None
    array = wire.check_tensor(tensor, "tensor")
    pg = member_group(group, "all_reduce")
    if pg is None:
        return None
    reduction = wire.Reduction(op, array, pg.size(), "all_reduce")
    dressed, dtype, finish = reduction.in_place(tensor, "tensor")
    return submit(
        pg,
        "all_reduce",
        dressed,
        op=reduction.op,
        scale=reduction.scale,
        dtype=dtype,
        algorithm=algorithm,
        async_op=async_op,
        result=[tensor],
        finish=finish,
    )


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Collect every rank's tensor on every rank.

    Parameters
    ----------
    tensor_list : list of Tensor
        One output per rank of the group, each with the input's size and dtype.
    tensor : Tensor
        This rank's contribution.
    """
    outputs = wire.check_tensor_list(tensor_list, "tensor_list")
    array = wire.check_tensor(tensor, "tensor")
    wire.check_same_dtype("all_gather", array, *outputs)
    pg = member_group(group, "all_gather")
    if pg is None:
        return None
    wire.check_lengths("all_gather", "output tensor list", outputs, pg.size(), array.size)
    for output in outputs:
        wire.check_writable(output, "tensor_list")
    for output_tensor in tensor_list:
        bump_version(output_tensor)
    rows = np.empty((pg.size(), array.size), array.dtype)
    given, dtype = wire.sent(array)
    return submit(
        pg,
        "all_gather",
        wire.moved(rows)[0],
        given,
        dtype=dtype,
        async_op=async_op,
        result=tensor_list,
        finish=wire.scatter_into(tensor_list, rows),
    )


def all_gather_single(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Collect every rank's tensor in one output tensor of W times the size, in rank order."""
    output = wire.check_tensor(output_tensor, "output_tensor")
    array = wire.check_tensor(input_tensor, "input_tensor")
    wire.check_same_dtype("all_gather_into_tensor", output, array)
    pg = member_group(group, "all_gather_into_tensor")
    if pg is None:
        return None
    if output.size != pg.size() * array.size:
        raise RuntimeError(
            "all_gather_into_tensor: output tensor size must be equal to world_size times input "
            "tensor size "
            f"(expected {pg.size()} x {array.size} elements, got {output.size})"
        )
    given, dtype = wire.sent(array)
    target, _, finish = wire.received(output_tensor, "output_tensor")
    if np.may_share_memory(target, given):
        given = given.copy()
    return submit(
        pg,
        "all_gather",
        target,
        given,
        dtype=dtype,
        async_op=async_op,
        result=[output_tensor],
        finish=finish,
    )


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = _SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors over all ranks; rank r gets entry r of the result."""
    target = wire.check_tensor(output, "output")
    inputs = wire.check_tensor_list(input_list, "input_list")
    wire.check_same_dtype("reduce_scatter", target, *inputs)
    pg = member_group(group, "reduce_scatter")
    if pg is None:
        return None
    if len(inputs) != pg.size():
        raise RuntimeError(
            f"reduce_scatter: invalid input tensor list size, must be world size ({pg.size()}), "
            f"got {len(inputs)}"
        )
    wire.check_lengths("reduce_scatter", "input tensor list", inputs, pg.size(), target.size)
    return _reduce_scatter(pg, output, wire.stacked(inputs), op, async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = _SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine a tensor of W times the output's size over all ranks; rank r gets block r."""
    target = wire.check_tensor(output, "output")
    array = wire.check_tensor(input, "input")
    wire.check_same_dtype("reduce_scatter_tensor", target, array)
    pg = member_group(group, "reduce_scatter_tensor")
    if pg is None:
        return None
    if array.size != pg.size() * target.size:
        raise RuntimeError(
            "reduce_scatter_tensor: input tensor must be the same size as output size times "
            "world size "
            f"(expected {pg.size()} x {target.size} elements, got {array.size})"
        )
    given = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if np.may_share_memory(given, target):
        given = given.copy()
    return _reduce_scatter(pg, output, given, op, async_op)


def _reduce_scatter(
    pg: ProcessGroup, output: Tensor, given: np.ndarray, op: ReduceOp, async_op: bool
) -> Work | None:
    reduction = wire.Reduction(op, given, pg.size(), "reduce_scatter")
    target, dtype, finish = reduction.in_place(output, "output")
    dressed, _ = reduction.dress(given)
    return submit(
        pg,
        "reduce_scatter",
        target,
        dressed,
        op=reduction.op,
        scale=reduction.scale,
        dtype=dtype,
        async_op=async_op,
        result=[output],
        finish=finish,
    )


# The names PyTorch had before 2.13, and which most scripts use.
all_gather_into_tensor = all_gather_single
reduce_scatter_tensor = reduce_scatter_single


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Return when every rank of the group has called it.

    Parameters
    ----------
    device_ids : list of int, optional
        Accepted for PyTorch's sake; there are no devices to choose from.
    timeout : datetime.timedelta, optional
        By default the group's.
    """
    pg = member_group(group, "barrier")
    if pg is None:
        return None
    if timeout is None or async_op:
        return submit(pg, "barrier", async_op=async_op, result=[])
    Work(pg._group.barrier()).wait(timeout)
    return None


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """A barrier whose error says which ranks did not come.

    All ranks report to the group's rank 0, which lets them go on once the last has come. Cost: W-1
    messages of a header to it and as many from it.

    Parameters
    ----------
    timeout : datetime.timedelta, optional
        How long rank 0 waits for the others; by default the group's. They wait W times as long for
        its answer, since it may be late itself.
    wait_all_ranks : bool
        Name all ranks that did not come, not just the first of them.

    Raises
    ------
    CollectiveTimeout
        On rank 0 "Rank 1 failed to pass monitoredBarrier in 1000 ms", on others that they reached
        it.
    CollectiveMismatch
        If a rank waited in something else for a rank that is here.
    """
    pg = member_group(group, "monitored_barrier")
    if pg is None:
        return
    limit = pg.timeout if timeout is None else timeout
    seconds = _seconds(limit)
    label = with_origin("monitoredBarrier") if debug.detail else "monitoredBarrier"
    nothing, leader = np.empty(0, np.uint8), pg.rank() == 0
    arrivals = pg._group.gather(nothing if leader else None, nothing, 0, label=label)
    release = pg._group.broadcast(nothing, 0, label=label) if not leader else None
    try:
        if release is None:
            arrivals.wait(seconds)
            pg._group.broadcast(nothing, 0, label=label).wait(seconds)
        else:
            release.wait(seconds * pg.size())
    except (CollectiveTimeout, CollectiveMismatch) as error:
        who = _who_is_late(pg, arrivals.missing, seconds, wait_all_ranks)
        raise type(error)(who + str(error)) from None


def _who_is_late(
    pg: ProcessGroup, missing: Sequence[int], seconds: float, wait_all_ranks: bool
) -> str:
    if not missing:
        return (
            f"Rank {pg._global(pg.rank())} successfully reached monitoredBarrier, but received "
            "errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty "
            "rank. "
        )
    late = list(missing) if wait_all_ranks else list(missing)[:1]
    names = ("Ranks " if len(late) > 1 else "Rank ") + ", ".join(map(str, late))
    return f"{names} failed to pass monitoredBarrier in {seconds * 1000:.0f} ms. "
