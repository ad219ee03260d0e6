"""The two iterators of a DataLoader: in the caller's thread, or fed by prefetching workers."""

from __future__ import annotations

import functools
import itertools
import queue
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from .dataset import IterableDataset
from .fetch import make_fetcher
from .sampler import draw_seed
from .worker import RESET, Ended, Failed, start_worker

if TYPE_CHECKING:
    from .dataloader import DataLoader

__all__ = ["PrefetchingIter", "SerialIter"]


class _LoaderIter:
    """What both share: the draw of the base seed, and counting against a promised length."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader_length_hint = loader._IterableDataset_len_called
        self._dataset = loader.dataset
        self._sampler_iter = iter(loader._index_sampler)
        # Drawn with or without workers, so that the number of workers does not change the
        # stream of what follows; before the sampler draws its own seed, as in PyTorch.
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        self._length = loader._length_or_none()

    def __iter__(self) -> _LoaderIter:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not implement __next__")

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("the length of this DataLoader is not known")
        return self._length

    def _count(self) -> None:
        self._num_yielded += 1
        promised = self._loader_length_hint
        if promised is not None and self._num_yielded > promised:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {promised} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched.",
                stacklevel=3,
            )


class SerialIter(_LoaderIter):
    """Fetches each batch when it is asked for, in the caller's thread."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._fetch = make_fetcher(
            loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def __next__(self) -> Any:
        batch = self._fetch(next(self._sampler_iter))
        self._count()
        return batch


def _stop(tasks: list[queue.SimpleQueue[Any]]) -> None:
    """Tell workers to end. Called from a finalizer, so it only puts."""
    for worker_tasks in tasks:
        worker_tasks.put(None)


class PrefetchingIter(_LoaderIter):
    """Keeps ``prefetch_factor`` batches per worker under way and hands them out in order.

    Batch ``n`` belongs to worker ``n % num_workers`` (as long as all workers have samples), so that
    random augmentation in a worker is reproducible.
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._loader_sampler = loader._index_sampler
        self._timeout = loader.timeout or None
        self._iterable = isinstance(loader.dataset, IterableDataset)
        self._persistent = loader.persistent_workers
        self._prefetch = 2 if loader.prefetch_factor is None else loader.prefetch_factor
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        make_fetch = functools.partial(
            make_fetcher,
            batched=loader._auto_collation,
            collate_fn=loader.collate_fn,
            drop_last=loader.drop_last,
        )
        started = [
            start_worker(
                index,
                loader.num_workers,
                loader.dataset,
                self._base_seed,
                loader.worker_init_fn,
                make_fetch,
                self._results,
            )
            for index in range(loader.num_workers)
        ]
        self._threads: list[threading.Thread] = [thread for thread, _ in started]
        self._tasks = [tasks for _, tasks in started]
        # Runs when the iterator is dropped half-way, and at exit at the latest.
        self._finalizer = weakref.finalize(self, _stop, self._tasks)
        self._begin()

    def _begin(self) -> None:
        self._sent = 0
        self._given = 0
        self._arrived: dict[int, Any] = {}
        self._owner: dict[int, int] = {}
        self._active = [True] * len(self._tasks)
        self._turn = itertools.cycle(range(len(self._tasks)))
        for _ in range(max(1, self._prefetch) * len(self._tasks)):
            self._send()

    def _restart(self, loader: DataLoader) -> None:
        """Begin another epoch with the same workers (``persistent_workers``)."""
        while len(self._arrived) < len(self._owner):
            self._receive()
        for tasks in self._tasks:
            tasks.put((RESET, None))
        self._sampler_iter = iter(self._loader_sampler)
        self._num_yielded = 0
        self._loader_length_hint = loader._IterableDataset_len_called
        self._begin()

    def _send(self) -> None:
        """Give the next indices to the next worker that still has samples."""
        if not any(self._active):
            return
        indices = next(self._sampler_iter, self)
        if indices is self:
            return
        worker = next(index for index in self._turn if self._active[index])
        self._owner[self._sent] = worker
        self._tasks[worker].put((self._sent, indices))
        self._sent += 1

    def _receive(self) -> None:
        try:
            number, worker, result = self._results.get(timeout=self._timeout)
        except queue.Empty:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
        self._arrived[number] = result
        if isinstance(result, Ended):
            self._active[worker] = False

    def __next__(self) -> Any:
        while self._given < self._sent:
            if self._given not in self._arrived:
                self._receive()
                continue
            result = self._arrived.pop(self._given)
            del self._owner[self._given]
            self._given += 1
            self._send()
            if isinstance(result, Ended):
                continue
            if isinstance(result, Failed):
                try:
                    raise result.error
                finally:
                    del result  # the frame would keep the error, which keeps the frame
            self._count()
            return result
        if not self._persistent:
            self.close()
        raise StopIteration

    def close(self) -> None:
        """End the workers and wait for them; harmless when called again."""
        self._finalizer()
        for thread in self._threads:
            thread.join()
        self._threads = []
