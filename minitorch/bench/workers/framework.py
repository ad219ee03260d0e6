"""Worker: runs the workloads under one framework. `python framework.py torch|minitorch`."""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from protocol import channel, serve, timed  # type: ignore[import-not-found]
from workloads import WORKLOADS, cnn_data, small_cnn, train_step  # type: ignore[import-not-found]


def handlers(framework: str) -> dict[str, Any]:
    """Return what this worker can be asked."""
    torch = importlib.import_module(framework)
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    steps: dict[str, Any] = {}

    def run(workload: str, number: int) -> float:
        if workload not in steps:
            steps[workload] = WORKLOADS[workload](torch) if workload in WORKLOADS else ddp_cnn()
        return timed(steps[workload], number)

    def ddp_cnn() -> Any:
        """Build the same CNN step, wrapped in DDP over one rank; nothing is bypassed."""
        dist = importlib.import_module("minitorch.distributed")
        parallel = importlib.import_module("minitorch.nn.parallel")
        if not dist.is_initialized():
            dist.init_process_group()
        torch.manual_seed(0)
        model = parallel.DistributedDataParallel(small_cnn(torch), gradient_as_bucket_view=True)
        return train_step(torch, model, *cnn_data(torch))

    def about() -> dict[str, str]:
        return {
            "framework": framework,
            "version": str(torch.__version__),
            "python": platform.python_version(),
        }

    return {"run": run, "about": about}


if __name__ == "__main__":
    out = channel()
    serve(handlers(sys.argv[1]), out)
