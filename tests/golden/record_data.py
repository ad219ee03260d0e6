"""Record the order in which PyTorch's samplers and loaders visit, for tests/data.

Run with a PyTorch at hand:  python tests/golden/record_data.py
The cases take the library as an argument, so that the tests play the same code on minitorch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_name("data.json")


def _epochs(loader: Any, epochs: int = 2) -> list[list[list[int]]]:
    return [[batch[0].tolist() for batch in loader] for _ in range(epochs)]


def _splits(t: Any, lengths: list[Any], generator: Any = None) -> list[list[int]]:
    d = t.utils.data
    dataset = d.TensorDataset(t.arange(23))
    kwargs = {} if generator is None else {"generator": generator}
    return [list(part.indices) for part in d.random_split(dataset, lengths, **kwargs)]


def _distributed(t: Any, n: int, ranks: int, epochs: int = 2, **options: Any) -> list[Any]:
    sampler = t.utils.data.distributed.DistributedSampler
    rows = []
    for rank in range(ranks):
        own = sampler(range(n), num_replicas=ranks, rank=rank, **options)
        for epoch in range(epochs):
            own.set_epoch(epoch)
            rows.append([len(own), *own])
    return rows


def cases(t: Any) -> dict[str, Any]:
    """Name -> function; each runs under ``manual_seed(5)`` and returns JSON."""
    d = t.utils.data
    ten = d.TensorDataset(t.arange(10))
    gen = lambda: t.Generator().manual_seed(3)

    def replacing() -> Any:
        return list(d.RandomSampler(ten, replacement=True, num_samples=70))

    def seeded_between() -> Any:
        loader = d.DataLoader(ten, batch_size=4, shuffle=True)
        first = _epochs(loader, 1)
        return [first, t.randint(1000, (3,)).tolist(), _epochs(loader, 1)]

    def weighted(replacement: bool, count: int) -> Any:
        weights = [0.1, 0.9, 0.4, 0.7, 3.0, 0.6]
        return list(d.WeightedRandomSampler(weights, count, replacement))

    def shared_generator() -> Any:
        g = gen()
        sampler = d.RandomSampler(ten, num_samples=25, generator=g)
        return [list(sampler), list(sampler), t.randint(100, (3,), generator=g).tolist()]

    return {
        "random": lambda: [list(d.RandomSampler(ten)) for _ in range(2)],
        "random_generator": shared_generator,
        "random_more": lambda: list(d.RandomSampler(ten, num_samples=25)),
        "random_replace": replacing,
        "subset": lambda: list(d.SubsetRandomSampler([3, 5, 8, 9, 11])),
        "subset_generator": lambda: list(d.SubsetRandomSampler(range(9), generator=gen())),
        "weighted": lambda: weighted(True, 20),
        "weighted_once": lambda: weighted(False, 6),
        "batches": lambda: [list(d.BatchSampler(range(10), 3, last)) for last in (False, True)],
        "loader": lambda: _epochs(d.DataLoader(ten, batch_size=4)),
        "loader_shuffle": lambda: _epochs(d.DataLoader(ten, batch_size=4, shuffle=True)),
        "loader_drop": lambda: _epochs(
            d.DataLoader(ten, batch_size=4, shuffle=True, drop_last=True)
        ),
        "loader_generator": lambda: _epochs(
            d.DataLoader(ten, batch_size=3, shuffle=True, generator=gen())
        ),
        "loader_sampler": lambda: _epochs(
            d.DataLoader(ten, batch_size=3, sampler=d.SubsetRandomSampler([1, 2, 3, 4]))
        ),
        "loader_between": seeded_between,
        "split": lambda: _splits(t, [10, 9, 4]),
        "split_shares": lambda: _splits(t, [0.5, 0.3, 0.2], gen()),
        "split_loader": lambda: _epochs(
            d.DataLoader(d.random_split(ten, [7, 3])[0], batch_size=2, shuffle=True)
        ),
        "distributed": lambda: _distributed(t, 10, 4),
        "distributed_seed": lambda: _distributed(t, 23, 3, seed=11),
        "distributed_drop": lambda: _distributed(t, 23, 3, drop_last=True),
        "distributed_order": lambda: _distributed(t, 10, 4, 1, shuffle=False),
        "distributed_order_drop": lambda: _distributed(t, 10, 4, 1, shuffle=False, drop_last=True),
        "distributed_few": lambda: _distributed(t, 2, 4, 1, shuffle=False),
        "distributed_few_drop": lambda: _distributed(t, 3, 4, 1, shuffle=False, drop_last=True),
        "distributed_nine": lambda: _distributed(t, 9, 2, 1, shuffle=False),
    }


def play(t: Any, only: str | None = None) -> dict[str, Any]:
    """Run the cases on a library: the answer, and three numbers of the stream that follows."""
    answers = {}
    for name, run in cases(t).items():
        if only is None or name == only:
            t.manual_seed(5)
            answers[name] = [run(), t.randint(10**6, (3,)).tolist()]
    return answers


if __name__ == "__main__":
    import torch
    import torch.utils.data.distributed

    ANSWERS.write_text(json.dumps(play(torch)) + "\n")
    print(f"{ANSWERS}: {ANSWERS.stat().st_size} bytes, torch {torch.__version__}")
