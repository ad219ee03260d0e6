"""Data sets: something with ``__getitem__`` and ``__len__``, or something to iterate over."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ...autograd.graph import wrap
from ...random.generator import Generator, stream_of
from ...random.picks import permutation
from ...tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
    "tensor_batch",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A map from index to sample. Subclasses define ``__getitem__`` and usually ``__len__``.

    ``__getitems__(indices) -> list`` may be defined to fetch a whole batch faster.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """A stream of samples. Subclasses define ``__iter__``.

    With several DataLoader workers each iterates over a copy of its own: use
    :func:`get_worker_info` to give each its share.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples are tuples of rows of tensors.

    Parameters
    ----------
    *tensors : Tensor
        All with the same first dimension.

    Raises
    ------
    AssertionError
        If the first dimensions differ (PyTorch's type).
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(cast(Any, tensor)[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Samples of several data sets side by side: tuples, or dicts if given by name."""

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not (args or kwargs):
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        parts = list(kwargs.values()) or args
        self._length = len(parts[0])  # type: ignore[arg-type]
        if any(len(part) != self._length for part in parts):  # type: ignore[arg-type]
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Data sets one after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset[Any]):
    """Iterable data sets one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from part

    def __len__(self) -> int:
        return sum(len(cast(Sized, part)) for part in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of ``dataset`` at ``indices``, in that order."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices: Any = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        own = [self.indices[i] for i in indices]
        whole_batch = getattr(self.dataset, "__getitems__", None)
        return whole_batch(own) if callable(whole_batch) else [self.dataset[i] for i in own]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """Split a data set at random into disjoint subsets; under a seed, exactly as PyTorch does.

    Parameters
    ----------
    lengths : sequence of int, or of float
        Sizes that add up to ``len(dataset)``, or fractions that add up to 1 (what rounding
        leaves over is dealt out one by one, from the first subset on).
    generator : Generator, optional
        By default the default generator.
    """
    size = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for index, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {index} is not between 0 and 1")
        sizes = [math.floor(size * fraction) for fraction in lengths]
        for index in range(size - sum(sizes)):
            sizes[index % len(sizes)] += 1
        for index, length in enumerate(sizes):
            if length == 0:
                warnings.warn(
                    f"Length of split at index {index} is 0. This might result in an empty "
                    "dataset.",
                    stacklevel=2,
                )
        lengths = sizes
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = permutation(stream_of(generator), size).tolist()
    ends = itertools.accumulate(lengths)
    return [
        Subset(dataset, order[int(end) - int(length) : int(end)])
        for end, length in zip(ends, lengths, strict=True)
    ]


def tensor_batch(dataset: Any, indices: list[int]) -> list[Tensor] | None:
    """The default-collated batch of a :class:`TensorDataset`, gathered with one copy per tensor.

    Sees through :class:`Subset`. Returns None where this short cut would not give exactly what
    fetching and collating sample by sample gives.
    """
    places = np.array(indices)
    if places.ndim != 1 or places.dtype.kind != "i":
        return None
    while type(dataset) is Subset:
        own: Any = dataset.indices
        if isinstance(own, (list, tuple, range)):
            places = np.array([own[i] for i in places.tolist()])
        elif isinstance(own, np.ndarray) and own.ndim == 1:
            places = own[places]
        else:
            return None
        if places.dtype.kind != "i":
            return None
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not dataset.tensors:
        return None
    if any(tensor.requires_grad for tensor in dataset.tensors):
        return None  # stacking must be recorded
    return [wrap(tensor._array.take(places, axis=0)) for tensor in dataset.tensors]
