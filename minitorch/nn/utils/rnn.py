"""Batches of sequences of different lengths: padded to a block, or packed without padding.

=========  =========================  ==========================================================
layout     shape                      made by
=========  =========================  ==========================================================
a list     ``L_b x *`` each           the user; `unpad_sequence`, `unpack_sequence`
padded     ``T x B x *``              `pad_sequence`, `pad_packed_sequence`
packed     ``rows x *`` and sizes     `pack_sequence`, `pack_padded_sequence`
=========  =========================  ==========================================================

A packed batch holds step 0 of all sequences, then step 1 of those that have one, and so on; the
longest sequence comes first, so that each step's sequences are a prefix of the step before. That
is what the recurrent layers work on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import minitorch
from minitorch.autograd import TensorBase, wrap
from minitorch.ops._typing import Tensor
from minitorch.ops.joining import cat, stack

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences of different lengths, step by step; made by the functions of this module.

    Attributes
    ----------
    data : Tensor
        (rows, *), all steps one after another.
    batch_sizes : Tensor
        int64 (T,): how many sequences are still running at each step; never growing.
    sorted_indices, unsorted_indices : Tensor or None
        The permutation that sorted the sequences by falling length, and its inverse.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            # The old spelling: PackedSequence((data, batch_sizes)).
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as ``Tensor.to`` does; the sequence itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def cpu(self) -> PackedSequence:
        """Return the sequence, which is where it can be."""
        return self

    def double(self) -> PackedSequence:
        """Data as float64."""
        return self.to(minitorch.float64)

    def float(self) -> PackedSequence:
        """Data as float32."""
        return self.to(minitorch.float32)

    def half(self) -> PackedSequence:
        """Data as float16."""
        return self.to(minitorch.float16)

    def long(self) -> PackedSequence:
        """Data as int64."""
        return self.to(minitorch.int64)

    def int(self) -> PackedSequence:
        """Data as int32."""
        return self.to(minitorch.int32)

    def short(self) -> PackedSequence:
        """Data as int16."""
        return self.to(minitorch.int16)

    def char(self) -> PackedSequence:
        """Data as int8."""
        return self.to(minitorch.int8)

    def byte(self) -> PackedSequence:
        """Data as uint8."""
        return self.to(minitorch.uint8)

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False

    def is_pinned(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation given as int64 (B,); None of None."""
    if permutation is None:
        return None
    order = permutation._array
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order), dtype=order.dtype)
    return wrap(inverse)


def _lengths_of(batch_sizes: np.ndarray) -> np.ndarray:
    """Length of each sequence: at how many steps it is among the running ones."""
    return (batch_sizes[:, None] > np.arange(batch_sizes[0] if len(batch_sizes) else 0)).sum(0)


def _rows_in_block(batch_sizes: np.ndarray, batch: int) -> np.ndarray:
    """Where each packed row stands in a padded block whose rows are counted step by step."""
    running = np.arange(batch) < batch_sizes[:, None]
    return np.flatnonzero(running)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack a padded batch.

    Parameters
    ----------
    input : Tensor
        (T, B, *), or (B, T, *) with `batch_first`.
    lengths : Tensor or sequence of int
        Length of each sequence, at least 1.
    enforce_sorted : bool
        The sequences are sorted by falling length already; False sorts them here.

    Raises
    ------
    RuntimeError
        If `lengths` has another length than the batch, holds a number below 1, or is not sorted
        although it should be.

    Examples
    --------
    >>> import minitorch
    >>> from minitorch.nn.utils.rnn import pack_padded_sequence
    >>> block = minitorch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> pack_padded_sequence(block, [2, 1, 3], batch_first=True, enforce_sorted=False).data
    tensor([4, 1, 3, 5, 2, 6])
    """
    values = lengths._array if isinstance(lengths, TensorBase) else np.asarray(lengths)
    values = values.astype(np.int64)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    block = input.transpose(0, 1) if batch_first else input
    steps, batch = block.shape[:2]
    if len(values) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(values)} "
            f"(batch_size={batch})"
        )
    order = None
    if not enforce_sorted:
        order = np.argsort(-values, kind="stable")
        values = values[order]
    if values.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if np.any(np.diff(values) > 0):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if values[0] > steps:
        raise RuntimeError(
            f"Expected lengths to be at most the padded length {steps}, but got {values[0]}"
        )
    sizes = (values > np.arange(values[0])[:, None]).sum(1)
    rows = _rows_in_block(sizes, batch)
    if order is not None:
        rows = rows - rows % batch + order[rows % batch]
    data = block.reshape(-1, *block.shape[2:])[wrap(rows)]
    return PackedSequence(data, wrap(sizes), None if order is None else wrap(order), None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo :func:`pack_padded_sequence`: the padded batch in its original order, and the lengths.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool
        Return (B, T, *) instead of (T, B, *).
    padding_value : float
        What stands behind the end of a sequence.
    total_length : int, optional
        Pad to this many steps instead of the longest sequence's.

    Raises
    ------
    ValueError
        If `total_length` is less than the longest length.
    """
    sizes = sequence.batch_sizes._array
    steps, batch = len(sizes), int(sizes[0])
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data, lengths = sequence.data, _lengths_of(sizes)
    # Every place of the block takes a row of the data, or the row of padding behind them.
    source = np.full((steps, batch), len(data), dtype=np.int64)
    source.reshape(-1)[_rows_in_block(sizes, batch)] = np.arange(len(data))
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices._array
        source, lengths = source[:, back], lengths[back]
    if batch_first:
        source = source.T
    padding = minitorch.full((1, *data.shape[1:]), padding_value, dtype=data.dtype)
    padded = cat([data, padding])[wrap(np.ascontiguousarray(source))]
    return padded, wrap(lengths.astype(np.int64))


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (L_b, *) into (T, B, *), or (B, T, *) with `batch_first`.

    Parameters
    ----------
    padding_side : {"right", "left"}
        Where shorter sequences are filled with `padding_value`.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    parts = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    longest = max(part.shape[0] for part in parts)
    padded = []
    for part in parts:
        missing = longest - part.shape[0]
        if missing:
            filling = minitorch.full((missing, *part.shape[1:]), padding_value, dtype=part.dtype)
            part = cat([part, filling] if padding_side == "right" else [filling, part])
        padded.append(part)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo :func:`pad_sequence` (with padding on the right): a list of (L_b, *)."""
    by_sequence = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [part[: int(n)] for part, n in zip(by_sequence, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (L_b, *); see :func:`pack_padded_sequence` for `enforce_sorted`."""
    lengths = [part.shape[0] for part in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo :func:`pack_sequence`: the sequences in their original order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
