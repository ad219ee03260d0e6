"""Samplers: in which order, and in what batches, indices are visited.

Under ``manual_seed`` the random ones visit in PyTorch's order: a sampler without a generator draws
one 64-bit seed from the default generator per pass and permutes with a generator of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar

import numpy as np

from ...autograd.graph import wrap
from ...random.generator import Generator, stream_of
from ...random.mt19937 import MersenneStream
from ...random.picks import check_weights, multinomial, permutation
from ...random.streams import integers, integers_default

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """One non-negative 64-bit seed, as ``empty((), dtype=int64).random_()`` draws it."""
    return int(integers_default(stream_of(generator), (), np.dtype(np.int64)))


def is_positive_int(value: object) -> bool:
    """Whether a count may be this: a positive int, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[T_co]):
    """Base class: an iterable over indices (or lists of indices)."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """``0 .. len(data_source) - 1``."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Parameters
    ----------
    replacement : bool, default False
        Draw each index independently instead of permuting.
    num_samples : int, optional
        How many to draw, by default ``len(data_source)``; more than that permutes repeatedly.
    generator : Generator, optional
        Drawn from directly; without it, a generator seeded from the default one.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not is_positive_int(self.num_samples):
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices one pass yields."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        if self.generator is None:
            stream = MersenneStream(draw_seed())
        else:
            stream = stream_of(self.generator)
        if self.replacement:
            # In portions of 32, as PyTorch; a shared generator sees the same draws.
            for start in range(0, self.num_samples, 32):
                count = min(32, self.num_samples - start)
                yield from integers(stream, (count,), np.dtype(np.int64), 0, n).tolist()
            return
        for _ in range(self.num_samples // n):
            yield from permutation(stream, n).tolist()
        # Also when nothing is left over: PyTorch draws this permutation too.
        yield from permutation(stream, n).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in permutation(stream_of(self.generator), len(self.indices)).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probability proportional to their weight.

    Parameters
    ----------
    weights : sequence of float, shape (n,)
        Need not add up to one.
    num_samples : int
        How many to draw.
    replacement : bool, default True
        Whether an index may be drawn again.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not is_positive_int(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        array = np.array(getattr(weights, "_array", weights), dtype=np.float64)
        if array.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {array.shape}"
            )
        self.weights = wrap(array)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        weights = self.weights._array
        check_weights(weights, self.num_samples, self.replacement)
        stream = stream_of(self.generator)
        yield from multinomial(stream, weights, self.num_samples, self.replacement).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter or dropped."""

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not is_positive_int(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
