"""Fetchers: from a list of indices to a collated batch, for both kinds of data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .collate import default_collate
from .dataset import IterableDataset, tensor_batch

__all__ = ["make_fetcher"]


def make_fetcher(
    dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool
) -> Callable[[Any], Any]:
    """A function from what the index sampler yields to what the loader yields.

    Raises ``StopIteration`` at the end of an iterable data set.
    """
    if isinstance(dataset, IterableDataset):
        return _IterableFetcher(dataset, batched, collate_fn, drop_last)
    if not batched:
        return lambda index: collate_fn(dataset[index])
    if collate_fn is default_collate:
        return lambda indices: _collated(dataset, indices)
    return lambda indices: collate_fn(_samples(dataset, indices))


def _samples(dataset: Any, indices: list[Any]) -> list[Any]:
    whole_batch = getattr(dataset, "__getitems__", None)
    return whole_batch(indices) if callable(whole_batch) else [dataset[i] for i in indices]


def _collated(dataset: Any, indices: list[Any]) -> Any:
    # One gather per tensor instead of thousands of small views: the common case of a data set
    # that lies in memory as tensors.
    batch = tensor_batch(dataset, indices)
    return default_collate(_samples(dataset, indices)) if batch is None else batch


class _IterableFetcher:
    """Takes samples in turn; of the index list only the length counts."""

    def __init__(
        self,
        dataset: IterableDataset[Any],
        batched: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> None:
        self.samples = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def __call__(self, indices: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.samples))
        batch = []
        for _ in indices:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(indices)):
            raise StopIteration
        return self.collate_fn(batch)
