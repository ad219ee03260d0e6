"""Are the replicas still the same? ``DistributedDataParallel.check_consistency``.

What makes replicas drift apart without an error: gradients that were not averaged (``.module``,
``autograd.grad``, a parameter unfrozen after wrapping), a step that one rank skipped, weights
loaded on one rank only.

Cost: the model's bytes once through a hash; one all-gather of 24 bytes while all agree, else one
more of 16 bytes per tensor.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minitorch.tensor import Tensor

    from ..process_group import ProcessGroup

_DIGEST_BYTES = 16


def require_consistency(process_group: ProcessGroup, tensors: Sequence[tuple[str, Tensor]]) -> None:
    """Compare named tensors over the group, bit by bit; a collective.

    Raises
    ------
    RuntimeError
        On every rank; names the first tensor that differs, and which ranks agree with each other.
    """
    digests = np.stack([_digest(name, tensor) for name, tensor in tensors])
    whole = np.frombuffer(_hash(digests.tobytes()), np.uint8)
    count = np.array([len(tensors)], np.int64).view(np.uint8)
    summary = _all_gather(process_group, np.concatenate([whole, count]))
    if (summary == summary[0]).all():
        return
    counts = summary[:, _DIGEST_BYTES:].copy().view(np.int64).ravel().tolist()
    if len(set(counts)) > 1:
        raise RuntimeError(
            f"check_consistency: the ranks have different numbers of tensors, {counts}. The "
            "modules must have the same parameters and buffers on every rank."
        )
    table = _all_gather(process_group, digests.ravel()).reshape(len(counts), -1, _DIGEST_BYTES)
    differs = (table != table[0]).any(axis=(0, 2))
    first = int(differs.argmax())
    groups: dict[bytes, list[int]] = defaultdict(list)
    for rank, row in enumerate(table[:, first]):
        groups[row.tobytes()].append(rank)
    others = int(differs.sum()) - 1
    name = tensors[first][0]
    raise RuntimeError(
        f"check_consistency: {name} is not the same on all ranks: it has "
        f"{len(groups)} values, "
        + " against ".join(_ranks(members) for members in groups.values())
        + (f". So are {others} more of {len(tensors)} tensors. " if others else ". ")
        + "If it is a buffer, that is normal between forwards (they are broadcast before each "
        "one): pass buffers=False. If it is a parameter, some step used gradients that were not "
        "averaged, or state was loaded on some ranks only."
    )


def _ranks(members: list[int]) -> str:
    return ("ranks " if len(members) > 1 else "rank ") + ", ".join(map(str, members))


def _digest(name: str, tensor: Tensor) -> np.ndarray:
    array = np.ascontiguousarray(tensor.detach()._array)
    header = f"{name} {array.dtype} {array.shape} {tensor.requires_grad}".encode()
    return np.frombuffer(_hash(header, array.reshape(-1).view(np.uint8)), np.uint8)


def _hash(*parts: object) -> bytes:
    total = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        total.update(part)  # type: ignore[arg-type]
    return total.digest()


def _all_gather(process_group: ProcessGroup, row: np.ndarray) -> np.ndarray:
    table = np.empty((process_group.size(), row.size), np.uint8)
    row = np.ascontiguousarray(row)
    process_group._group.all_gather(table, row, label="consistency check").wait()
    return table
