"""``DataLoader``: batches of a data set, in a chosen order, optionally prefetched by threads."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...random.generator import Generator
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .loader_iter import PrefetchingIter, SerialIter
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader"]

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Forever(Sampler[None]):
    """The sampler of an iterable data set: there are no indices to choose."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """Iterate over a data set in batches.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        Anything with ``__getitem__`` and ``__len__``, or an IterableDataset.
    batch_size : int or None, default 1
        None switches batching off: samples are passed on one by one.
    shuffle : bool, optional
        Visit in random order, under ``manual_seed`` PyTorch's.
    sampler, batch_sampler : iterable, optional
        Own order, or own batches, of indices.
    num_workers : int, default 0
        Prefetching threads; 0 loads in the caller's. Order and values do not depend on it, except
        for what a data set itself draws at random (each worker has its own generator, seeded
        with a base seed plus its number).
    collate_fn : callable, optional
        From a list of samples to a batch; by default :func:`default_collate`.
    pin_memory : bool, default False
        Accepted; there is no device to pin for.
    drop_last : bool, default False
        Drop a last batch that is not full.
    timeout : float, default 0
        Seconds to wait for a worker's batch before raising; 0 waits forever.
    worker_init_fn : callable, optional
        Called in each worker with its number.
    multiprocessing_context
        Refused: workers are threads (see ``worker.py`` for why).
    generator : Generator, optional
        For the order and the workers' base seed.
    prefetch_factor : int, optional
        Batches under way per worker, 2 by default.
    persistent_workers : bool, default False
        Keep the workers from one epoch to the next.
    in_order : bool, default True
        Accepted; batches always come in order.

    Raises
    ------
    ValueError
        For options that exclude one another.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if multiprocessing_context is not None:
            raise ValueError(
                "multiprocessing_context is not supported: DataLoader workers are threads. A "
                "worker process cannot be started safely under mpirun (one that imports mpi4py "
                "there dies or takes the job with it). Leave multiprocessing_context out"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = None
        self.generator = generator
        self.in_order = in_order
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        order: Any = sampler
        if order is None:
            if iterable:
                order = _Forever()
            elif shuffle:
                order = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                order = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None:
            batch_sampler = BatchSampler(order, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = order
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator: PrefetchingIter | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_initialized", False):
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=2,
            )
        if self.num_workers == 0:
            return SerialIter(self)
        if not self.persistent_workers:
            return PrefetchingIter(self)
        if self._iterator is None:
            self._iterator = PrefetchingIter(self)
        else:
            self._iterator._restart(self)
        return self._iterator

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is not None:
            if self.drop_last:
                length //= self.batch_size
            else:
                length = math.ceil(length / self.batch_size)
        return length

    def _length_or_none(self) -> int | None:
        if isinstance(self.dataset, IterableDataset):
            return None
        try:
            return len(self._index_sampler)
        except TypeError:
            return None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iterator": None}  # threads stay behind


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to load in the main "
            "thread."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified with workers. let num_workers > 0 to "
            "enable them, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    prefix = "DataLoader with IterableDataset: expected unspecified"
    if shuffle not in (None, False):
        raise ValueError(f"{prefix} shuffle option, but got shuffle={shuffle}")
    if sampler is not None:
        raise ValueError(f"{prefix} sampler option, but got sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError(f"{prefix} batch_sampler option, but got batch_sampler={batch_sampler}")
