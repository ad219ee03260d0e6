"""From a list of samples to one batch: ``default_collate`` and ``default_convert``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ...autograd.graph import wrap
from ...creation import tensor
from ...dtypes import float64
from ...tensor import Tensor

__all__ = ["default_collate", "default_convert"]

_UNSUPPORTED = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays inside ``data`` into tensors; used when batching is switched off."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return wrap(np.asarray(data)) if data.dtype.kind in "biuf" else data
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Stack samples into a batch with a new first dimension, through nested containers.

    Tensors and arrays are stacked; Python floats become float64 and ints int64 tensors; strings
    and bytes stay lists; mappings and sequences are collated entry by entry.

    Raises
    ------
    TypeError
        If a sample holds something else.
    RuntimeError
        If shapes or lengths differ within the batch.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack_tensors(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind not in "biuf":
            raise TypeError(_UNSUPPORTED.format(first.dtype))
        return _stack_arrays([np.asarray(sample) for sample in batch])
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)  # of the type that holds them all: [1, 2.5] is floating
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like_mapping(
            first, {key: default_collate([sample[key] for sample in batch]) for key in first}
        )
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        # A namedtuple gives a namedtuple, a plain tuple a list, as in PyTorch.
        entries = [default_collate(samples) for samples in zip(*batch, strict=True)]
        if type(first) is tuple:
            return entries
        return _like_sequence(first, entries)
    raise TypeError(_UNSUPPORTED.format(type(first)))


def _stack_tensors(batch: Sequence[Tensor]) -> Tensor:
    kind = batch[0]._array.dtype
    if any(sample.requires_grad or sample._array.dtype != kind for sample in batch):
        from ...ops.joining import stack  # recorded, and promotes types; rare in a data set

        return stack(list(batch))
    return _stack_arrays([sample._array for sample in batch])


def _stack_arrays(arrays: list[np.ndarray]) -> Tensor:
    shape = arrays[0].shape
    for index, array in enumerate(arrays):
        if array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 "
                f"and {list(array.shape)} at entry {index}"
            )
    return wrap(np.stack(arrays))


def _like_mapping(original: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    """``entries`` in a mapping of the original's type, where that can be made."""
    try:
        if isinstance(original, MutableMapping):
            twin = copy.copy(original)  # keeps what the type carries, such as a default factory
            twin.update(entries)
            return twin
        return type(original)(entries)  # type: ignore[call-arg]
    except TypeError:
        return entries


def _like_sequence(original: Sequence[Any], entries: list[Any]) -> Any:
    """``entries`` in a sequence of the original's type, where that can be made."""
    kind: Callable[..., Any] = type(original)
    if hasattr(original, "_fields"):
        return kind(*entries)
    if kind is list:
        return entries
    try:
        if isinstance(original, MutableSequence):
            twin = copy.copy(original)
            for index, entry in enumerate(entries):
                twin[index] = entry
            return twin
        return kind(entries)
    except TypeError:
        return entries
