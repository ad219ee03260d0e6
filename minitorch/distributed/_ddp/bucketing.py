"""From bucket caps and parameters to buckets; the rule itself is ``csrc/reducer/buckets.hpp``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._native import core

if TYPE_CHECKING:
    from minitorch.tensor import Tensor

MIB = 2**20
DEFAULT_BUCKET_CAP_MB = 25
# The first bucket of an unset cap is small: the sooner something is on the wire, the more can be
# hidden.
DEFAULT_FIRST_BUCKET_MB = 1

_NO_LIMIT = 2**63 - 1


def bucket_limits(cap_mb: float | None, cap_mb_list: Sequence[float] | None) -> list[int]:
    """Return the sizes in bytes at which buckets close; the last one repeats.

    Parameters
    ----------
    cap_mb
        One cap for all buckets; None: 25 MiB, and 1 MiB for the first bucket.
    cap_mb_list
        A cap for each bucket; takes precedence.

    Raises
    ------
    TypeError, ValueError
        If a cap is not a number, or negative or nan.
    """
    if cap_mb_list is not None and not isinstance(cap_mb_list, (Sequence, np.ndarray)):
        raise TypeError(
            "bucket_cap_mb_list must be a list of numbers (MiB), got "
            f"{type(cap_mb_list).__name__}; for one cap pass bucket_cap_mb"
        )
    if listed := list(() if cap_mb_list is None else cap_mb_list):
        name, caps = "bucket_cap_mb_list", listed
    elif cap_mb is None:
        return [DEFAULT_FIRST_BUCKET_MB * MIB, DEFAULT_BUCKET_CAP_MB * MIB]
    else:
        name, caps = "bucket_cap_mb", [cap_mb]
    for cap in caps:
        if not isinstance(cap, (int, float, np.number)):
            raise TypeError(f"{name}: a cap must be a number (MiB), got {cap!r}")
        if not cap >= 0:
            raise ValueError(f"{name}: a cap must not be negative or nan, got {cap}")
    return [int(min(cap * MIB, _NO_LIMIT)) for cap in caps]


def first_assignment(
    parameters: Sequence[Tensor],
    limits: Sequence[int],
    *,
    bounded: bool,
    sparse: Sequence[bool] = (),
) -> tuple[list[list[int]], list[int]]:
    """Buckets of the first iteration: in reverse, since the last layer's gradients come first.

    One bucket per dtype as long as the order of readiness is unknown, since the rebuild will cut
    anew; but ``bounded`` by the limits where no rebuild follows (find_unused_parameters), and where
    the caps are a list, as in PyTorch. ``sparse`` says whose gradients travel alone.
    """
    indices, per_bucket = compute_bucket_assignment_by_size(
        parameters, limits if bounded else [_NO_LIMIT], sparse
    )
    return indices[::-1], per_bucket[::-1]


def compute_bucket_assignment_by_size(
    tensors: Sequence[Tensor],
    bucket_size_limits: Sequence[int],
    expect_sparse_gradient: Sequence[bool] = (),
    tensor_indices: Sequence[int] = (),
) -> tuple[list[list[int]], list[int]]:
    """Assign tensors to buckets, greedily per dtype; a bucket closes once it reaches its limit.

    PyTorch's ``dist._compute_bucket_assignment_by_size``; the rule is told in
    ``csrc/reducer/buckets.hpp``.

    Parameters
    ----------
    bucket_size_limits
        Bytes: the limit of each dtype's first bucket, second bucket, ...; the last one repeats.
    expect_sparse_gradient
        Which tensors travel alone.
    tensor_indices
        Numbers to report in place of positions, in the order in which gradients become ready.

    Returns
    -------
    indices, limits
        Per bucket: which tensors it holds, and the limit in force (2**64 - 1 for a tensor alone).
    """
    return core().compute_bucket_assignment_by_size(
        [t._array.nbytes for t in tensors],
        [t._array.dtype for t in tensors],
        list(bucket_size_limits),
        list(expect_sparse_gradient),
        list(tensor_indices),
    )
