"""What a step with overlap takes, against its parts alone: eight equal layers, run under mpiexec on
a shaped link.

Three things are asked for in turn, so that all see the same weather: backward without
communication, the communication without backward, and both at once through DDP.
"""

from __future__ import annotations

import time
from typing import Any

import minitorch as torch
import minitorch.distributed as dist
from minitorch import profiler
from minitorch.nn.parallel import DistributedDataParallel

LAYERS, WIDTH, BATCH = 8, 512, 1024
BUCKET_BYTES = WIDTH * WIDTH * 4


class OverlapRun:
    """Holds the model between requests."""

    def __init__(self) -> None:
        self.ddp: Any = None

    def handlers(self) -> dict[str, Any]:
        """What can be asked, by name."""
        return {
            "prepare": self.prepare,
            "compute": self.compute,
            "wire": self.wire,
            "both": self.both,
            "last": self.last,
        }

    def prepare(self) -> int:
        """Build the model and run two steps: the second one is the first with rebuilt buckets."""
        torch.manual_seed(0)
        layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
        model = torch.nn.Sequential(*layers)
        self.ddp = DistributedDataParallel(
            model, bucket_cap_mb=BUCKET_BYTES / 2**20, gradient_as_bucket_view=True
        )
        self.inputs = torch.randn(
            BATCH, WIDTH, requires_grad=True
        )  # so that the first layer's backward is like the rest
        self.gradients = [torch.zeros(WIDTH * WIDTH) for _ in range(LAYERS)]
        for _ in range(3):
            self._backward()
        return BUCKET_BYTES * LAYERS

    def _loss(self) -> Any:
        self.ddp.zero_grad()
        return self.ddp(self.inputs).sum()

    def _backward(self) -> float:
        loss = self._loss()
        dist.barrier()
        begin = time.perf_counter()
        loss.backward()
        return time.perf_counter() - begin

    def compute(self) -> float:
        """Seconds of backward alone."""
        with self.ddp.no_sync():
            return self._backward()

    def wire(self) -> float:
        """Seconds of the same eight all-reduces alone."""
        dist.barrier()
        begin = time.perf_counter()
        for work in [dist.all_reduce(gradient, async_op=True) for gradient in self.gradients]:
            if work is not None:
                work.wait()
        return time.perf_counter() - begin

    def last(self) -> float:
        """Seconds of one bucket's all-reduce alone."""
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(self.gradients[0])
        return time.perf_counter() - begin

    def both(self) -> dict[str, float]:
        """Seconds from the start of backward to the last gradient handed back, and what the step's
        own clocks say.
        """
        with profiler.trace() as recording:
            seconds = self._backward()
        summary = profiler.summarize(recording.timeline)
        rank = dist.get_rank()
        parts = {
            part: summary.mean(part, rank)
            for part in ("backward", "communication", "hidden", "exposed")
        }
        return {"seconds": seconds, "buckets": summary.collectives()} | parts
