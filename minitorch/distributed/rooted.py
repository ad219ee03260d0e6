"""The collectives with a root: broadcast, reduce, gather, scatter.

``src`` and ``dst`` are *global* ranks, also in a subgroup, as in PyTorch; ``group_src`` and
``group_dst`` count within the group. Costs of W ranks and n bytes per rank: broadcast and reduce
move n bytes over every edge of a tree or chain (n (W-1) in all); gather and scatter move n (W-1)
bytes out of or into the root.
"""

from __future__ import annotations

import numpy as np

from minitorch.autograd.graph import bump_version
from minitorch.tensor import Tensor

from . import _tensors as wire
from .collectives import submit
from .process_group import ProcessGroup, ReduceOp, member_group, root_of
from .work import Work


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give every rank the source's values.

    Parameters
    ----------
    tensor : Tensor
        Read on the source, written on all others; same element count and dtype on all ranks.
    src : int
        Global rank of the source.
    group_src : int, optional
        Instead of ``src``: the source's rank in the group.

    Raises
    ------
    RuntimeError, ValueError
        If the source is not a rank of the group.
    CollectiveError
        If a rank failed, left, came too late, or called something else.
    """
    array = wire.check_tensor(tensor, "tensor")
    pg = member_group(group, "broadcast")
    if pg is None:
        return None
    root = root_of(pg, "broadcast", src, group_src, None)
    if root == pg.rank():
        buffer, dtype = wire.sent(array)
        finish = None
    else:
        buffer, dtype, finish = wire.received(tensor, "tensor")
    return submit(
        pg,
        "broadcast",
        buffer,
        root,
        dtype=dtype,
        async_op=async_op,
        result=[tensor],
        finish=finish,
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine a tensor over all ranks; only the destination's is defined afterwards.

    The tensors of the other ranks keep their values (PyTorch's may hold intermediate sums).
    """
    array = wire.check_tensor(tensor, "tensor")
    pg = member_group(group, "reduce")
    if pg is None:
        return None
    root = root_of(pg, "reduce", dst, group_dst, None)
    reduction = wire.Reduction(op, array, pg.size(), "reduce")
    if root == pg.rank():
        buffer, dtype, finish = reduction.in_place(tensor, "tensor")
    else:
        buffer, dtype = reduction.dress(np.ascontiguousarray(array))
        finish = None
    return submit(
        pg,
        "reduce",
        buffer,
        root,
        op=reduction.op,
        scale=reduction.scale,
        dtype=dtype,
        async_op=async_op,
        result=[tensor],
        finish=finish,
    )


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Collect every rank's tensor on one.

    Parameters
    ----------
    tensor : Tensor
        This rank's contribution.
    gather_list : list of Tensor, optional
        On the destination: one output per rank. Elsewhere ``None``.
    dst : int, optional
        Global rank of the destination, by default 0.
    """
    array = wire.check_tensor(tensor, "tensor")
    outputs = wire.check_tensor_list(gather_list, "gather_list") if gather_list else []
    wire.check_same_dtype("gather", array, *outputs)
    pg = member_group(group, "gather")
    if pg is None:
        return None
    root = root_of(pg, "gather", dst, group_dst, 0)
    given, dtype = wire.sent(array)
    if root != pg.rank():
        if gather_list:
            raise ValueError(
                "Argument ``gather_list`` must NOT be specified on non-destination ranks."
            )
        return submit(pg, "gather", None, given, root, dtype=dtype, async_op=async_op, result=[])
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    wire.check_lengths("gather", "output list", outputs, pg.size(), array.size)
    for output, output_tensor in zip(outputs, gather_list, strict=True):
        wire.check_writable(output, "gather_list")
        bump_version(output_tensor)
    rows = np.empty((pg.size(), array.size), array.dtype)
    return submit(
        pg,
        "gather",
        wire.moved(rows)[0],
        given,
        root,
        dtype=dtype,
        async_op=async_op,
        result=gather_list,
        finish=wire.scatter_into(gather_list, rows),
    )


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Deal a list of tensors out, one to each rank.

    Parameters
    ----------
    tensor : Tensor
        Receives this rank's entry.
    scatter_list : list of Tensor, optional
        On the source: one input per rank. Elsewhere ``None``.
    src : int, optional
        Global rank of the source, by default 0.
    """
    array = wire.check_tensor(tensor, "tensor")
    inputs = wire.check_tensor_list(scatter_list, "scatter_list") if scatter_list else []
    wire.check_same_dtype("scatter", array, *inputs)
    pg = member_group(group, "scatter")
    if pg is None:
        return None
    root = root_of(pg, "scatter", src, group_src, 0)
    rows = None
    if root != pg.rank():
        if scatter_list:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    else:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        wire.check_lengths("scatter", "input list", inputs, pg.size(), array.size)
        rows = wire.moved(wire.stacked(inputs))[0]
    buffer, dtype, finish = wire.received(tensor, "tensor")
    return submit(
        pg,
        "scatter",
        buffer,
        rows,
        root,
        dtype=dtype,
        async_op=async_op,
        result=[tensor],
        finish=finish,
    )
