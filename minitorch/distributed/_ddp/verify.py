"""Do all ranks hold the same model? Asked once, when DistributedDataParallel is constructed.

PyTorch compares counts on every rank, shapes on the differing rank only, and dtypes, names and
order not at all: two ranks that register ``a, b`` and ``b, a`` train with the two swapped. Here
every rank compares all of it and every rank raises.

Cost: one all-gather of 24 bytes per rank while all agree (a digest and a length); after a
disagreement one more all-gather with the descriptions themselves, so that the error can say what
differs.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minitorch.distributed.process_group import ProcessGroup
    from minitorch.tensor import Tensor

_DIGEST_BYTES = 16

Description = dict[str, Any]


def describe(
    parameters: Iterable[tuple[str, Tensor]],
    buffers: Iterable[tuple[str, Tensor]],
    options: Mapping[str, object],
) -> Description:
    """What ranks must agree on, as plain data.

    Parameters
    ----------
    parameters, buffers
        Named tensors in registration order. Buffers count only if they are to be broadcast.
    options
        Constructor arguments that decide which collectives are issued.
    """
    return {
        "params": [
            {
                "name": name,
                "sizes": list(tensor.shape),
                "strides": list(tensor.stride()),
                "dtype": str(tensor.dtype),
                "requires_grad": tensor.requires_grad,
            }
            for name, tensor in parameters
        ],
        "buffers": [
            {"name": name, "sizes": list(tensor.shape), "dtype": str(tensor.dtype)}
            for name, tensor in buffers
        ],
        "options": {key: repr(value) for key, value in options.items()},
    }


def verify_same_on_all_ranks(process_group: ProcessGroup, mine: Description) -> None:
    """Compare ``mine`` across the group; a collective.

    Raises
    ------
    RuntimeError
        On every rank, if any two ranks differ. The text names the first difference and the ranks.
    """
    payload = np.frombuffer(json.dumps(mine).encode(), dtype=np.uint8)
    length = np.array([payload.size], dtype=np.int64).view(np.uint8)
    digest = np.frombuffer(
        hashlib.blake2b(payload.tobytes(), digest_size=_DIGEST_BYTES).digest(), dtype=np.uint8
    )
    summaries = _all_gather(process_group, np.concatenate([digest, length]))
    if (summaries == summaries[0]).all():
        return

    longest = int(summaries[:, _DIGEST_BYTES:].copy().view(np.int64).max())
    padded = np.full(longest, ord(" "), dtype=np.uint8)  # JSON ignores the padding
    padded[: payload.size] = payload
    everyone = [json.loads(row.tobytes()) for row in _all_gather(process_group, padded)]
    this_rank = process_group.rank()
    for rank, theirs in enumerate(everyone):
        difference = _first_difference(everyone[0], theirs, rank, here=rank == this_rank)
        if difference:
            raise RuntimeError(difference)
    raise RuntimeError("DDP expects same model across all ranks, but their descriptions differ.")


def _all_gather(process_group: ProcessGroup, row: np.ndarray) -> np.ndarray:
    """Stack one equally long row of bytes per rank."""
    row = np.ascontiguousarray(row)
    table = np.empty((process_group.size(), row.size), dtype=np.uint8)
    process_group._group.all_gather(table, row, label="model fingerprint").wait()
    return table


def _first_difference(
    reference: Description, theirs: Description, rank: int, *, here: bool
) -> str | None:
    """What distinguishes ``rank`` from rank 0, in PyTorch's words where it has them."""
    where = "this process" if here else f"process {rank}"
    expected, actual = reference["params"], theirs["params"]
    if len(expected) != len(actual):
        return (
            f"DDP expects same model across all ranks, but Rank 0 has {len(expected)} params, "
            f"while rank {rank} has inconsistent {len(actual)} params."
            f"{_only_on_one(expected, actual, rank)}"
        )
    for i, (ours, other) in enumerate(zip(expected, actual, strict=True)):
        who = f"Rank {rank} has {other['name']!r} there, rank 0 has {ours['name']!r}."
        for what in ("sizes", "strides"):
            if ours[what] != other[what]:
                return (
                    f"[{rank}]: params[{i}] in {where} with {what} {other[what]} appears not to "
                    f"match {what} of the same param in process 0, which are {ours[what]}. {who}"
                )
        for what in ("dtype", "requires_grad"):
            if ours[what] != other[what]:
                return (
                    f"[{rank}]: params[{i}] in {where} with {what} {other[what]} appears not to "
                    f"match {what} of the same param in process 0, which is {ours[what]}. {who}"
                )
        if ours["name"] != other["name"]:
            return (
                f"DDP expects same model across all ranks, but params[{i}] is {other['name']!r} on "
                f"rank {rank} and {ours['name']!r} on rank 0. Register parameters in the same "
                "order and under the same names everywhere: they are matched by position."
            )
    if reference["buffers"] != theirs["buffers"]:
        return (
            "DDP expects same model across all ranks, but the buffers of rank 0 and "
            f"rank {rank} differ: {_buffer_difference(reference['buffers'], theirs['buffers'])}"
        )
    for option, value in reference["options"].items():
        if theirs["options"].get(option) != value:
            return (
                f"DistributedDataParallel was constructed with {option}={value} on rank 0 and "
                f"{option}={theirs['options'].get(option)} on rank {rank}; it must be the same "
                "on all ranks, because it decides which collectives they issue."
            )
    return None


def _only_on_one(expected: list[Description], actual: list[Description], rank: int) -> str:
    names_0 = [p["name"] for p in expected]
    names_r = [p["name"] for p in actual]
    parts = []
    if only := [n for n in names_0 if n not in names_r]:
        parts.append(f" Only on rank 0: {', '.join(only[:5])}.")
    if only := [n for n in names_r if n not in names_0]:
        parts.append(f" Only on rank {rank}: {', '.join(only[:5])}.")
    return "".join(parts)


def _buffer_difference(expected: list[Description], actual: list[Description]) -> str:
    if len(expected) != len(actual):
        return f"{len(expected)} against {len(actual)} of them."
    return next(
        f"{ours['name']!r} {ours['sizes']} {ours['dtype']} against "
        f"{other['name']!r} {other['sizes']} {other['dtype']}."
        for ours, other in zip(expected, actual, strict=True)
        if ours != other
    )
