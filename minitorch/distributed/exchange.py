"""``all_to_all``: every rank has something for every other.

Costs per rank, of W ranks and n bytes: n (W-1)/W bytes sent, in one step. Pieces may differ in
size: how much a pair of ranks exchanges is known to these two only, and compared before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minitorch.autograd.graph import bump_version
from minitorch.tensor import Tensor

from . import _tensors as wire
from .collectives import submit
from .process_group import ProcessGroup, member_group
from .work import Work


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send entry r of the input list to rank r; entry s of the output is what rank s sent here.

    The tensors may differ in size, as long as each output has the size of what is sent to it.
    """
    outputs = wire.check_tensor_list(output_tensor_list, "output_tensor_list")
    inputs = wire.check_tensor_list(input_tensor_list, "input_tensor_list")
    wire.check_same_dtype("all_to_all", *outputs, *inputs)
    pg = member_group(group, "all_to_all")
    if pg is None:
        return None
    for what, arrays in (("output tensor list", outputs), ("input tensor list", inputs)):
        if len(arrays) != pg.size():
            raise RuntimeError(
                f"all_to_all: Incorrect {what} size {len(arrays)}. It should be {pg.size()}, same "
                "as size of the process group."
            )
    for array in outputs:
        wire.check_writable(array, "output_tensor_list")
    for tensor in output_tensor_list:
        bump_version(tensor)
    incoming = [array.size for array in outputs]
    arrived = np.empty(sum(incoming), outputs[0].dtype)
    return _exchange(
        pg,
        arrived,
        incoming,
        np.concatenate([array.reshape(-1) for array in inputs]),
        [array.size for array in inputs],
        async_op,
        output_tensor_list,
        wire.scatter_into(output_tensor_list, np.split(arrived, np.cumsum(incoming)[:-1])),
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Split a tensor along dimension 0, send piece r to rank r, and join what arrives.

    Parameters
    ----------
    output_split_sizes, input_split_sizes : list of int, optional
        Rows per rank; by default dimension 0 is divided equally.
    """
    target = wire.check_tensor(output, "output")
    array = wire.check_tensor(input, "input")
    wire.check_same_dtype("all_to_all_single", target, array)
    pg = member_group(group, "all_to_all_single")
    if pg is None:
        return None
    incoming = _elements_per_rank(target, output_split_sizes, pg.size())
    outgoing = _elements_per_rank(array, input_split_sizes, pg.size())
    wire.check_writable(target, "output")
    bump_version(output)
    arrived = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
    given = np.ascontiguousarray(array)
    if np.may_share_memory(arrived, given):
        given = given.copy()
    finish = None if arrived is target else wire.copy_back(output, arrived)
    return _exchange(pg, arrived, incoming, given, outgoing, async_op, [output], finish)


def _elements_per_rank(array: np.ndarray, rows: list[int] | None, world_size: int) -> list[int]:
    total = array.shape[0] if array.ndim else 1
    if not rows:
        if total % world_size:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size ({total} rows, "
                f"{world_size} ranks)"
            )
        rows = [total // world_size] * world_size
    if len(rows) != world_size:
        raise RuntimeError(
            f"Number of tensor splits not equal to group size ({len(rows)} and {world_size})"
        )
    if sum(rows) != total or min(rows) < 0:
        raise RuntimeError(f"Split sizes doesn't match total dim 0 size ({list(rows)} and {total})")
    row = array.size // total if total else 0
    return [count * row for count in rows]


def _exchange(
    pg: ProcessGroup,
    arrived: np.ndarray,
    incoming: list[int],
    given: np.ndarray,
    outgoing: list[int],
    async_op: bool,
    result: Sequence[Tensor],
    finish: wire.Finish,
) -> Work | None:
    target, dtype = wire.moved(arrived)
    source, _ = wire.moved(given)
    # What crosses as bytes is counted in bytes.
    width = arrived.itemsize // target.itemsize
    return submit(
        pg,
        "all_to_all",
        target,
        source,
        out_counts=[count * width for count in incoming],
        in_counts=[count * width for count in outgoing],
        dtype=dtype,
        async_op=async_op,
        result=result,
        finish=finish,
    )
