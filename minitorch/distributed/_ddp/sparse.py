"""Gradients of which only some rows are there: how DistributedDataParallel averages them.

A parameter of ``nn.Embedding(..., sparse=True)`` travels alone, without memory in a bucket. What
is exchanged are coordinates and values: every rank gathers those of all others and adds them up in
rank order, so that all ranks end with the same bits.

Cost per parameter and step, with n_r entries of v bytes on rank r and n = max n_r: one all-gather
of 8 bytes, one of 8 n (coordinates), one of n v (values), per rank W - 1 times that. It is cheaper
than the dense all-reduce as long as the ranks together read fewer than about twice the table's
rows. The counts are exchanged while backward goes on, the rest at its end.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.autograd.sparse import SparseGradient
from minitorch.nn import Embedding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minitorch.nn import Module

    from ..process_group import ProcessGroup
    from .reducer import GradientReducer


def sparse_parameters(module: Module) -> list[str]:
    """Names of the parameters of ``module`` whose gradients are sparse."""
    return [
        f"{name}.weight" if name else "weight"
        for name, layer in module.named_modules()
        if isinstance(layer, Embedding) and layer.sparse
    ]


class SparseGradients:
    """The sparse gradients of one reducer's pass.

    Parameters
    ----------
    reducer
        Referred to weakly, since it owns this.
    is_sparse
        By parameter.
    """

    def __init__(self, reducer: GradientReducer, is_sparse: Sequence[bool]) -> None:
        self._reducer = weakref.ref(reducer)
        self._indices = {index for index, sparse in enumerate(is_sparse) if sparse}
        if self._indices:
            reducer._core.set_sparse_hook(_GatherHook(self))

    def __contains__(self, index: int) -> bool:
        return index in self._indices

    def owns_bucket(self, members: Sequence[int]) -> bool:
        """Whether a bucket with these parameters is a sparse one."""
        return members[0] in self._indices

    def take(self, index: int, gradient: Any) -> None:
        """Put what this rank contributes where hooks look for it; None: no rows.

        Raises
        ------
        RuntimeError
            If the gradient is dense.
        """
        reducer = self._reducer()
        assert reducer is not None
        like = reducer.parameters[index]._array
        if gradient is None:
            none = np.empty((1, 0), np.int64)
            rows = np.empty((0, *like.shape[1:]), like.dtype)
            gradient = wrap(SparseGradient(none, rows, like.shape, True))
        elif not gradient.is_sparse:
            raise RuntimeError(
                f"Expected a sparse gradient of {reducer.names[index]}, which belongs to an "
                "nn.Embedding with sparse=True, and got a dense one. Use this parameter in the "
                "look-up only, or build the layer with sparse=False."
            )
        factor = reducer._core.division_factor
        reducer.bucket_tensors[self.bucket_of(index)] = gradient * factor

    def bucket_of(self, index: int) -> int:
        """The bucket of a sparse parameter."""
        reducer = self._reducer()
        assert reducer is not None
        return reducer.bucket_indices.index([index])

    def result(self, index: int) -> Any:
        """What came out of the exchange; not shared with anybody."""
        reducer = self._reducer()
        assert reducer is not None
        return reducer.bucket_tensors[self.bucket_of(index)]

    def clear(self) -> None:
        """Forget the gradients of this pass."""
        reducer = self._reducer()
        if reducer is not None:
            for index in self._indices:
                reducer.bucket_tensors[self.bucket_of(index)] = None


class _GatherHook:
    """What the core calls for a sparse bucket, unless the user has registered a hook."""

    def __init__(self, gradients: SparseGradients) -> None:
        self._gradients = gradients

    def launch(self, bucket: int) -> Any:
        reducer = self._gradients._reducer()
        assert reducer is not None
        coo = reducer.bucket_tensors[bucket]._coo.coalesce()
        counts = np.empty(reducer.process_group.size(), np.int64)
        work = reducer.process_group._group.all_gather(
            counts, np.array([coo.values.shape[0]], np.int64), label="sparse gradient: entries"
        )
        return bucket, coo, counts, work

    def wait(self, promise: Any) -> None:
        bucket, coo, counts, work = promise
        reducer = self._gradients._reducer()
        assert reducer is not None
        work.wait()
        total = gather_sparse(reducer.process_group, coo, counts.tolist())
        reducer.bucket_tensors[bucket] = wrap(total)


def gather_sparse(group: ProcessGroup, mine: SparseGradient, counts: list[int]) -> SparseGradient:
    """Return the sum over all ranks, coalesced; a collective.

    Parameters
    ----------
    mine
        Coalesced.
    counts
        How many entries each rank has.
    """
    most, world = max(counts), len(counts)
    if most == 0:
        return mine
    dims = mine.indices.shape[0]
    row = mine.values.shape[1:]
    indices = np.zeros((world, dims, most), np.int64)
    values = np.zeros((world, most, *row), mine.values.dtype)
    rank = group.rank()
    indices[rank, :, : counts[rank]] = mine.indices
    values[rank, : counts[rank]] = mine.values
    for table, label in ((indices, "coordinates"), (values, "values")):
        raw = table.view(np.uint8).reshape(world, -1)
        group._group.all_gather(raw, raw[rank].copy(), label=f"sparse gradient: {label}").wait()
    gathered = [slice(0, count) for count in counts]
    return SparseGradient(
        np.concatenate([indices[r][:, part] for r, part in enumerate(gathered)], axis=1),
        np.concatenate([values[r][part] for r, part in enumerate(gathered)]),
        mine.shape,
    ).coalesce()
