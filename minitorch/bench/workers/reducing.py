"""Steps through DistributedDataParallel with one option on or off, run under mpiexec: the CNN of
the images trainer, 64 pictures per rank.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

from workloads import cnn_data, small_cnn  # type: ignore[import-not-found]

import minitorch as torch
import minitorch.distributed as dist
from minitorch import profiler
from minitorch._core import fingerprint_seconds
from minitorch.nn.parallel import DistributedDataParallel

# One model per contender, all the same; the unused layer is what the option is for.
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "find_unused": {"find_unused_parameters": True},
    "view": {"gradient_as_bucket_view": True},
}


class _WithSpare(torch.nn.Module):
    """The network and a parameter that it never uses."""

    def __init__(self, *, spare: bool) -> None:
        super().__init__()
        self.network = small_cnn(torch)
        if spare:
            self.spare = torch.nn.Parameter(torch.zeros(10))

    def forward(self, x: Any) -> Any:
        return self.network(x)


class ReducingRun:
    """Holds the models between requests."""

    def __init__(self) -> None:
        self.wrappers: dict[str, Any] = {}

    def handlers(self) -> dict[str, Any]:
        """What can be asked, by name."""
        return {
            "ddp_step": self.step,
            "ddp_copies": self.copies,
            "fingerprint": self.fingerprint,
        }

    def _wrapper(self, option: str) -> Any:
        if option not in self.wrappers:
            torch.manual_seed(0)
            self.x, self.y = cnn_data(torch)
            model = _WithSpare(spare=option == "find_unused")
            self.wrappers[option] = DistributedDataParallel(model, **OPTIONS[option])
            for _ in range(3):
                self._train(option)
        return self.wrappers[option]

    def _train(self, option: str) -> None:
        ddp = self.wrappers[option]
        ddp.zero_grad()
        torch.nn.functional.cross_entropy(ddp(self.x), self.y).backward()

    def step(self, option: str, number: int = 5) -> float:
        """Seconds per forward and backward."""
        self._wrapper(option)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(number):
            self._train(option)
        return (time.perf_counter() - begin) / number

    def copies(self, option: str) -> dict[str, int]:
        """Bytes of one step: the gradients', those copied into buckets and back, and what NumPy
        holds for gradients after backward.
        """
        ddp = self._wrapper(option)
        with profiler.trace() as recording:
            self._train(option)
        rank = dist.get_rank()
        events = [event for event in recording.timeline.events if event.rank == rank]
        copied = sum(int(event.args.get("bytes_copied", 0)) for event in events)
        ddp.zero_grad()
        tracemalloc.start()
        self._train(option)
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        gradients = sum(parameter.nbytes for parameter in ddp.parameters())
        return {"gradients": gradients, "copied": copied, "held": held, "peak": peak}

    def fingerprint(self, number: int = 100_000) -> float:
        """Seconds for what a collective spends on its fingerprint: make one, check one."""
        return fingerprint_seconds(number)
