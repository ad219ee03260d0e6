"""Which benchmarks there are: a function that yields figures, under a name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .measure import Figure

__all__ = ["BENCHMARKS", "Benchmark", "Settings", "Skipped", "benchmark", "chosen"]


@dataclass(frozen=True)
class Settings:
    """How thoroughly, and with whose help.

    `torch_python` is an interpreter that has PyTorch; None if none was found.
    """

    quick: bool = False
    rounds: int | None = None
    torch_python: str | None = None
    python: str = field(default_factory=lambda: sys.executable)
    mpiexec: str | None = None

    def pick(self, full: int, quick: int) -> int:
        """Return the number of rounds: what the user asked for, else `quick` or `full`."""
        return self.rounds or (quick if self.quick else full)


class Skipped(Exception):
    """A benchmark cannot run here; the message says why and what would make it run."""


@dataclass(frozen=True)
class Benchmark:
    """A name, one line of explanation, and what to run."""

    name: str
    about: str
    run: Callable[[Settings], Iterator[Figure]]


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(
    name: str, about: str
) -> Callable[[Callable[[Settings], Iterator[Figure]]], Callable[[Settings], Iterator[Figure]]]:
    """Register a generator of figures."""

    def register(
        run: Callable[[Settings], Iterator[Figure]],
    ) -> Callable[[Settings], Iterator[Figure]]:
        if name in BENCHMARKS:
            raise ValueError(f"there are two benchmarks called {name!r}")
        BENCHMARKS[name] = Benchmark(name, about, run)
        return run

    return register


def chosen(names: list[str]) -> list[Benchmark]:
    """Return the benchmarks of these names, all of them for none.

    Raises
    ------
    ValueError
        An unknown name; the message lists the known ones.
    """
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise ValueError(
            f"unknown benchmark {', '.join(map(repr, unknown))}; there are: {', '.join(BENCHMARKS)}"
        )
    return [BENCHMARKS[name] for name in (names or BENCHMARKS)]
