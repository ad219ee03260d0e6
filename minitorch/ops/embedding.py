"""Table look-up with a gradient for the rows that were read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minitorch.autograd import AccumulateGrad, Node, bump_version, record, wrap
from minitorch.autograd.grad_mode import mode
from minitorch.autograd.sparse import SparseGradient
from minitorch.ops._arguments import scalar_name, widen
from minitorch.ops._typing import Tensor
from minitorch.ops.generic import linear_pair


def scatter_rows(index: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Add ``rows[i]`` to row ``index[i]`` of a new ``(count, width)`` array of zeros.

    Sorting brings equal indices together, so that each run is summed in one vectorised step.
    """
    out = np.zeros((count, *rows.shape[1:]), rows.dtype)
    if index.size:
        order = np.argsort(index, kind="stable")
        ordered = index[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        out[ordered[starts]] = np.add.reduceat(rows[order], starts, axis=0)
    return out


class _Reads(NamedTuple):
    """Which rows were read: flat `rows`, a factor `keep` per read or None, and the sizes.

    With `sparse` the gradient holds these rows only, if it goes to a leaf.
    """

    rows: np.ndarray
    keep: np.ndarray | None
    shape: tuple[int, ...]
    table_size: int
    sparse: bool = False


def _gather_rows(table: np.ndarray, reads: _Reads) -> np.ndarray:
    out = table[reads.rows]
    if reads.keep is not None:
        out = out * reads.keep[:, None].astype(out.dtype, copy=False)
    return out.reshape(*reads.shape, table.shape[1])


def _spread_rows(grad: np.ndarray, reads: _Reads) -> np.ndarray:
    rows = widen(grad).reshape(reads.rows.size, grad.shape[-1])
    if reads.keep is not None:
        rows = rows * reads.keep[:, None]
    return scatter_rows(reads.rows, rows, reads.table_size).astype(grad.dtype, copy=False)


_gather, _spread = linear_pair(
    _gather_rows, _spread_rows, "EmbeddingBackward0", "EmbeddingDenseBackwardBackward0"
)


def _renormalize(weight: Tensor, index: np.ndarray, max_norm: float, norm_type: float) -> None:
    """Shrink, in place, the rows that are about to be read to at most `max_norm`."""
    rows = np.unique(index)
    norms = np.linalg.norm(widen(weight._array[rows]), ord=norm_type, axis=1)
    large = norms > max_norm
    if large.any():
        scale = (max_norm / (norms[large] + 1e-7)).astype(weight._array.dtype)
        weight._array[rows[large]] *= scale[:, None]
        bump_version(weight)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` at the indices in `input`.

    Parameters
    ----------
    input : Tensor of int64 or int32
        Any shape ``(*)``.
    weight : Tensor
        The table, ``(count, width)``.
    padding_idx : int, optional
        A row that receives no gradient.
    max_norm, norm_type : float
        Rows that are read and whose norm exceeds `max_norm` are scaled down in place first.
    scale_grad_by_freq : bool
        Divide each row's gradient by how often the row was read.
    sparse : bool
        Leave a sparse tensor in ``weight.grad``: one row per read, not one per row of the table.
        A weight that is itself computed gets a dense gradient, as does ``create_graph=True``.

    Returns
    -------
    Tensor
        ``(*, width)``.

    Raises
    ------
    IndexError
        If an index is not a row of the table.
    """
    if input._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{scalar_name(input)}Tensor instead (while checking "
            "arguments for embedding)"
        )
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    count = weight.shape[0]
    if padding_idx is not None:
        assert -count <= padding_idx < count, "Padding_idx must be within num_embeddings"
        padding_idx %= count
    index = input._array.reshape(-1)
    if index.size and (index.min() < 0 or index.max() >= count):
        raise IndexError("index out of range in self")
    if max_norm is not None:
        _renormalize(weight, index, max_norm, norm_type)
    out = weight._array[input._array]
    keep = None
    if padding_idx is not None:
        keep = (index != padding_idx).astype(widen(out[:0]).dtype)
    if scale_grad_by_freq:
        keep = (1 if keep is None else keep) / np.bincount(index, minlength=count)[index]
        keep = keep.astype(widen(out[:0]).dtype)
    reads = _Reads(index, keep, tuple(input.shape), count, sparse)
    return record(out, embedding_backward, (weight, input), (), reads)


def embedding_backward(node: Node, grad: Any) -> tuple:
    reads = node.ctx
    if reads.sparse and not mode.differentiable and node._next[0].__class__ is AccumulateGrad:
        return _read_rows(grad, reads), None
    return _spread(grad, reads), None


def _read_rows(grad: np.ndarray, reads: _Reads) -> SparseGradient:
    """Return the gradient as rows, in the order in which they were read; none for padding."""
    rows = grad.reshape(reads.rows.size, grad.shape[-1])
    index = reads.rows
    if reads.keep is not None:
        read = reads.keep != 0
        index = index[read]
        rows = (widen(rows[read]) * reads.keep[read, None]).astype(grad.dtype, copy=False)
    where = np.array(index[None], dtype=np.int64)
    return SparseGradient(where, rows, (reads.table_size, grad.shape[-1]))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Turn class indices ``(*)`` of int64 into int64 rows ``(*, num_classes)`` with a single 1."""
    index = tensor._array
    if index.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not index.size and num_classes <= 0:
        raise RuntimeError(
            "Can not infer total number of classes from empty tensor."
            if num_classes == -1
            else f"num_classes should be positive, but got {num_classes}"
        )
    if index.size and index.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(index.max()) + 1
    elif index.size and index.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return wrap((index[..., None] == np.arange(num_classes)).astype(np.int64))
